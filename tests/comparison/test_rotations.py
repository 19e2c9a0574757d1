from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from meanfield.comparison import rotations
from meanfield.comparison.rotations import (
    FEWEST_WEIGHTS,
    Deviations,
    DeviationsAt,
    batched,
    deviations_from,
    joined,
    one_sample,
    rotation_test,
    two_samples,
)
from meanfield.comparison.sides import beyond_errors


def only(values):
    return values[..., 0]


def four_errors(share, count):
    """Four standard errors of a share among so many trials."""
    return 4 * np.sqrt(share * (1 - share) / count)


def columns(rows, allowance=0.0):
    """Deviations of several numbers, each judged by its own scatter."""
    return Deviations(rows[..., None], np.full((rows.shape[1], 1), allowance), {"q": only})


def functions(rows):
    """Deviations of functions of 12 points, judged by their integral and by their largest value."""
    measures = {"W1": lambda values: values.sum(axis=-1), "KS": lambda values: values.max(axis=-1)}
    return Deviations(rows, np.zeros(rows.shape[1:]), measures)


def correlated(rng, runs, places):
    """Paths whose neighbouring values, and whose scales, hang together."""
    return np.cumsum(rng.normal(size=(runs, places)), axis=1) * np.linspace(0.1, 5.0, places)


@pytest.mark.parametrize("values", [[0.3, 1.1, 0.9, -0.2], [2.0, 2.2], [0.1, -0.2, 0.3, 0.25, -0.4, 0.05]])
def test_one_number_has_the_p_value_of_the_t_test(values):
    outcome = rotation_test(one_sample(np.ones(len(values))), [columns(np.array(values)[:, None])])
    right = stats.ttest_1samp(values, 0.0)
    assert outcome.p_value == pytest.approx(right.pvalue, abs=four_errors(right.pvalue, 4999))  # rotations are fixed
    assert outcome.deviations["q"][0] == pytest.approx(abs(right.statistic), rel=1e-12)  # rounding
    assert outcome.standard_errors["q"][0] == pytest.approx(stats.sem(values), rel=1e-12)  # rounding
    assert outcome.levels["q"] == pytest.approx(stats.t.isf(0.025, len(values) - 1), rel=0.35)  # two runs: a wide tail


def test_two_sets_have_the_p_value_of_the_t_test():
    first, second = np.array([0.3, 1.1, 0.9, -0.2]), np.array([1.0, 1.4, 2.2])
    rows = np.concatenate([first, second])[:, None]
    outcome = rotation_test(two_samples(np.ones(4), np.ones(3)), [columns(rows + 7.0)])
    right = stats.ttest_ind(first, second)
    assert outcome.p_value == pytest.approx(right.pvalue, abs=four_errors(right.pvalue, 4999))  # rotations are fixed
    assert outcome.deviations["q"][0] == pytest.approx(abs(right.statistic), rel=1e-9)  # rounding, after taking off 7


def test_sets_of_other_variance_are_those_of_weighted_least_squares():
    """Runs at N = 100 and 400, whose variances are as 4 to 1."""
    first, second = np.array([0.3, 1.1, 0.9, -0.2]), np.array([1.0, 1.1, 0.9])
    root = np.repeat([10.0, 20.0], [4, 3])
    design = root[:, None] * np.column_stack([np.ones(7), np.repeat([0.0, 1.0], [4, 3])])
    rows = root * np.concatenate([first, second])
    solution, squares, *_ = np.linalg.lstsq(design, rows)
    error = np.sqrt(squares[0] / 5 * np.linalg.inv(design.T @ design)[1, 1])
    sizes = np.full(4, 100.0), np.full(3, 400.0)
    outcome = rotation_test(two_samples(*sizes), [columns(rows[:, None])])
    assert outcome.standard_errors["q"][0] == pytest.approx(error, rel=1e-10)  # rounding
    assert outcome.deviations["q"][0] == pytest.approx(abs(solution[1]) / error, rel=1e-10)  # rounding


