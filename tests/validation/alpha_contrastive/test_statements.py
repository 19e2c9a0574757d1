"""What the studies decide from given numbers: that a claim holds, that it does not, or neither."""

import numpy as np
import pytest
import xarray as xr

from validation.alpha_contrastive.figures import (
    figure_1,
    figure_4,
    figure_8,
    figure_10,
    figure_11,
    many_filters,
    table_1,
    temperature,
    weight_decay,
)
from validation.alpha_contrastive.figures.runs import GROUPS, MEASURED
from validation.alpha_contrastive.figures.scores import better

SEEDS = [1, 2]


def decided(statements, part):
    found = [statement.holds for statement in statements if part in statement.text]
    assert found, part
    return found


def runs(group, **levels):
    """Runs of a group in which each measured number is a function of the labels of a cell, and a little chance."""
    grid, rng = GROUPS[group][1], np.random.default_rng(0)
    cells = [dict(zip(grid, labels, strict=True)) for labels in np.ndindex(*(len(part) for part in grid.values()))]
    keys = {dim: list(part) for dim, part in grid.items()}
    labelled = [{dim: keys[dim][i] for dim, i in cell.items()} for cell in cells]
    shape, found = (len(SEEDS), *(len(part) for part in grid.values())), {}
    for name in MEASURED:
        level = np.array([levels.get(name, lambda **cell: 0.5)(**cell) for cell in labelled])
        chance = 1e-3 * rng.standard_normal((len(SEEDS), len(cells)))
        found[f"sgd_{name}"] = (("seed", *grid), (level + chance).reshape(shape))
    return xr.Dataset(found, {"seed": SEEDS} | keys)


def test_gains_are_told_from_chance():
    rng = np.random.default_rng(0)
    for mean, holds in ((0.5, True), (-0.5, False), (0.0, None)):
        gain = xr.DataArray(mean + 0.3 * rng.standard_normal((2, 4, 3)), dims=("seed", "P", "beta"))
        assert better("a", "ours", gain).holds is holds


def test_filters_that_learn_as_the_paper_says():
    def plus(activation, P, beta):
        if activation == "linear":
            return 0.95 if P == 1 else 0.7
        return 1.0 - 0.5 / beta

    def minus(activation, P, beta):
        return 0.02 if activation == "relu" else 0.2

    found = figure_4.judge(runs("infonce", plus=plus, minus=minus, filter_rank=lambda **cell: 1.0))
    assert decided(found, "matches better than linear") == [True] * 3
    assert decided(found, "P = 1: linear works") + decided(found, "ReLU needs") == [True, True]
    assert decided(found, "the larger beta") + decided(found, "at beta = 10 than at 1") == [True, True]
    assert decided(found, "gain less than") == [True]
    assert decided(found, "noise tokens") + decided(found, "the lowest chi-") == [True, True]
    assert decided(found, "co-linear") == [True]
    assert decided(found, "has rank one") == [True]
    worse = figure_4.judge(
        runs("infonce", plus=lambda **cell: 0.8, minus=lambda **cell: 0.3, filter_rank=lambda P, **_: P)
    )
    assert decided(worse, "matches better than linear") == [None] * 3
    assert decided(worse, "P = 1: linear works well") == [False]
    assert decided(worse, "noise tokens") + decided(worse, "co-linear") == [False, False]


def test_quadratic_loss():
    infonce = runs("infonce", plus=lambda **cell: 0.9).expand_dims(loss=["infonce"])
    for level, holds in ((0.6, True), (0.95, False)):
        quadratic = runs("quadratic", plus=lambda level=level, **cell: level).expand_dims(loss=["quadratic"])
        found = figure_10.judge(xr.concat([infonce, quadratic], dim="loss"))
        assert decided(found, "less well than with InfoNCE") == [holds] * 4


def test_batch_normalisation():
    def plus(normalisation, P, beta, zeta=10.0):
        return 0.9 - (0.02 * zeta if normalisation == "none" else 0.0)

    largest = runs("zeta_10", plus=plus).sel(normalisation=["none", "mean"]).expand_dims(zeta=[10.0])
    numbers = xr.concat([runs("zeta", plus=plus), largest], dim="zeta")
    found = figure_11.judge(numbers)
    assert decided(found, "adds less than") == [True]
    assert decided(found, "raises chi+") == [True, True]
    assert decided(found, "more at zeta = 10") == [True]
    assert decided(figure_11.judge(numbers * 0.0), "raises chi+") == [None, None]


def test_printed_table():
    """The printed numbers themselves are those of the paper's conclusion, and others are not."""
    printed = runs("zeta_10").sel(normalisation=list(table_1.COLUMNS))
    printed["sgd_printed"] = (("beta", "P", "normalisation"), table_1.PRINTED)
    printed["sgd_printed_deviation"] = (("beta", "P", "normalisation"), table_1.PRINTED_ERROR)
    printed["sgd_plus"] = printed["sgd_printed"].expand_dims(seed=SEEDS)
    found = table_1.judge(printed)
    assert decided(found, "not to differentiate the variance") == [True, True]
    assert decided(found, "printed means are those") == [True]
    assert decided(found, "with the variance frozen") == [None, None]
    assert "| 5 | 3 | 0.90 / 0.90 | 0.45 / 0.45 |" in table_1.table_page(printed)
    printed["sgd_plus"] = 1.0 - printed["sgd_plus"]
    found = table_1.judge(printed)
    assert decided(found, "not to differentiate the variance") == [True, False]
    assert decided(found, "printed means are those") == [False]


