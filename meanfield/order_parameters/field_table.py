"""Functions of q in tables over the unit ball of one or two features, for many paths at once.

In polar coordinates with radii r from -1 to 1 and angles from 0 to pi, a smooth function of q is smooth through 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import CubicSpline, RectBivariateSpline

from meanfield.errors import InputError
from meanfield.typing import FloatArray

MOST_FEATURES = 2
"""Of a problem that has room in a table."""

RADII, ANGLES = 65, 48
"""Nodes of r in [-1, 1] and of the angle in [0, pi): errors of cubic splines are 1e-5 of the largest value at worst."""

AROUND = 6
"""Angles that are continued beyond both ends."""


INSIDE = 1.0 - 1e-12
"""The largest r: rounding must not lead out of the ball."""


class BallTable:
    """A function of q, interpolated.

    Parameters
    ----------
    function : callable
        (d1,) -> values of any shape.
    features : int
        d1, 1 or 2.

    Raises
    ------
    InputError
        If there are more features.
    """

    def __init__(self, function: Callable[[FloatArray], FloatArray], features: int) -> None:
        if features > MOST_FEATURES:
            raise InputError(
                f"features: {features} are too many for a table over all q, which has room for {MOST_FEATURES}; use SGD"
            )
        self._plane = features == 2
        r = INSIDE * np.linspace(-1.0, 1.0, RADII)
        angle = np.pi / ANGLES * np.arange(ANGLES if self._plane else 1)
        directions = np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, :features]
        values = np.array([[function(radius * direction) for direction in directions] for radius in r])
        self._shape = values.shape[2:]
        values = values.reshape(RADII, len(angle), -1)
        if not self._plane:
            self._line = CubicSpline(r, values[:, 0])
            return
        # The point (r, angle) is (-r, angle + pi).
        values = np.concatenate([values[::-1, -AROUND:], values, values[::-1, :AROUND]], axis=1)
        angle = np.pi / ANGLES * np.arange(-AROUND, ANGLES + AROUND)
        self._sheets = [RectBivariateSpline(r, angle, sheet) for sheet in np.moveaxis(values, 2, 0)]

    def __call__(self, q: FloatArray) -> FloatArray:
        """Values at points of the ball, shape (n, ...) for q of shape (n, d1)."""
        if not self._plane:
            values = self._line(q[:, 0])
        else:
            r, angle = np.copysign(np.hypot(q[:, 0], q[:, 1]), q[:, 1]), np.arctan2(q[:, 1], q[:, 0])
            angle = np.where(angle < 0, angle + np.pi, angle)
            values = np.stack([sheet.ev(r, angle) for sheet in self._sheets], axis=1)
        return np.asarray(values.reshape(len(q), *self._shape))