def many_quantities(rng, runs):
    """Ten measures: of paths, of nearly the same ones in other units, of functions, and of independent numbers."""
    paths = correlated(rng, runs, 24)
    noisy = paths[:, :6] + 0.1 * rng.normal(size=(runs, 6))
    alone = [replace(columns(rng.normal(size=(runs, 2))), measures={f"Q{i}": only}) for i in range(6)]
    nearly = replace(columns(1e-3 * noisy), measures={"r": only})
    return [columns(paths[:, :12]), nearly, functions(paths.reshape(runs, 2, 12)), *alone]


def share_that_differs(runs, count, turns, monkeypatch, shift=0.0):
    """Share of `count` comparisons, with rotations of their own, whose p is at most 5 %; one quantity is shifted."""
    monkeypatch.setattr(rotations, "ROTATIONS", turns)
    rng = np.random.default_rng(runs)
    found = 0
    for seed in range(count):
        monkeypatch.setattr(rotations, "SEED", seed)
        quantities = many_quantities(rng, runs)
        quantities[-1] = replace(quantities[-1], rows=quantities[-1].rows + shift)
        found += rotation_test(one_sample(np.ones(runs)), quantities).p_value <= 0.05
    return found / count


def test_one_true_pair_in_twenty_differs(monkeypatch):
    """Any covariance, more numbers than runs, ten measures; ties among these would leave no alarm."""
    count = 100
    # The rate is exact for any number of rotations.
    share = np.mean([share_that_differs(runs, count, 99, monkeypatch) for runs in (2, 4, 8, 16)])
    assert share == pytest.approx(0.05, abs=four_errors(0.05, 4 * count))  # chance: 6e-5


@pytest.mark.slow
@pytest.mark.parametrize("runs", [4, 8, 16])
@pytest.mark.parametrize("turns", [99, 399])
def test_one_true_pair_in_twenty_of_many_thousand_differs(runs, turns, monkeypatch):
    count = 8000  # the rate is 5 % to one standard error of 0.24 %
    share = share_that_differs(runs, count, turns, monkeypatch)
    assert share == pytest.approx(0.05, abs=four_errors(0.05, count))  # chance: 6e-5, of six cases 4e-4


@pytest.mark.parametrize(("runs", "shift"), [(4, 8.0), (8, 2.5), (16, 1.5)])
def test_a_shift_of_one_quantity_in_ten_is_found(runs, shift, monkeypatch):
    """By theory: Student's law of one number with the mean `shift`, at 5 % over the 19 numbers that are independent."""
    count, freedom = 30, runs - 1
    allowed = stats.t.isf(0.025 / 19, freedom)
    power = stats.nct.sf(allowed, freedom, shift * np.sqrt(runs))
    share = share_that_differs(runs, count, 399, monkeypatch, shift)
    assert share >= power - four_errors(
        power, count
    )  # two numbers are shifted, and others hang together: more is found


def test_levels_are_exceeded_when_the_verdict_says_so():
    """A difference is beyond a level if and only if p is at most 5 %, up to ties of rotations."""
    rng = np.random.default_rng(5)
    for shift in np.linspace(0.0, 4.0, 16):
        rows = correlated(rng, 6, 10) + shift
        outcome = rotation_test(one_sample(np.ones(6)), [columns(rows), functions(rows[:, None])])
        beyond = any(np.max(outcome.deviations[name]) > level for name, level in outcome.levels.items())
        assert beyond == (outcome.p_value <= 0.05) or abs(outcome.p_value - 0.05) < 1e-3  # ties of a few rotations


def test_errors_within_the_allowance_raise_no_alarm():
    rng = np.random.default_rng(6)
    rows = 0.1 * rng.normal(size=(8, 5)) + 1.0
    contrast = one_sample(np.ones(8))
    assert rotation_test(contrast, [columns(rows)]).p_value <= 0.05
    assert rotation_test(contrast, [columns(rows, 1.1)]).p_value > 0.9
    assert rotation_test(contrast, [columns(rows, 0.5)]).p_value <= 0.05
    assert rotation_test(contrast, [columns(rows, 1.1)], with_allowance=False).p_value <= 0.05


