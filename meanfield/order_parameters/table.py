"""The vector field of two features, tabulated once for the many values that regions of attraction take.

In the angles (arcsin |q|, direction) the field is as smooth as in q, and the square root sqrt(1 - |q|^2) that averages
are made of is smooth too, so that splines converge up to the edge of the disc.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import RectBivariateSpline

from meanfield.order_parameters.field import VectorField
from meanfield.typing import FloatArray

NODES = 25
"""Along the radius and along a right angle, at first."""

MOST_DOUBLINGS = 1
"""Of the nodes."""

ACCURATE = 1e-5
"""Error, in units of the largest value, with which the table is content."""

DEGREE = 5
OVERLAPPING = 6
"""Nodes beyond a whole turn, so that the spline is periodic to its own accuracy."""

CHECKS = 97
"""Points between the nodes at which the table is held against the field."""


class FieldTable:
    """b(q) of two features by interpolation.

    Parameters
    ----------
    field : VectorField
        With two features.
    quadrant : bool
        Whether q_1, q_2 >= 0 is all that is asked for.

    Attributes
    ----------
    error : float
        Largest deviation from the field at points between the nodes, in units of its largest value.
    """

    def __init__(self, field: VectorField, quadrant: bool) -> None:
        self._quadrant = quadrant
        nodes = NODES
        for _ in range(MOST_DOUBLINGS + 1):
            self._splines, largest = self._tabulated(field, nodes)
            self.error = self._deviation(field) / largest
            if self.error <= ACCURATE:
                break
            nodes = 2 * nodes - 1

    def __call__(self, q: FloatArray) -> FloatArray:
        """The field at many points, shape (n, 2); NaN outside the disc and the quadrant."""
        radius, turn = np.hypot(q[:, 0], q[:, 1]), np.arctan2(q[:, 1], q[:, 0])
        if not self._quadrant:
            turn = np.where(turn < 0, turn + 2 * np.pi, turn)
        angle = np.arcsin(np.minimum(radius, 1.0))
        values = np.stack([spline.ev(angle, turn) for spline in self._splines], axis=-1)
        inside = (radius <= 1.0) & ((q >= 0).all(axis=1) | (not self._quadrant))
        return np.where(inside[:, None], values, np.nan)

    def _tabulated(self, field: VectorField, nodes: int) -> tuple[list[RectBivariateSpline], float]:
        angle = np.linspace(0.0, 0.5 * np.pi, nodes)
        spacing = angle[1]
        beyond = 0 if self._quadrant else OVERLAPPING
        turn = spacing * np.arange(nodes if self._quadrant else 4 * (nodes - 1))
        inwards = (1.0 - 2e-16) * np.sin(angle)
        points = inwards[:, None, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
        values = field(points)
        if beyond:
            values = np.concatenate([values[:, -beyond:], values, values[:, : beyond + 1]], axis=1)
            turn = spacing * np.arange(-beyond, len(turn) + beyond + 1)
        splines = [RectBivariateSpline(angle, turn, values[..., k], kx=DEGREE, ky=DEGREE) for k in range(2)]
        return splines, max(float(np.abs(values).max()), np.finfo(float).tiny)

    def _deviation(self, field: VectorField) -> float:
        """Largest difference from the field at points spread evenly over the area (a golden spiral)."""
        k = np.arange(CHECKS) + 0.5
        turn = np.pi * (3.0 - np.sqrt(5.0)) * k
        turn = np.mod(turn, 0.5 * np.pi if self._quadrant else 2.0 * np.pi)
        points = np.sqrt(k / CHECKS)[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
        return float(np.abs(self(points) - field(points)).max())
