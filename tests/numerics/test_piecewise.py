"""Piecewise Legendre series: resolved where they say so, exact at jumps, and honest about what they cannot resolve."""

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.numerics import piecewise
from meanfield.numerics.piecewise import ORDER, interpolate, panel_of, tabulate, with_derivatives


def table_of(*functions, breaks=(), reach=20.0):
    return tabulate(lambda x: np.array([f(x) for f in functions]), breaks, reach, "the function")


def values_at(table, points):
    out = np.empty((len(table.values), len(points)))
    row = np.empty(len(table.values))
    for i, x in enumerate(points):
        interpolate(table, panel_of(table, x), x, row)
        out[:, i] = row
    return out


POINTS = np.linspace(-19.9, 19.9, 1371)


def test_smooth_rows_are_resolved_together():
    rows = (np.tanh, lambda x: np.exp(-2 * x**2), lambda x: np.sin(3 * x), lambda x: x**10 - x)
    found = values_at(table_of(*rows), POINTS)
    right = np.array([f(POINTS) for f in rows])
    scale = np.array([1, 1, 1, 0])[:, None] + np.abs(right) * np.array([0, 0, 0, 1])[:, None]
    assert np.all(np.abs(found - right) <= 1e-11 * scale + 1e-11)  # ten times RESOLVED: what the last terms bound


def test_a_kink_and_a_jump_at_breaks_cost_nothing():
    def row(x):
        return np.where(x > 0.3, 2 + np.cos(x), np.sin(x)) + np.abs(x + 1.7)

    table = table_of(row, breaks=(0.3, -1.7))
    away = POINTS[np.abs(POINTS - 0.3) > 1e-9]
    np.testing.assert_allclose(values_at(table, away)[0], row(away), rtol=1e-12)  # RESOLVED
    np.testing.assert_allclose(table.breaks, [-1.7, 0.3])
    np.testing.assert_allclose(table.jumps[:, 0], [0, 2 + np.cos(0.3) - np.sin(0.3)], atol=1e-12)  # RESOLVED


def test_derivatives_and_their_point_masses():
    table = with_derivatives(table_of(np.abs, np.tanh, np.sign, breaks=(0.0,)), 2)
    assert len(table.values) == 5
    x = table.nodes
    np.testing.assert_allclose(table.values[2], np.sign(x), atol=1e-11)  # differentiating costs ORDER^2 rounding errors
    np.testing.assert_allclose(table.values[3], 1 / np.cosh(x) ** 2, atol=1e-10)  # the same, of RESOLVED
    # |x| and tanh do not jump, so their derivatives have no point masses; the jump of sign belongs to no derivative
    np.testing.assert_array_equal(table.jumps, np.zeros((1, 5)))
    stepped = with_derivatives(table_of(np.sign, breaks=(0.0,)), 1)
    np.testing.assert_allclose(stepped.jumps, [[0.0, 2.0]], atol=1e-13)  # rounding


def test_weights_integrate():
    table = table_of(lambda x: np.exp(-0.5 * x**2))
    assert table.values[0] @ table.weights == pytest.approx(np.sqrt(2 * np.pi), rel=1e-13)  # rounding
    assert np.all(np.diff(table.nodes) > 0)
    assert table.nodes.size == ORDER * (table.edges.size - 1)


def test_panels_are_as_wide_as_the_functions_allow():
    assert table_of(np.tanh).edges.size + 10 < table_of(lambda x: np.tanh(20 * x)).edges.size
    far = table_of(lambda x: x**2, reach=1e8)
    assert far.edges.size < 250  # widths grow by a quarter of the distance: 2 log(1e8/12)/log(1.25) = 143, and the core


@pytest.mark.parametrize(
    ("function", "reach", "words"),
    [
        (lambda x: np.abs(x - 0.4321), 20.0, ["not smooth near 0.432", "kinks"]),
        (lambda x: np.where(x > 1.6, 1.0, 0.0), 20.0, ["not smooth near 1.6", "kinks"]),
        (lambda x: np.where(x > 1.5, 1.0, 0.0), 20.0, ["not smooth near 1.5", "kinks"]),  # where a panel ends
        (lambda x: np.where(x > 0, 1.0, 0.0) + 1e3 * x, 20.0, ["not smooth near 0", "kinks"]),  # where one ends always
        (lambda x: np.sqrt(x + 3), 20.0, ["not finite at -3."]),
        (lambda x: np.exp(x), 800.0, ["not finite at 7"]),
        (lambda x: np.sin(x**2), 400.0, ["more than", "panels", "oscillates less"]),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_cannot_be_resolved_is_refused(function, reach, words):
    with pytest.raises(InputError) as error:
        table_of(function, reach=reach)
    assert all(word in str(error.value) for word in words), error.value


def test_constants_are_consistent():
    """Exact for polynomials of degree ORDER - 1, in values, coefficients and derivatives."""
    x = piecewise.NODES
    for degree in range(ORDER):
        power = x**degree
        coefficients = piecewise.TO_COEFFICIENTS @ power
        right = np.polynomial.legendre.poly2leg(np.eye(ORDER)[degree])
        np.testing.assert_allclose(coefficients, np.pad(right, (0, ORDER - len(right))), atol=1e-14)  # rounding
        slope = degree * x ** max(degree - 1, 0)
        np.testing.assert_allclose(piecewise.DIFFERENTIATE @ power, slope, atol=1e-12)  # rounding times ORDER^2
