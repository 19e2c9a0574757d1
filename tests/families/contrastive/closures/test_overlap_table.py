"""The table of a closure with one feature: against the evaluation that it stands for, and against the oracle beyond."""

from itertools import product

import numpy as np
import pytest

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.expectation import averages_at, interpolated, is_tabulated, mean_outputs
from meanfield.families.contrastive.closures.overlap_table import CENTRED_GROUPS, GROUPS, overlap_table
from tests.oracles.plain_steps import HIDDEN, Reference, make_closure, make_problem

MANY = {
    "law": "discrete",
    "values": np.random.default_rng(2).normal(0.1, 1, 400).tolist(),
    "probabilities": [1 / 400] * 400,
}
LAWS = [*HIDDEN, MANY]
CASES = [
    pytest.param(activation, law, noise, centering, marks=() if i % 5 in (0, 3) else pytest.mark.slow)
    for i, (activation, law) in enumerate(product(("relu", "hard_tanh", "tanh", "cubic", "softplus"), LAWS))
    for noise, centering in [(("none", "opposite")[i % 2], ("none", "batch")[i // 2 % 2])]
]
"""The fast run has two activations for each law, and each activation with both noises and both centrings."""


def sizes(averages):
    """For each average the largest of those that it is added to."""
    groups = np.array(GROUPS if averages.size == len(GROUPS) else CENTRED_GROUPS)
    return np.array([np.abs(averages[groups == group]).max() for group in groups])


@pytest.mark.parametrize(("activation", "law", "noise", "centering"), CASES)
def test_the_table_holds_what_the_evaluation_gives(activation, law, noise, centering):
    expectation = make_closure(activation, [law], noise, centering).expectation
    assert expectation.reach > 0.9999
    angles = np.random.default_rng(0).uniform(-1, 1, 12) * np.arcsin(expectation.reach)
    for q in (0.0, 0.9999, -0.9999, *np.sin(angles)):
        point = np.array([q])
        assert is_tabulated(expectation, point)
        right = averages_at(expectation.table, expectation.mixture, point)
        found = interpolated(expectation, point)
        np.testing.assert_array_less(np.abs(found - right), 2e-11 * sizes(right))  # RESOLVED, and 1/q^10 inside a panel


@pytest.mark.parametrize("centering", ["none", "population", "batch"])
def test_beyond_the_table_the_closure_goes_on(centering):
    """With an atom on the kink, where <sigma''> grows like the inverse root of 1 - q^2."""
    problem = make_problem("relu", ["three_point"], "none", centering)
    closure = Closure(problem)
    end = closure.expectation.reach
    for q in (end - 1e-9, end + 1e-9, 0.999999, -0.999999):
        assert is_tabulated(closure.expectation, np.array([q])) == (abs(q) < end)
        reference = Reference(problem, [q])
        g, Lambda = closure([q])
        assert abs(g[0] - reference.g[0]) <= 1e-9 * reference.g_scale  # what is asked for
        assert abs(Lambda - reference.Lambda) <= 1e-9 * reference.Lambda_scale  # what is asked for


def test_one_table_for_every_learning_rate_and_batch_size():
    overlap_table.cache_clear()
    first, second, population = (
        make_closure("tanh", ["laplace"], "none", centering, tau, m).expectation.overlap
        for centering, tau, m in [("batch", 0.1, 4), ("batch", 0.2, 7), ("population", 0.1, 4)]
    )
    assert first is second
    assert first is population
    assert make_closure("tanh", ["laplace"]).expectation.overlap is not first
    assert make_closure("tanh", ["uniform"], centering="batch").expectation.overlap is not first


def test_what_cannot_be_tabulated_is_evaluated(monkeypatch):
    """The table ends where its panels suffice, and there may be none."""
    expected = make_closure("hard_tanh", [MANY])([0.7])
    for most, reach in ((20, 0.5), (2, 0.0)):
        overlap_table.cache_clear()
        monkeypatch.setattr("meanfield.families.contrastive.closures.overlap_table.MOST_PANELS", most)
        closure = make_closure("hard_tanh", [MANY])
        assert (closure.expectation.reach > 0) == (reach > 0)
        assert closure.expectation.reach < 0.9999
        np.testing.assert_allclose(closure([0.7])[0], expected[0], rtol=1e-10)  # RESOLVED, of the larger average
        np.testing.assert_allclose(closure([0.7])[1], expected[1], rtol=1e-10)  # the same
    overlap_table.cache_clear()


@pytest.mark.parametrize("activation", ["softplus", "quadratic", "cubic"])
@pytest.mark.parametrize("hidden", [["three_point"], ["laplace"], ["three_point", "uniform"], ["laplace"] * 3])
def test_mean_outputs(activation, hidden):
    """From the table of one feature, by quadrature, and in closed form for polynomials."""
    closure = make_closure(activation, hidden, "unequal", "population")
    assert (closure.expectation.polynomial.coefficient.size > 0) == (activation != "softplus")
    for radius in (0.0, 0.3, 0.99, 0.999999):
        q = np.full(len(hidden), radius / np.sqrt(len(hidden)))
        *_, first, second, _ = averages_at(closure.expectation.table, closure.expectation.mixture, q)
        means = mean_outputs(closure.expectation, q)
        np.testing.assert_allclose(means, [first, second], rtol=1e-11, atol=3e-15)  # RESOLVED; rounding of odd averages


def test_overlaps_that_are_not_finite_give_no_number():
    for hidden in (["laplace"], ["uniform", "laplace"]):
        closure = make_closure("tanh", hidden, "none", "population")
        for value in (np.nan, np.inf):
            q = np.array([value, 0.1][: len(hidden)])
            g, Lambda = closure(q)
            assert np.all(np.isnan(g))
            assert not np.isfinite(Lambda)
            assert np.all(np.isnan(mean_outputs(closure.expectation, q)))


@pytest.mark.parametrize("centering", ["none", "population", "batch"])
def test_a_closure_without_the_table_is_the_same_function(centering):
    problem = make_problem("tanh", ["three_point"], "none", centering)
    table, direct = Closure(problem), Closure(problem, tabulated=False)
    for overlap in (-0.999, -0.3, 0.0, 0.7):
        q = np.array([overlap])
        np.testing.assert_allclose(np.hstack(table(q)), np.hstack(direct(q)), rtol=1e-9, atol=1e-13)  # of the table
