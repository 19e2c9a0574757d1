"""Factors, nodes and random points of rules, and what is refused with which words."""

import math

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.numerics.compiled.row_functions import Argument, Bound, compile_rows
from meanfield.numerics.gaussian_moments.choosing import change, choose_rule
from meanfield.numerics.gaussian_moments.kernel import Law, semidefinite_factor
from meanfield.numerics.gaussian_moments.roughness import find_rough
from meanfield.numerics.gaussian_moments.rules import Kinks, Rule, TooManyNodesError

NOTHING = np.zeros(1)
PLANE = np.array([[1, 0.2], [0.2, 0.7]])
LAW = Law(np.zeros(2), semidefinite_factor(PLANE))
NO_KINKS = Kinks(np.empty((0, 2)), np.empty(0))


def rows_of(function, width=2):
    return compile_rows([Bound(function, tuple(map(Argument, range(width))))], width, 1)


def test_factors_leave_out_what_is_determined_and_keep_the_order():
    loadings = np.random.default_rng(0).normal(size=(6, 3)) * [[1], [1e-4], [0], [1e3], [1], [1]]
    loadings[4] = loadings[0] - 2e3 * loadings[1]
    covariance = loadings @ loadings.T
    factor = semidefinite_factor(covariance)
    assert factor.shape == (6, 3)
    for column, row in enumerate((0, 1, 3)):  # fields of very different sizes; the third does not vary
        assert factor[row, column] > 0
        assert (factor[:row, column] == 0).all()
    sizes = np.sqrt(np.diagonal(covariance))
    # the rounding of the covariance, and that of what is left out
    np.testing.assert_allclose(factor @ factor.T, covariance, atol=1e-12 * np.outer(sizes, sizes).max())
    assert (np.abs(factor @ factor.T - covariance) <= 1e-12 * np.outer(sizes, sizes)).all()


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_covariance_that_is_not_finite_has_no_factor(wrong):
    with pytest.raises(ValueError, match="not finite"):
        semidefinite_factor(np.array([[1.0, 0.0], [wrong, 1.0]]))


def corners(y, s, u):
    return np.maximum(s, 0) * (s > y) + (u > s) * y


def test_places_where_kinks_cross_are_ends_of_panels():
    # s = 0 and s = y end in the same direction and cross at y = 0, where the average over s has a kink.
    law = Law(np.array([0.3, -0.2, 0.1]), np.array([[1, 0, 0], [0.4, 0.8, 0], [-0.3, 0.5, 0.6]]))
    kinks = Kinks(np.array([[0.0, 1, 0], [-1, 1, 0], [0, -1, 1]]), np.zeros(3))
    function = rows_of(corners, width=3)
    medium, fine = ([Rule("kinked", order, kinks).moments(function, NOTHING, law)] for order in (30, 40))
    assert change(medium, fine) < 1e-11  # measured 2e-13; 1e-6 without what follows from pairs of kinks


def step(y, s):
    return (s > y) * np.tanh(s)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda y, s: np.sign(s - 0.3) * y, r"jumps from .* at s = 0\.3 \(with y"),
        (lambda y, s: np.maximum(s - 0.3, 0) + y, r"its slope jumps from 0 to 1 at s = 0\.3"),
        (lambda y, s: np.maximum(y + 0.2, 0) ** 2 * s, r"its curvature jumps from .* at y = -0\.2"),
        (step, "jumps from .* where no kink is declared; declare it"),
        (lambda y, s: np.exp(0.8 * s * s), "standard deviations of its arguments, so that they may not exist"),
        (lambda y, s: np.log(s), r"not finite at y = .*, s = -"),
        (lambda y, s: np.tanh(1e4 * s) + y, "the most that are tried"),
    ],
)
def test_functions_that_no_rule_resolves_are_refused_in_words(function, words):
    with pytest.raises(InputError, match=words):
        choose_rule(rows_of(function), NOTHING, [LAW], names=("y", "s"))


def test_a_declared_kink_is_the_remedy():
    choice = choose_rule(rows_of(step), NOTHING, [LAW], Kinks(np.array([[-1.0, 1.0]]), np.zeros(1)))
    assert choice.rule.kind == "kinked"
    assert choice.error < 1e-9


