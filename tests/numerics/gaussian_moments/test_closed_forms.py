"""Averages by rules that were chosen are those of closed forms (perceptron rules, phase retrieval, soft committees)."""

import math

import numpy as np
import pytest
from scipy.special import erf

from meanfield.numerics.compiled.row_functions import Argument, Bound, compile_rows
from meanfield.numerics.gaussian_moments.choosing import choose_rule
from meanfield.numerics.gaussian_moments.kernel import Law, semidefinite_factor
from meanfield.numerics.gaussian_moments.rules import Kinks, Rule

NOTHING = np.zeros(1)
Y, S = Argument(0), Argument(1)
SIGNS = Kinks(np.eye(2), np.zeros(2))


def rows_of(*functions, arguments=(Y, S), width=2, shape=()):
    return compile_rows([Bound(function, arguments, shape) for function in functions], width, 1)


def law_of(covariance):
    covariance = np.array(covariance, dtype=float)
    return Law(np.zeros(len(covariance)), semidefinite_factor(covariance))


def hebb(y, s):
    return np.sign(y)


def perceptron(y, s):
    return np.sign(y) * (s * y < 0)


def adatron(y, s):
    return -s * (s * y < 0)


def perceptron_averages(R, beta, Q):
    """<yF>, <sF> and <F^2> of the three rules, shape (3, 3), with beta = sqrt(1 - omega^2)."""
    J = math.sqrt(Q)
    omega = R / J
    alpha = math.atan2(beta, omega)
    less = beta**2 / (1 + omega)  # 1 - omega
    triangle, other = alpha - omega * beta, beta - omega * alpha
    if alpha < 0.02:  # else they cancel
        triangle = 2 * alpha**3 / 3 * (1 - alpha**2 / 5 + 2 * alpha**4 / 105)
        other = alpha**3 / 3 * (1 - alpha**2 / 10 + alpha**4 / 280)
    root = math.sqrt(2 / math.pi)
    return np.array(
        [
            [root, R * root, 1],
            [less * root / 2, -J * less * root / 2, alpha / math.pi],
            [J * other / math.pi, -Q * triangle / math.pi, Q * triangle / math.pi],
        ]
    )


def averages(function, rule, law):
    """<yF>, <sF> and <F^2> of each output."""
    _, along, products = rule.moments(function, NOTHING, law)
    return np.column_stack([(law.factor @ along).T, np.diagonal(products)])


@pytest.fixture(scope="module")
def perceptrons():
    return rows_of(hebb, perceptron, adatron)


def test_a_chosen_rule_has_the_averages_of_perceptrons(perceptrons):
    law = law_of([[1, 0.2], [0.2, 1]])
    choice = choose_rule(perceptrons, NOTHING, [law], SIGNS)
    assert choice.rule.kind == "kinked"
    for R, Q in ((0.2, 1.0), (-0.4, 0.3), (0.55, 0.7)):
        wanted = perceptron_averages(R, math.sqrt(1 - R * R / Q), Q)
        # a factor of 10 on the tolerance of the choice, for laws near the one of the choice
        np.testing.assert_allclose(averages(perceptrons, choice.rule, law_of([[1, R], [R, Q]])), wanted, rtol=1e-9)


@pytest.mark.parametrize(("apart", "error"), [(0.5, 1e-12), (1e-4, 1e-12), (1e-6, 1e-12), (1e-8, 1e-12)])
def test_panels_of_20_points_resolve_alignment(perceptrons, apart, error):
    # The factor is made from 1 - omega itself: what the covariance loses to rounding is a matter of its maker.
    omega, beta = 1 - apart, math.sqrt(apart * (2 - apart))
    law = Law(np.zeros(2), np.array([[1, 0], [omega, beta]]))
    got = averages(perceptrons, Rule("kinked", 20, SIGNS), law)
    # in units of the bounds sqrt(<F^2>) of <yF> and <sF>; measured 1e-12, 3e-13, 3e-13, 3e-13
    wanted = perceptron_averages(omega, beta, 1.0)
    scale = np.sqrt(wanted[:, 2:])
    assert (np.abs(got - wanted)[:, :2] / scale).max() < error
    np.testing.assert_allclose(got[:, 2], wanted[:, 2], rtol=1e-11)


