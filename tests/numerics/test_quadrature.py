"""The quadrature rule for N(0, 1): exactness and measured rates of convergence; and tensor products of rules."""

import numpy as np
import pytest
from scipy.special import erfcx, factorial2

from meanfield.numerics.quadrature import gauss_rules, gaussian_trapezoid, tensor_rule


def normal_moment(order):
    return 0.0 if order % 2 else float(factorial2(order - 1)) if order else 1.0


def gauss_rule(nodes):
    """The Gauss rule for N(0, 1), to compare with."""
    x, weight = np.polynomial.hermite_e.hermegauss(nodes)
    return x, weight / weight.sum()


@pytest.mark.parametrize("nodes", [2, 3, 4, 9, 33, 64])
def test_the_rule_is_a_symmetric_law_of_mean_0_and_variance_1(nodes):
    x, weight = gaussian_trapezoid(nodes)
    assert x.shape == weight.shape == (nodes,)
    assert np.all(np.diff(x) > 0)
    assert np.all(weight > 0)
    np.testing.assert_allclose(x, -x[::-1], atol=1e-14)  # rounding
    np.testing.assert_allclose(weight, weight[::-1], rtol=1e-10)  # rounding of exp(-x^2/2) for x up to 15
    assert weight.sum() == pytest.approx(1, abs=1e-14)  # rounding
    assert weight @ x**2 == pytest.approx(1, abs=1e-14)  # rounding


@pytest.mark.parametrize("nodes", [2, 5, 31, 200])
@pytest.mark.parametrize("cutoff", [7.0, 8.5])
def test_trapezoid_is_evenly_spaced_up_to_the_cutoff(nodes, cutoff):
    x, _ = gaussian_trapezoid(nodes, cutoff)
    spacing = np.diff(x)
    np.testing.assert_allclose(spacing, spacing[0], rtol=1e-12)  # rounding of nodes of size 10
    balanced = min(cutoff, np.sqrt(np.pi * (nodes - 1)))
    # With h the spacing, the error of the variance that the rule makes up for is of the order of what is cut off.
    h = 2 * balanced / (nodes - 1)
    allowed = 10 * (np.exp(-(balanced**2) / 2) * balanced + np.exp(-2 * np.pi**2 / h**2)) + 1e-14
    assert x[-1] == pytest.approx(balanced, rel=allowed)  # see the two lines above


def pole_integral(d):
    """E[1/(d^2 + x^2)]."""
    return np.sqrt(np.pi / 2) / d * erfcx(d / np.sqrt(2))


@pytest.mark.parametrize("d", [0.7, 1.0, np.pi / 2])
def test_trapezoid_converges_exponentially(d):
    """The error for an integrand with poles at +-i d falls like exp(-2 pi d/h), as the residues say."""
    spacings, errors = [], []
    for nodes in range(31, 91, 6):
        x, weight = gaussian_trapezoid(nodes)
        error = abs(weight @ (1 / (d**2 + x**2)) / pole_integral(d) - 1)
        if 1e-12 < error < 1e-3:
            spacings.append(x[1] - x[0])
            errors.append(error)
    assert len(errors) >= 3
    rate = -np.polyfit(1 / np.array(spacings), np.log(errors), 1)[0]
    assert rate == pytest.approx(2 * np.pi * d, rel=0.02)  # higher terms exp(-4 pi d/h) and the cutoff
    # Not only the rate: 2 pi/d exp(d^2/2) exp(-2 pi d/h)/sqrt(2 pi) from the residue at i d.
    first = np.sqrt(2 * np.pi) / d * np.exp(d**2 / 2 - 2 * np.pi * d / spacings[0]) / pole_integral(d)
    assert errors[0] == pytest.approx(first, rel=0.05)  # the next term is at most sqrt(1e-3) of the first


def test_trapezoid_is_exact_to_rounding_for_entire_integrands():
    x, weight = gaussian_trapezoid(49)
    for k in (0.5, 1.0, 2.0):
        assert weight @ np.cos(k * x) == pytest.approx(np.exp(-(k**2) / 2), abs=1e-14)  # rounding
    for order in range(0, 9, 2):
        assert weight @ x**order == pytest.approx(normal_moment(order), rel=1e-10)  # cutoff: 8.5^8 exp(-36)


def test_trapezoid_beats_the_gauss_rule_near_a_pole():
    """Why closures of tanh use it."""
    d, nodes = np.pi / 2, 49

    def error(rule):
        x, weight = rule(nodes)
        return abs(weight @ (1 / (d**2 + x**2)) - pole_integral(d))

    assert error(gaussian_trapezoid) < error(gauss_rule) / 100


def test_few_nodes_lower_the_cutoff():
    """Eight nodes over +-8.5 would miss most of the density; the balance sqrt(pi (n-1)) keeps the fourth moment."""
    x, weight = gaussian_trapezoid(8)
    assert x[-1] < 5
    assert weight @ x**4 == pytest.approx(3, rel=1e-2)  # cut off: exp(-cutoff^2/2) cutoff^4 = 8e-3


def test_tensor_products_average_products():
    rules = [gaussian_trapezoid(9), (np.array([-1.0, 2.0]), np.array([0.75, 0.25])), gaussian_trapezoid(5)]
    x, weight = tensor_rule(rules, 0.0)
    assert x.shape == (9 * 2 * 5, 3)
    assert weight.sum() == pytest.approx(1, abs=1e-14)  # rounding
    functions = (np.cos, np.exp, np.square)
    expected = np.prod([w @ f(y) for f, (y, w) in zip(functions, rules, strict=True)])
    found = weight @ np.prod([f(column) for f, column in zip(functions, x.T, strict=True)], axis=0)
    assert found == pytest.approx(expected, rel=1e-13)  # rounding


def test_negligible_nodes_of_a_product_are_left_out_and_the_others_still_add_up_to_one():
    rare = (np.array([0.0, 1.0]), np.array([1 - 1e-9, 1e-9]))
    x, weight = tensor_rule([rare, rare], 1e-12)
    assert x.tolist() == [[0, 0], [0, 1], [1, 0]]  # both at once have 1e-18
    assert weight.sum() == pytest.approx(1, abs=1e-15)  # rounding


def test_gauss_rules_are_exact_up_to_twice_their_nodes():
    rng = np.random.default_rng(1)
    points, mass = np.sort(rng.normal(size=(3, 50)), axis=1), rng.random((3, 50))
    x, weight = gauss_rules(points, mass, 5)
    for power in range(10):
        moments = (mass * points**power).sum(axis=1)
        assert (weight * x**power).sum(axis=1) == pytest.approx(moments, rel=1e-10)  # rounding
