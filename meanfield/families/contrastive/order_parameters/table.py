"""Functions of the overlaps of one or two features, tabulated once for the many values that paths take.

In the angles (arcsin |q|, direction) a function is as smooth as in q, and the square root sqrt(1 - |q|^2) that averages
are made of is smooth too, so that splines converge up to the edge of the ball.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import RectBivariateSpline, make_interp_spline

from meanfield.errors import InputError
from meanfield.numerics.refinement import retry
from meanfield.typing import FloatArray

Function = Callable[[FloatArray], FloatArray]

MOST_FEATURES = 2
"""Largest number of features of a table."""

TABLE_TOLERANCE = 1e-5
"""Largest error of a table, relative to the largest value."""

DEGREE = 5
"""Degree of the splines."""

CHECK_POINTS = 97
"""Number of points between the nodes at which the table is compared with the function."""

INWARD_ROUNDING = 1.0 - 2e-16
"""Factor that keeps nodes on the sphere inside the ball."""


def into_ball(q: FloatArray) -> FloatArray:
    """Points, shape (n, d1), where those outside the unit ball are moved radially to its sphere."""
    # The length is a little below 1, so that rounding does not move a point out again.
    return np.asarray(q * np.minimum(1.0, (1.0 - 1e-12) / np.maximum(np.linalg.norm(q, axis=1), 1e-300))[:, None])


class BallTable:
    """Interpolating table of a function of q.

    Parameters
    ----------
    function : callable
        Function from q, shape (d1,), to values of any shape, at |q| <= 1.
    features : int
        d1, 1 or 2.
    quadrant : bool
        Whether the table is restricted to q_1, q_2 >= 0.

    Attributes
    ----------
    error : float
        Largest deviation from the function at points between the nodes, in units of its largest value.

    Raises
    ------
    InputError
        If there are more than two features.
    """

    def __init__(self, function: Function, features: int, quadrant: bool = False) -> None:
        if features > MOST_FEATURES:
            raise InputError(
                f"features: {features} are too many for a table over all q, which has room for {MOST_FEATURES}; use SGD"
            )
        self._quadrant = quadrant
        checks = _line_checks() if features == 1 else _disc_checks(quadrant)
        right = np.array([function(q) for q in checks])
        self._shape = right.shape[1:]

        def fill(nodes: int) -> None:
            self._interpolate, largest = (
                _on_line(function, nodes) if features == 1 else _on_disc(function, nodes, quadrant)
            )
            self.error = float(np.abs(self(checks) - right).max()) / largest

        retry(
            fill,
            25,  # nodes of the first table along the radius and along a right angle
            lambda nodes, _: None if self.error <= TABLE_TOLERANCE else min(2 * nodes - 1, 49),
        )

    def __call__(self, q: FloatArray) -> FloatArray:
        """Values at many points, shape (n, ...) for q of shape (n, d1); NaN outside the ball and the quadrant."""
        inside = np.linalg.norm(q, axis=1) <= 1.0
        if self._quadrant:
            inside &= (q >= 0).all(axis=1)
        return np.where(inside[:, None], self._interpolate(q), np.nan).reshape(-1, *self._shape)


def _on_line(function: Function, nodes: int) -> tuple[Function, float]:
    """A spline through values at q = sin(angle), and the largest of them."""
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * nodes - 1)
    values = np.array([function(np.array([q])) for q in INWARD_ROUNDING * np.sin(angle)]).reshape(angle.size, -1)
    spline = make_interp_spline(angle, values, DEGREE)
    return lambda q: np.asarray(spline(np.arcsin(np.clip(q[:, 0], -1.0, 1.0)))), _largest(values)


def _on_disc(function: Function, nodes: int, quadrant: bool) -> tuple[Function, float]:
    """Splines through values at radii sin(angle) and evenly spaced directions, and the largest of them."""
    angle = np.linspace(0.0, 0.5 * np.pi, nodes)
    # A spline over six nodes more than a whole turn is periodic to its own accuracy.
    beyond = 0 if quadrant else 6
    turn = angle[1] * np.arange(nodes if quadrant else 4 * (nodes - 1))
    radius = INWARD_ROUNDING * np.sin(angle)
    points = radius[:, None, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    values = np.array([function(q) for q in points.reshape(-1, 2)]).reshape(nodes, len(turn), -1)
    if beyond:
        values = np.concatenate([values[:, -beyond:], values, values[:, : beyond + 1]], axis=1)
        turn = angle[1] * np.arange(-beyond, len(turn) + beyond + 1)
    splines = [RectBivariateSpline(angle, turn, values[..., k], kx=DEGREE, ky=DEGREE) for k in range(values.shape[2])]

    def interpolate(q: FloatArray) -> FloatArray:
        turn = np.arctan2(q[:, 1], q[:, 0])
        turn = turn if quadrant else np.where(turn < 0, turn + 2 * np.pi, turn)
        angle = np.arcsin(np.minimum(np.hypot(q[:, 0], q[:, 1]), 1.0))
        return np.stack([spline.ev(angle, turn) for spline in splines], axis=-1)

    return interpolate, _largest(values)


def _line_checks() -> FloatArray:
    return np.asarray((2.0 * (np.arange(CHECK_POINTS) + 0.5) / CHECK_POINTS - 1.0)[:, None])


def _disc_checks(quadrant: bool) -> FloatArray:
    """Points spread evenly over the area (a golden spiral)."""
    k = np.arange(CHECK_POINTS) + 0.5
    turn = np.mod(np.pi * (3.0 - np.sqrt(5.0)) * k, 0.5 * np.pi if quadrant else 2.0 * np.pi)
    return np.asarray(np.sqrt(k / CHECK_POINTS)[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1))


def _largest(values: FloatArray) -> float:
    return max(float(np.abs(values).max()), np.finfo(float).tiny)
