"""What studies on hidden manifolds decide from given numbers: that a claim holds, that it does not, or neither."""

import numpy as np
import pytest
import xarray as xr

from validation.hidden_manifold.figures import discrepancy, selection_of_runs, tables
from validation.hidden_manifold.figures.laws import COORDINATE, LAWS, MATCHED, SAMPLE, STANDARDISED
from validation.hidden_manifold.figures.printed_tables import ENTRIES, ERF
from validation.hidden_manifold.figures.sweep import powers, standardised_statements, unstandardised_statements
from validation.pages import verdict
from validation.study import Statement

STARTS, M, ALPHAS = 20, (2, 3, 5), tuple(range(1, 10))


def numbers(level, spread=0.03):
    """Discrepancies of 0.01 under N(0, 1), level(law, KL) times as large under laws, that differ by chance."""
    rng = np.random.default_rng(0)
    KL = xr.DataArray(np.tile(np.square(ALPHAS) / 6.0, (STARTS, len(M), 1)), dims=("start", "m", "alpha"))
    shape = (len(LAWS), STARTS, len(M), len(ALPHAS), 2, 2)
    levels = np.stack([np.broadcast_to(level(law, KL.values), KL.shape) for law in LAWS])[..., None, None]
    found = {"KL": KL}
    for name, units in {"Q": ("student", "student_"), "R": ("student", "teacher"), "v": ("student",)}.items():
        dims = ("law", "start", "m", "alpha", *units)
        values = 0.01 * levels * np.exp(spread * rng.standard_normal(shape))
        found[f"sgd_{name}"] = (dims, values[(..., *[slice(None)] * len(units), *[0] * (2 - len(units)))])
        gaussian = 0.01 * np.exp(spread * rng.standard_normal((STARTS, 4, 2, 2)))
        found[f"sgd_{name}_gaussian"] = (("start", "run", *units), gaussian[..., 0] if name == "v" else gaussian)
        for other in (f"scale_{name}", f"sgd_{name}_largest"):
            found[other] = (("start", *units), np.full((STARTS, *[2] * len(units)), 0.5))
        found[f"sgd_{name}_largest"] = found[f"sgd_{name}"]
    return xr.Dataset(found, {"law": list(LAWS), "m": list(M), "alpha": list(ALPHAS)})


def decided(statements, part):
    return [statement.holds for statement in statements if part in statement.text]


def test_standardised_mixtures():
    far = {STANDARDISED[SAMPLE]: 30.0}
    found = standardised_statements(numbers(lambda law, KL: far.get(law, 1.0)), "figure 5")
    assert decided(found, "are those of N(0, 1)") == [True, False]
    assert decided(found, "small against") == [True, False]
    assert decided(found, "do not depend on m") == [True, True]
    noisy = standardised_statements(numbers(lambda law, KL: 1.0, spread=2.0), "figure 5")
    assert decided(noisy, "are those of N(0, 1)") == [None, None]


def test_mixtures_that_are_not_standardised():
    laws = {COORDINATE: lambda KL: 10 * KL**0.5, MATCHED: lambda KL: 10 * KL**0.5}
    found = unstandardised_statements(numbers(lambda law, KL: laws.get(law, np.ones_like)(KL)), "figure 3")
    assert decided(found, "the farther the larger KL") == [True, None]
    assert decided(found, "tends to a limit") == [False, False, True, True]
    assert decided(found, "as far off") == [True]
    laws[MATCHED] = np.ones_like
    found = unstandardised_statements(numbers(lambda law, KL: laws.get(law, np.ones_like)(KL)), "figure 3")
    assert decided(found, "as far off") == [False]


def test_powers_are_those_of_power_laws():
    data = numbers(lambda law, KL: KL**0.3, spread=0.0)
    np.testing.assert_allclose(powers(data.sgd_v.isel(law=0, student=0), data.KL), 0.3, atol=1e-12)  # rounding


def test_tables():
    """The printed numbers, held against runs that differ from the ODE by just them, and by a tenth of them."""
    rng = np.random.default_rng(0)
    noise = 1 + 0.05 * rng.standard_normal((STARTS, 1, 1))
    for factor, agrees in ((1.0, True), (0.1, False)):
        mixtures = factor * np.moveaxis(ERF[1:10, None, None], 0, 2) * noise[..., None]
        data = xr.Dataset(
            {
                "sgd_rmse": (("start", "law", "alpha", "entry"), np.repeat(mixtures, len(LAWS), axis=1)),
                "printed": (("row", "entry"), ERF[:-1]),
                "printed_scale": ("entry", ERF[-1]),
                "scale": (("start", "entry"), ERF[-1] * noise[:, 0]),
            },
            {"law": list(LAWS), "alpha": list(ALPHAS), "entry": list(ENTRIES)},
        )
        for name in ("gaussian", "printed_form"):
            data[f"sgd_{name}"] = (("start", "entry"), factor * ERF[0] * noise[:, 0])
        data["sgd_limit"] = (("start", "entry"), 0.5 * ERF[0] * noise[:, 0])
        data["sgd_real"] = (("start", "entry"), np.full((STARTS, len(ENTRIES)), 0.5))
        found = tables.table_statements(data, "table 1")
        assert decided(found, "have the size of") == [agrees, agrees]
        assert decided(found, "nearest to print") == [not agrees]
        assert decided(found, "same for all alpha") == [True, True]
        assert decided(found, "real number") == decided(found, "symmetric") == [False]
        assert "| 0.090 |" in tables.table_page(data)


def test_selection_of_runs_that_differ_by_chance_lowers_those_alone():
    rng = np.random.default_rng(0)
    values = xr.DataArray(np.exp(rng.standard_normal((4, 40))), dims=("kind", "start"))
    values = values.assign_coords(kind=list(selection_of_runs.KINDS))
    seen, error = selection_of_runs.effect(values, selection_of_runs.KINDS[0])
    assert seen < 1 - 5 * error
    other, error = selection_of_runs.effect(values, selection_of_runs.KINDS[1])
    assert abs(other - 1) < 3 * error  # one seed in 370


def test_log_rmse_and_its_printed_form():
    theory = xr.DataArray([1.0, 2.0, 3.0], dims="time")
    found = xr.DataArray([1.0, 1.0, 5.0], dims="time")
    assert float(discrepancy.log_rmse(found, theory)) == pytest.approx(np.sqrt(5 / 3))
    printed, real = discrepancy.printed_log_rmse(found, theory)
    assert float(printed) == pytest.approx((np.sqrt(3) + 4) / 3)
    assert float(real) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [(0.0123, 0.0021, "0.012(2)"), (0.0123, 0.0011, "0.0123(11)"), (20.3, 3.1, "20(3)"), (0.11, 0.0199, "0.11(2)")],
)
def test_numbers_with_errors(mean, error, text):
    assert discrepancy.written(mean, error) == text


def test_a_statement_that_cannot_be_told():
    assert str(Statement("a", "paper", None, "b")) == "cannot tell: a (paper): b"
    assert [verdict("paper, figure 1", holds) for holds in (True, False, None)] == [
        "confirmed",
        "**contradicted**",
        "undecided",
    ]
