"""Functions at many places from their values at few: accuracy, work, and what cannot be resolved."""

import numpy as np
import pytest

from meanfield.ingredients.priors import make_prior, potential_of
from meanfield.mckean_vlasov.stationary.interpolation import FEWEST, MOST_PIECES, at_many, resolved_pieces
from meanfield.mckean_vlasov.stationary.panels import tilted_moments
from meanfield.numerics.compiled.scalar_functions import compile_scalar


class Counted:
    """Functions that count the values that they were asked for."""

    def __init__(self, *functions, status=0):
        self.functions, self.status, self.asked = functions, status, 0

    def __call__(self, x):
        self.asked += len(x)
        return np.column_stack([f(x) for f in self.functions]), self.status


def with_roundings(functions, size):
    """Functions with what rounding may move them by."""

    def rounded(x):
        values, status = functions(x)
        return values, np.full_like(values, size), status

    return rounded


def exactly(functions):
    return with_roundings(functions, 0.0)


@pytest.mark.parametrize("width", [3.0, 0.1, 1e-3])
def test_smooth_functions_cost_few_values_however_sharp_their_turn_is(width):
    functions = Counted(
        lambda x: np.tanh((x - 0.3) / width), lambda x: x**4, lambda x: np.logaddexp(x / width, -x / width)
    )
    places = np.linspace(-7.0, 8.0, 30_001)
    values, status = at_many(functions, places)
    exact, _ = functions(places)
    assert status == 0
    size = abs(exact).max(0)
    np.testing.assert_allclose(values / size, exact / size, rtol=0, atol=1e-14)  # 8 times the rounding seen
    assert functions.asked - len(places) < 4000  # a piece of 20 values for each halving and side: log2(15/1e-3) = 14


def test_what_cannot_be_resolved_is_evaluated_everywhere():
    rng = np.random.default_rng(3)
    noise = rng.standard_normal(5000)
    places = np.linspace(0.0, 1.0, 5000)
    functions = Counted(lambda x: noise[np.rint(x * 4999).astype(int)])
    values, _ = at_many(functions, places)
    np.testing.assert_array_equal(values[:, 0], noise)
    assert functions.asked < 2 * len(places)


def test_a_jump_at_the_end_is_seen():
    """Under a bistable prior with little noise the mean jumps at tilt 0, where the tilts of an even one begin."""
    places = np.concatenate([[0.0], np.geomspace(1e-7, 5.0, 3000)])
    functions = Counted(lambda x: np.tanh(1e5 * x))
    values, _ = at_many(functions, places)
    exact = np.tanh(1e5 * places)
    np.testing.assert_allclose(values[:, 0], exact, rtol=0, atol=1e-13)  # three last coefficients of 3e-14


def test_few_places_and_failures_pass_through():
    few = Counted(np.sqrt)
    values, _ = at_many(few, np.linspace(0.0, 1.0, FEWEST))
    np.testing.assert_array_equal(values[:, 0], np.sqrt(np.linspace(0.0, 1.0, FEWEST)))
    values, status = at_many(Counted(np.sqrt, status=-1), np.linspace(0.0, 1.0, 5000))
    assert status == -1
    assert values.shape == (5000, 1)


@pytest.mark.parametrize(("name", "a", "b"), [("double_well", -1.0, 300.0), ("l1", -1e3, 1e3), ("cauchy", -1.0, 5.0)])
def test_averages_over_densities_are_those_of_each_tilt(name, a, b):
    prior = make_prior(name)
    potential, kinks = compile_scalar(potential_of(prior)), np.array(sorted(prior.kinks))
    tilts = np.unique(np.abs(np.random.default_rng(1).standard_normal(3000)) * 200.0)
    one_by_one, _ = tilted_moments(potential, a, b, tilts, kinks, 1.0)
    found, status = at_many(lambda s: tilted_moments(potential, a, b, s, kinks, 1.0), tilts)
    assert status == 0
    scale = abs(one_by_one).max(0)
    np.testing.assert_allclose(found / scale, one_by_one / scale, rtol=0, atol=1e-13)  # as before; and rounding


def test_pieces_end_where_a_layer_asks_for_it():
    """Gauss-Legendre rules on the pieces integrate functions with layers at any place and of any width."""
    functions = Counted(lambda x: np.tanh((x - 0.3) / 1e-6), lambda x: np.tanh((x + 0.2) / 1e-3))
    ends = resolved_pieces(exactly(functions), -1.0, 1.0)
    x, weight = np.polynomial.legendre.leggauss(12)
    half = 0.5 * np.diff(ends)[:, None]
    found, _ = functions((ends[:-1, None] + half * (x + 1)).ravel())
    exact = [-0.6, 0.4]  # odd about 0.3 and -0.2
    assert (half * weight).ravel() @ found == pytest.approx(exact, abs=1e-11)  # the accuracy of the pieces
    assert len(ends) < 100  # two pieces for each of 21 and 11 halvings


def test_pieces_end_where_rounding_or_failures_begin():
    rng = np.random.default_rng(3)
    rough = Counted(lambda x: rng.standard_normal(len(x)))
    assert len(resolved_pieces(exactly(rough), 0.0, 1.0)) <= 2 * MOST_PIECES
    assert resolved_pieces(exactly(Counted(np.sqrt, status=-1)), 0.0, 1.0).tolist() == [0.0, 0.5, 1.0]


def test_pieces_follow_a_layer_but_not_the_rounding_beside_it():
    rng = np.random.default_rng(3)
    rounded = Counted(lambda x: np.tanh((x - 0.3) / 1e-3) + 1e-9 * rng.uniform(-1.0, 1.0, len(x)))
    ends = resolved_pieces(with_roundings(rounded, 1e-9), -1.0, 1.0)
    assert len(ends) < 30  # two pieces for each of 11 halvings; rounding taken for a function asks for `MOST_PIECES`
