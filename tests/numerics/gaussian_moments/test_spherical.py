"""Homogeneous functions with kinks through the origin are averaged over the unit sphere."""

import math

import numpy as np
import pytest

from meanfield.numerics.compiled.row_functions import Argument, Bound, compile_rows
from meanfield.numerics.gaussian_moments.choosing import change, choose_rule
from meanfield.numerics.gaussian_moments.expansion import Expansion
from meanfield.numerics.gaussian_moments.kernel import Law, semidefinite_factor
from meanfield.numerics.gaussian_moments.rules import Kinks, Rule

KINKS = Kinks(np.eye(3), np.zeros(3))
NOTHING = np.zeros(1)


def rectified(y, a, b):
    return (a > 0) * (np.maximum(y, 0.0) - np.maximum(a, 0.0) - np.maximum(b, 0.0))


def biased(y, bias):
    return np.maximum(y, 0.0) - bias


def mistaken(y, a):
    return np.sign(y) * (y * a < 0)


def of_signs(y, a, b):
    return np.sign(y * a * b)


def steep(y, a, b):
    return np.maximum(y, 0.0) * (a - b) ** 3


def switched(y, c):
    return np.where(c > 0.05, y * np.abs(y), np.maximum(y, 0.0))


def gated(y, c):
    return np.maximum(c, 0.0) * np.maximum(y, 0.0)


BOTH = compile_rows([Bound(f, tuple(map(Argument, range(n))), ()) for f, n in ((rectified, 3), (mistaken, 2))], 3, 1)
ROUGH = compile_rows([Bound(f, tuple(map(Argument, range(3))), ()) for f in (of_signs, steep)], 3, 1)
BIASED, SWITCHED, GATED = (
    compile_rows([Bound(f, (Argument(0), Argument(0, constant=True)), ())], 3, 1) for f in (biased, switched, gated)
)


def law_of(apart, mean=0.0):
    """Law of three correlated fields, the last of which is nearly the one before if `apart` is small."""
    A = np.array([[1.0, 0.0, 0.0], [0.4, 0.8, 0.3], [0.0, 0.0, 0.0]])
    A[2] = A[1] + apart * np.array([0.3, -0.5, 0.7])
    return Law(np.full(3, mean), semidefinite_factor(A @ A.T))


@pytest.mark.parametrize("apart", [1.0, 0.1, 1e-3])
def test_averages_are_those_over_all_lengths(apart):
    law = law_of(apart)
    choice = choose_rule(BOTH, NOTHING, [law], KINKS, 1e-9)
    assert choice.rule.powers == (1, 0)
    wanted = Rule("kinked", 40, KINKS)
    # the error that is stated; panels of 40 nodes are off by 1e-11
    assert change(*(rule.averages(BOTH, NOTHING, [law]) for rule in (wanted, choice.rule))) < choice.error + 1e-11
    assert choice.rule.nodes(law).weights.size < 0.4 * wanted.nodes(law).weights.size


def test_products_of_four_values_and_slopes_are_those_over_all_lengths():
    law, near = law_of(1.0), law_of(1.01)
    found, wanted = (
        Expansion(Rule("kinked", 28, KINKS, powers=powers), BOTH, NOTHING, [law], 2, ()) for powers in ((1, 0), None)
    )
    of_both = [each.products[0] for each in (found, wanted)]
    np.testing.assert_allclose(*of_both, rtol=1e-6, atol=1e-8)  # nodes below 1e-9 of the heaviest are left out
    assert change(*(each.averages(BOTH, NOTHING, [near]) for each in (found, wanted))) < 1e-6


def test_perceptrons_have_their_closed_form():
    function = compile_rows([Bound(mistaken, (Argument(0), Argument(1)), ())], 2, 1)
    R = 0.3
    law = Law(np.zeros(2), np.array([[1.0, 0.0], [R, math.sqrt(1 - R * R)]]))
    choice = choose_rule(function, NOTHING, [law], Kinks(np.eye(2), np.zeros(2)))
    assert choice.rule.powers == (0,)
    _, along, products = choice.rule.moments(function, NOTHING, law)
    of_label = (1 - R) / math.sqrt(2 * math.pi)
    np.testing.assert_allclose((law.factor @ along)[:, 0], [of_label, -of_label], rtol=1e-12)  # rounding
    assert products[0, 0] == pytest.approx(math.acos(R) / math.pi, rel=1e-12)  # rounding


def test_functions_that_are_homogeneous_at_times_are_not_taken_for_such():
    assert choose_rule(BIASED, np.zeros(1), [law_of(1.0)], KINKS, 1e-6).rule.powers is None
    assert choose_rule(BOTH, NOTHING, [law_of(1.0, mean=0.2)], KINKS, 1e-6).rule.powers is None
    shifted = [law_of(1.0, mean=0.2)]  # a mean that comes later
    found, wanted = (Rule("kinked", order, KINKS, powers=powers) for order, powers in ((8, (1, 0)), (40, None)))
    assert change(*(rule.averages(BOTH, NOTHING, shifted) for rule in (found, wanted))) < 1e-9  # of 28 nodes


def test_powers_that_change_with_constants_or_along_a_path_are_not_relied_on():
    law = law_of(1.0)
    early, late = (choose_rule(SWITCHED, np.full(1, c), [law], KINKS, 1e-6).rule for c in (-1.0, 1.0))
    assert (early.powers, late.powers) == ((1,), (2,))
    assert choose_rule(SWITCHED, np.ones(1), [law], KINKS, 1e-6, least=early).rule.powers is None
    assert choose_rule(SWITCHED, np.zeros(1), [law], KINKS, 1e-6).rule.powers is None  # before it changes
    assert choose_rule(GATED, np.full(1, -1.0), [law], KINKS, 1e-6).rule.powers is None  # 0, now and nearby


def test_slopes_about_a_law_with_a_mean_are_those_of_panels():
    shifted = [law_of(1.0, mean=0.2)]
    found, wanted = (
        Expansion(Rule("kinked", 40, KINKS, powers=powers), BOTH, NOTHING, shifted, 2, ()) for powers in ((1, 0), None)
    )
    np.testing.assert_allclose(found.products[0], wanted.products[0], rtol=1e-9, atol=1e-12)  # 64 nodes beside 40


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-5, 1e-8])
def test_stated_errors_bound_those_of_random_laws(tolerance):
    """Of orders one by one, of which two may have as many nodes, 7 and 8 of these laws have larger errors."""
    rng = np.random.default_rng(6)
    for _ in range(100):
        A = rng.normal(size=(3, 3)) @ np.diag(10.0 ** -rng.uniform(0.0, 3.0, 3))
        C = A @ A.T
        law = Law(np.zeros(3), semidefinite_factor(C / np.sqrt(np.outer(np.diag(C), np.diag(C)))))
        choice = choose_rule(ROUGH, NOTHING, [law], KINKS, tolerance)
        finest = Rule("kinked", 46, KINKS, powers=(0, 4))
        assert change(*(rule.averages(ROUGH, NOTHING, [law]) for rule in (finest, choice.rule))) <= choice.error