def test_one_kink_of_two_is_not_enough():
    kinks = Kinks(np.array([[1.0, 0.0]]), np.zeros(1))
    with pytest.raises(InputError, match="at s = 0 "):
        choose_rule(rows_of(lambda y, s: np.sign(s * y)), NOTHING, [LAW], kinks, names=("y", "s"))


@pytest.mark.parametrize(
    "function",
    [lambda y, s: np.tanh(50 * s) * y, lambda y, s: y**9 - s, lambda y, s: np.exp(s), lambda y, s: np.cos(30 * y * s)],
)
def test_smooth_functions_are_not_taken_for_rough(function):
    assert find_rough(rows_of(function), NOTHING, [LAW], NO_KINKS) is None


def test_declared_kinks_are_not_found_again():
    function = rows_of(lambda y, s: np.sign(y) + np.maximum(s, 0) + np.maximum(s - y - 1, 0) ** 2)
    normals, levels = np.array([[1.0, 0], [0, 1], [-1, 1]]), np.array([0.0, 0, 1])
    assert find_rough(function, NOTHING, [LAW], Kinks(normals, levels)) is None
    for missing, derivative in enumerate((0, 1, 2)):
        others = Kinks(np.delete(normals, missing, axis=0), np.delete(levels, missing))
        assert find_rough(function, NOTHING, [LAW], others).derivative == derivative


def test_functions_that_grow_have_rules_that_reach_further():
    function = rows_of(lambda y, s: np.exp(2 * y))
    choice = choose_rule(function, NOTHING, [LAW])
    moments = choice.rule.moments(function, NOTHING, LAW)
    assert choice.rule.reach > 10  # half of <f^2> comes from beyond 4 standard deviations
    assert abs(moments.products[0, 0] / math.exp(8) - 1) < choice.error < 1e-9


@pytest.mark.parametrize(
    "function", [lambda y, s: np.tanh(s) * y, lambda y, s: (s * y < 0) * y, lambda y, s: np.log(s)]
)
def test_functions_over_narrow_laws_are_not_taken_for_polynomials(function):
    narrow = Law(np.full(2, 0.5), 1e-6 * LAW.factor)
    assert choose_rule(rows_of(function), NOTHING, [narrow]).rule.kind == "smooth"


def test_random_points_are_off_by_as_much_as_their_scatter_says():
    function = rows_of(lambda a, b, c, d, e: np.tanh(a + b - c) + d * e, width=5)
    law = Law(np.zeros(5), semidefinite_factor(np.eye(5) + 0.1))
    choice = choose_rule(function, NOTHING, [law], tolerance=1e-2)
    assert choice.rule.kind == "random"
    assert choice.error < 1e-2
    parts = [rule.moments(function, NOTHING, law).first for rule in choice.rule.randomisations()]
    whole = choice.rule.moments(function, NOTHING, law).first
    np.testing.assert_allclose(np.mean(parts, axis=0), whole, atol=1e-14)  # rounding
    # By symmetry tanh averages to 0. Points, and so the outcome, are always the same.
    assert abs(whole[0] - 0.1) < 3.5 * np.std(parts, ddof=1) / math.sqrt(8)


def test_one_rule_serves_components_of_very_different_sizes():
    function = rows_of(lambda y, s: np.tanh(3 * s))
    small = Law(np.zeros(2), 1e-6 * LAW.factor)
    choice = choose_rule(function, NOTHING, [small, LAW])
    alone = choose_rule(function, NOTHING, [LAW])
    assert (choice.rule.kind, choice.rule.order) == (alone.rule.kind, alone.rule.order)
    nothing = Law(np.ones(2), np.empty((2, 0)))
    moments = choice.rule.moments(function, NOTHING, nothing)
    assert (moments.first[0], moments.along.shape) == (math.tanh(3), (0, 1))


def test_rules_for_one_direction_do_not_fill_the_memory_in_four():
    rule = Rule("smooth", 512, NO_KINKS)
    with pytest.raises(TooManyNodesError, match="in 4 Gaussian directions take more than 4,000,000 nodes"):
        rule.nodes(Law(np.zeros(4), np.eye(4)))
