"""Rules for polynomials between kinks: on half-lines, and in the directions in which no kink varies."""

import math

import numpy as np
import pytest
from scipy.special import erfc

from meanfield.numerics.compiled.row_functions import Argument, Bound, compile_rows
from meanfield.numerics.gaussian_moments.choosing import change, choose_rule
from meanfield.numerics.gaussian_moments.half_lines import half_lines, write_half_line
from meanfield.numerics.gaussian_moments.kernel import Law, semidefinite_factor
from meanfield.numerics.gaussian_moments.rules import Kinks, Rule

NOTHING = np.zeros(1)


def moments_beyond(place, most):
    """Integrals of x^n exp(-x^2/2) over x > place, n = 0 ... most, by their recurrence."""
    edge = math.exp(-0.5 * place * place)
    found = [math.sqrt(math.pi / 2) * erfc(place / math.sqrt(2)), edge]
    for n in range(2, most + 1):
        found.append((n - 1) * found[n - 2] + place ** (n - 1) * edge)
    return np.array(found[: most + 1])


@pytest.mark.parametrize("count", [1, 2, 3, 9, 28])
def test_rules_on_half_lines_have_the_moments_of_the_normal_law(count):
    x, weight = np.empty((2, count))
    whole = moments_beyond(0.0, 2 * count)[: 2 * count]
    for place in np.random.default_rng(0).uniform(-9, 9, 40):
        write_half_line(half_lines(count), place, x, weight)
        got = (weight * x ** np.arange(2 * count)[:, None]).sum(axis=1)
        # in units of the moments of x > 0; rounding of the recurrence, and 5e-12 of a rule of many nodes, which
        # high moments amplify
        error = np.abs(got - moments_beyond(place, 2 * count)[: 2 * count]) / whole
        assert error[: min(2 * count, 12)].max() < 1e-10, place


def law_of(rng, width, apart=1.0):
    """Law of random correlated fields, the last of which is nearly the one before if `apart` is small."""
    A = rng.standard_normal((width, width)) / math.sqrt(width) + np.eye(width)
    A[-1] = A[-2] + apart * A[-1]
    return Law(0.3 * rng.standard_normal(width), semidefinite_factor(A @ A.T))


def rectified(y, a, b):
    return (a > 0) * (np.maximum(y, 0.0) - np.maximum(a, 0.0) - np.maximum(b, 0.0)) + 0.1 * y * b


KINKS = Kinks(np.eye(3), np.zeros(3))
RECTIFIED = compile_rows([Bound(rectified, tuple(map(Argument, range(3))), ())], 3, 1)


@pytest.mark.parametrize("apart", [1.0, 0.1, 0.01])
def test_averages_are_those_of_panels_that_know_of_no_polynomials(apart):
    law = law_of(np.random.default_rng(1), 3, apart)
    choice = choose_rule(RECTIFIED, NOTHING, [law], KINKS, 1e-9)
    assert (choice.rule.kind, choice.rule.degree) == ("kinked", 2)
    wanted = Rule("kinked", 40, KINKS, bounded=True).moments(RECTIFIED, NOTHING, law)
    # the error that is stated; panels of 40 nodes are off by 1e-11
    assert change([wanted], [choice.rule.moments(RECTIFIED, NOTHING, law)]) < choice.error + 1e-11


def test_directions_without_kinks_take_as_many_nodes_as_the_degree_asks_for():
    def majority(a, b, c, s):
        label = np.sign(a + b + c)
        return label * (s * label < 0)

    function = compile_rows([Bound(majority, tuple(map(Argument, range(4))), ())], 4, 1)
    kinks = Kinks(np.array([[1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]), np.zeros(2))
    R = np.array([0.1, -0.3, 0.5])
    covariance = np.block([[np.eye(3), R[:, None]], [R, np.eye(1)]])
    law = Law(np.zeros(4), semidefinite_factor(covariance))
    rule = Rule("kinked", 24, kinks, degree=0)
    assert rule.nodes(law).weights.size < 200  # two directions, one of them with a node each side of its kink
    _, along, products = rule.moments(function, NOTHING, law)
    omega = R.sum() / math.sqrt(3)
    of_label = (1 - omega) / math.sqrt(2 * math.pi)  # <yF> of the perceptron rule for the teacher (1, 1, 1)/sqrt(3)
    got = law.factor @ along[:, 0]
    # 24 nodes are off by 1e-11 here
    np.testing.assert_allclose(got[:3].sum() / math.sqrt(3), of_label, rtol=1e-9)
    np.testing.assert_allclose([got[3], products[0, 0]], [-of_label, math.acos(omega) / math.pi], rtol=1e-9)


@pytest.mark.parametrize("shape", ["tanh", "exp"])
def test_what_is_no_polynomial_between_kinks_is_not_taken_for_one(shape):
    def step(y, a, b):
        return np.sign(y) * (np.tanh(a) if shape == "tanh" else np.exp(-a * a)) + 0.0 * b

    function = compile_rows([Bound(step, tuple(map(Argument, range(3))), ())], 3, 1)
    law = law_of(np.random.default_rng(2), 3)
    choice = choose_rule(function, NOTHING, [law], Kinks(np.eye(3)[:1], np.zeros(1)), 1e-7)
    assert choice.rule.degree is None
    wanted = Rule("kinked", 56, choice.rule.kinks, bounded=True).moments(function, NOTHING, law)
    assert change([wanted], [choice.rule.moments(function, NOTHING, law)]) < choice.error