def test_printed_means_and_deviations_have_their_places():
    """Ends of rows of the table, and its tie and two comparisons against the paper."""
    assert table_1.PRINTED[0, 0].tolist() == [0.31, 0.23, 0.30, 0.23]
    assert table_1.PRINTED[3, 3].tolist() == [0.90, 0.97, 0.89, 0.97]
    assert table_1.PRINTED_ERROR[1, 2].tolist() == [0.02, 0.21, 0.07, 0.02]
    frozen, differentiated = table_1.PRINTED[..., [0, 2]], table_1.PRINTED[..., [1, 3]]
    signs = np.sign(frozen - differentiated)
    assert [int(np.sum(signs == sign)) for sign in (1, 0, -1)] == [29, 1, 2]


def test_weight_decay():
    def score(decayed, other):
        return lambda case: decayed if case == weight_decay.WITH else other

    found = weight_decay.judge(runs("decay", plus=score(0.99, 0.6), minus=score(0.01, 0.3), loss=score(1.5, 1.4)))
    assert decided(found, "with weight decay patterns") == [True]
    assert decided(found, "global modulation") + decided(found, "three times as many") == [False, False]
    assert decided(found, "the loss is lower") == [True]
    kept_out = weight_decay.judge(runs("decay", plus=score(0.99, 0.99), minus=score(0.01, 0.01)))
    assert decided(kept_out, "global modulation") == [True]
    assert decided(kept_out, "printed learning rate") == [True]


def test_maxima_of_figure_8():
    numbers = figure_8.theory()
    found = figure_8.judge(numbers)
    assert decided(found, "at least 8") + decided(found, "a linear filter has two") == [True, True]
    assert decided(found, "locally maximal eigenvectors") + decided(found, "power iteration") == [False, False]
    assert decided(found, "has the same maxima") == [True]
    lost = numbers.isel(maximum_relu=slice(1, None))
    assert decided(figure_8.judge(lost), "has the same maxima") == [False]
    angle, share = numbers["angle_relu"].values, numbers["basin_share_relu"].values
    ends = np.repeat(angle, np.round(1000 * share).astype(int))
    numbers["sgd_end"], numbers["sgd_seconds"] = ("filter", ends), 0.01
    assert decided(figure_8.judge(numbers), "of SGD") == [True, True]
    numbers["sgd_end"] = ("filter", np.full(len(ends), angle[0] + 0.2))
    assert decided(figure_8.judge(numbers), "of SGD") == [False, False]


def test_numbers_of_maxima():
    shape = len(temperature.CASES), 1 + len(temperature.TEMPERATURES)
    rising = np.tile(np.arange(4, 4 + shape[1]), (shape[0], 1))
    values = {"maxima": rising, "on_walls": rising, "held": rising[:, ::-1], "differ": np.zeros(shape, dtype=int)}
    numbers = xr.Dataset(
        {name: (("case", "temperature"), value) for name, value in values.items()},
        {"case": list(temperature.CASES), "temperature": [np.inf, *temperature.TEMPERATURES]},
    )
    found = temperature.judge(numbers)
    assert decided(found, "smallest temperature") == [True] * 4 + [False]
    assert decided(found, "every temperature") == [True] * 4
    numbers["differ"][0, 3] = 1
    assert decided(temperature.judge(numbers), "has the same maxima") == [False]


def test_power_iteration_on_orthogonal_patterns():
    steps, w = figure_1.power_iteration(np.array([0.9, 0.3, 0.3]) / np.sqrt(0.99), 0.0)
    assert steps[-1] < figure_1.DIED_OUT
    np.testing.assert_allclose(w, [1.0, 0.0, 0.0], atol=1e-12)  # it converges to the pattern, by (9)
    assert figure_1._threshold().holds


@pytest.mark.parametrize(("theta", "count"), [([0.0, 0.001, 2.0], 2), ([np.pi - 1e-3, -np.pi + 1e-3], 1), ([1.0], 1)])
def test_different_filters(theta, count):
    assert many_filters.count_different(np.array(theta)) == count


def test_networks_below_and_at_the_optimum():
    labels = [np.inf, *many_filters.TEMPERATURES]
    shape = len(labels), len(many_filters.WIDTHS), many_filters.NETWORKS
    rng = np.random.default_rng(0)
    chance = rng.standard_normal((len(many_filters.CHANCE_K), 40)) / np.sqrt(many_filters.CHANCE_K)[:, None]
    share = np.linspace(0.7, 0.99, len(labels))[:, None, None] + 1e-3 * rng.standard_normal(shape)
    base = {
        "G": ("temperature", np.ones(len(labels))),
        "gap": ("temperature", np.zeros(len(labels))),
        "atoms": ("temperature", np.arange(len(labels)).clip(1)),
        "single": ("temperature", np.full(len(labels), 0.9)),
        "moment": ((), 0.0),
        "moment_error": ((), 1e-3),
        "sgd_different": (("temperature", "K", "network"), np.ones(shape) * np.arange(1, 7)[None, :, None]),
        "sgd_moment": (("filters", "sample"), chance),
    }
    coordinates = {"temperature": labels, "K": list(many_filters.WIDTHS), "filters": list(many_filters.CHANCE_K)}
    numbers = xr.Dataset(base | {"sgd_G": (("temperature", "K", "network"), share)}, coordinates)
    assert all(statement.holds for statement in many_filters.judge(numbers))
    numbers["sgd_G"] = numbers["sgd_G"] * 0.0 + 1.0
    numbers["sgd_moment"] = numbers["sgd_moment"] + 1.0
    found = many_filters.judge(numbers)
    assert decided(found, "below the optimum") + decided(found, "K^-1/2") == [False, False]