@pytest.mark.parametrize("allowed", [0.01, 0.3, 1.0, 6.0])
def test_a_prediction_that_is_off_by_its_stated_error_is_as_likely_as_without(allowed):
    """Of one Gaussian number with the mean `allowed`, whose square has the noncentral law of chi square."""
    beyond = np.sqrt(stats.ncx2.isf(0.05, 1, allowed**2))
    found = beyond_errors(np.array([-beyond, beyond]), np.full(2, allowed), np.ones(2), 1e9)
    assert found == pytest.approx(stats.norm.isf(0.025) * np.array([-1.0, 1.0]), rel=1e-6)  # 1e9 is no infinity


@pytest.mark.parametrize("allowed", [0.3, 1.0])
def test_one_set_of_four_runs_in_twenty_is_further_off_than_its_stated_error(allowed):
    """Or a few less, as a standard error that is small by chance takes more errors off; in full, 3.3 and 2.5 %."""
    x = np.random.default_rng(8).normal(allowed, 2.0, (20_000, 4))  # a standard error of 1
    error = x.std(axis=1, ddof=1) / 2.0
    left = beyond_errors(x.mean(axis=1), np.full(len(x), allowed), error, 3)
    share = np.mean(np.abs(left / error) > stats.t.isf(0.025, 3))
    assert share == pytest.approx(0.0475, abs=0.0025 + four_errors(0.0475, len(x)))  # 4.6 and 4.5 % of 200,000 others


def test_what_is_far_beyond_errors_loses_all_of_them():
    assert beyond_errors(np.array([50.0, 50.0]), np.ones(2), np.array([0.1, 0.0]), 1e9) == pytest.approx(49.0)


def test_many_runs_are_batched_without_changing_the_mean():
    rng = np.random.default_rng(7)
    x = rng.normal(1.0, 2.0, size=(1001, 3))
    rows, sizes = batched(x)
    assert sizes.sum() == 1001
    assert (np.sqrt(sizes)[:, None] * rows).sum(axis=0) == pytest.approx(x.sum(axis=0), rel=1e-12)  # rounding
    outcome = rotation_test(one_sample(sizes), [columns(rows - np.sqrt(sizes)[:, None])])
    # the same variance from 127 instead of 1000 degrees of freedom
    found, right = outcome.standard_errors["q"], stats.sem(x)
    assert found == pytest.approx(right, rel=0.26)  # 4 standard errors 1/sqrt(2 * 127); chance: 2e-4 each
    assert outcome.p_value > 0.05


def uniform_weights(rng, runs, count):
    """Deviations at three places of so many independent weights of each run from their law."""
    points = np.linspace(0.03, 0.97, 32)
    each = [rng.uniform(size=(runs, count)) for _ in range(3)]
    rows = [deviations_from(w, np.ones_like(w), points, points) for w in each]
    return joined([DeviationsAt((i,), np.gradient(points), rows[i], each[i].size) for i in range(3)], ("W1", "KS"))


@pytest.mark.parametrize(("runs", "count"), [(4, 16), (8, 8), (16, 4)])
def test_the_fewest_weights_differ_about_as_often_as_they_should(runs, count, monkeypatch):
    """Of one weight fewer in each run nothing is judged: four runs of one weight each would differ in 32 %."""
    assert runs * count == FEWEST_WEIGHTS
    monkeypatch.setattr(rotations, "ROTATIONS", 99)
    rng, trials, found = np.random.default_rng(1), 200, 0
    for seed in range(trials):
        monkeypatch.setattr(rotations, "SEED", seed)
        found += rotation_test(one_sample(np.ones(runs)), [uniform_weights(rng, runs, count)]).p_value <= 0.05
    assert found / trials <= 0.06 + four_errors(0.06, trials)  # 6 % of 2000 others; chance: 1e-4
    few = uniform_weights(rng, runs, count - 1)
    assert few.rows.shape[1] == 0
    assert few.scarce == 3
