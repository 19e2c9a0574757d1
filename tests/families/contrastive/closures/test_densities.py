"""Densities of Gaussians plus boxes: against their characteristic functions, which know no antiderivatives."""

import numpy as np
import pytest

from meanfield.families.contrastive.closures.densities import CANCELLATION, NARROW_BOX, add_density, exact_boxes


def sinc(a):
    return np.sinc(a / np.pi)


def sloped(a):
    """The integral of u sin(a u)/2 over [-1, 1]."""
    small = np.abs(a) < 1e-2
    b = np.where(small, 1.0, a)
    return np.where(small, a / 3 - a**3 / 30, (np.sin(b) - b * np.cos(b)) / b**2)


def by_inversion(x, deviation, half_widths):
    """Density and E[u_k; x]; the trapezoidal rule is exact to exp(-40) within half a period of the origin."""
    span = 10 * deviation + sum(half_widths) + np.abs(x).max()
    t = np.arange(0, 9.2 / deviation, np.pi / span) + 1e-300
    step = t[1] - t[0]
    weight = np.exp(-0.5 * (deviation * t) ** 2) * step / np.pi
    weight[0] /= 2
    boxes = np.array([sinc(h * t) for h in half_widths])
    rows = [np.cos(np.outer(x, t)) @ (weight * boxes.prod(axis=0))]
    for k, h in enumerate(half_widths):
        rows.append(np.sin(np.outer(x, t)) @ (weight * sloped(h * t) * np.delete(boxes, k, axis=0).prod(axis=0)))
    return np.array(rows)


@pytest.mark.parametrize("deviation", [0.014, 0.3, 1.0, 20.0])
@pytest.mark.parametrize(
    "half_widths", [(), (1.0,), (1.7, 0.4), (1.0, 1.0, 1.0), (1.4, 0.9, 0.2), (1.2, 0.8, 0.7, 0.5)]
)
def test_density_and_means(half_widths, deviation):
    """From boxes that are nodes to boxes that are wide, on both sides of the centre."""
    centre = 0.4
    x = centre + np.linspace(-1, 1, 41) * (sum(half_widths) + 5 * deviation)
    found = np.zeros((1 + len(half_widths), x.size))
    add_density(x, np.full(x.size, 2.0), centre, deviation, np.array(half_widths), found)
    right = 2 * by_inversion(x - centre, deviation, half_widths)
    # rounding, times what antiderivatives may exceed their differences by
    tolerance = 1e-16 * max(CANCELLATION, 1 / NARROW_BOX**5) * right[0].max()
    np.testing.assert_allclose(found, right, rtol=0, atol=tolerance)  # see the line above


def test_boxes_that_would_cancel_are_left_out():
    boxes = np.array([1.0, 1e-2, 1e-4])
    assert exact_boxes(boxes, 1e-6) == 2
    assert exact_boxes(boxes, 0.1) == 1
    assert exact_boxes(boxes, 10.0) == 0
    assert exact_boxes(np.ones(3), 1e-3) == 3
    assert exact_boxes(np.zeros(0), 1.0) == 0