@pytest.mark.parametrize("apart", [1e-4, 1e-8, 0.0])
def test_a_covariance_near_alignment_loses_its_own_digits_only(perceptrons, apart):
    R = 1 - apart
    got = averages(perceptrons, Rule("kinked", 20, SIGNS), law_of([[1, R], [R, 1]]))
    wanted = perceptron_averages(R, math.sqrt((1 - R) * (1 + R)), 1.0)
    # 1 - omega^2 is formed from the covariance with an error of its rounding, 1e-16
    lost = 4e-16 / max(apart, 1e-16) + 1e-11
    np.testing.assert_allclose(got, wanted, rtol=lost, atol=0 if apart else 1e-15)


def test_the_averages_of_phase_retrieval_are_exact():
    function = rows_of(lambda y, s: (y * y - s * s) * s)
    R, Q = 0.2, 0.7
    law = law_of([[1, R], [R, Q]])
    choice = choose_rule(function, NOTHING, [law])
    assert (choice.rule.kind, choice.rule.order) == ("polynomial", 4)
    wanted = [3 * R * (1 - Q), Q + 2 * R**2 - 3 * Q**2, 3 * Q + 12 * R**2 - 6 * Q**2 - 24 * Q * R**2 + 15 * Q**3]
    np.testing.assert_allclose(averages(function, choice.rule, law)[0], wanted, rtol=1e-12)  # rounding


def slope_times_output(a, n, b):
    return math.sqrt(2 / math.pi) * np.exp(-a * a / 2) * n * erf(b / np.sqrt(2))


def two_slopes_two_outputs(a, b, c, d):
    return 2 / math.pi * np.exp(-(a * a + b * b) / 2) * erf(c / np.sqrt(2)) * erf(d / np.sqrt(2))


def i3(C):
    """<g'(x_i) x_n g(x_j)> of g = erf(x / sqrt(2)), for the fields i, n, j."""
    (ii, i_n, ij), (_, _, nj), (_, _, jj) = C
    return 2 / math.pi / math.sqrt((1 + ii) * (1 + jj) - ij**2) * (nj * (1 + ii) - i_n * ij) / (1 + ii)


def i4(C):
    """<g'_a g'_b g_c g_d>."""
    (aa, ab, ac, ad), (_, bb, bc, bd), (_, _, cc, cd), (_, _, _, dd) = C
    l4 = (1 + aa) * (1 + bb) - ab**2
    l0 = l4 * cd - bc * bd * (1 + aa) - ac * ad * (1 + bb) + ab * ac * bd + ab * ad * bc
    l1 = l4 * (1 + cc) - bc**2 * (1 + aa) - ac**2 * (1 + bb) + 2 * ab * ac * bc
    l2 = l4 * (1 + dd) - bd**2 * (1 + aa) - ad**2 * (1 + bb) + 2 * ab * ad * bd
    return 4 / math.pi**2 / math.sqrt(l4) * math.asin(l0 / math.sqrt(l1 * l2))


FIELDS = np.array([[1, 0.3, 0.05], [0.3, 0.5, 0.1], [0.05, 0.1, 0.4]])


@pytest.mark.parametrize(
    ("function", "formula", "fields"), [(slope_times_output, i3, [0, 1, 2]), (two_slopes_two_outputs, i4, [0, 1, 2, 0])]
)
def test_the_averages_of_soft_committees_are_those_of_saad_and_solla(function, formula, fields):
    compiled = rows_of(function, arguments=tuple(map(Argument, fields)), width=3)
    covariance = FIELDS[np.ix_(fields, fields)]
    law = law_of(FIELDS)
    choice = choose_rule(compiled, NOTHING, [law])
    moments = choice.rule.moments(compiled, NOTHING, law)
    assert choice.rule.kind == "smooth"
    assert abs(moments.first[0] - formula(covariance)) < choice.error * math.sqrt(moments.products[0, 0])
