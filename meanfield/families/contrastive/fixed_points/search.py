"""Zeros of the vector field b(q) in one face of the closed unit ball, without starting guesses.

On a line zeros are bracketed. In two and three dimensions the ball, or its positive orthant where every feature may be
flipped by itself, is covered by cells in the angle arcsin |q| and the angles of the direction; Newton's method starts
in every cell at whose corners all components change their sign, and where |b| is least among its neighbours, there with
the known zeros deflated, since two may be close. On the sphere q.b = -Lambda/2, so that zeros lie there only where
Lambda vanishes: least squares over directions find them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.linalg import null_space
from scipy.ndimage import minimum_filter
from scipy.optimize import brentq, least_squares, minimize_scalar

from meanfield.families.contrastive.fixed_points.symmetries import SAME_ZERO
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.numerics.continuation import newton
from meanfield.typing import FloatArray

TANGENCY_TOLERANCE = 1e-11
"""Largest |f| at an extremum that counts as a double root."""

TOLERANCE = 1e-11
"""Largest component of b at a zero, relative to its size in the ball: a hundred times the rounding of averages."""

CELLS = {2: (32, 32), 3: (14, 10)}
"""Numbers of cells along the radius and along a right angle, by dimension."""

MOST_GRID_FEATURES = max(CELLS)
"""Largest dimension of a face that can be searched by cells."""

LEAST_ANGLE = 1e-3
"""Distance of the cells, in angles, from the centre and from the subspaces that are searched by themselves."""

CONTINUUM_STEP = 0.05
"""Distance at which another zero of a continuum is searched along it."""


def field_size(field: VectorField) -> float:
    """Size of the field: the largest |b_k| at points that cover the ball, the unit of all tolerances."""
    axes = np.vstack([np.eye(field.features), np.full(field.features, field.features**-0.5)])
    points = np.concatenate([radius * axes for radius in (-0.95, -0.75, -0.5, -0.25, 0.25, 0.5, 0.75, 0.95)])
    return max(float(np.abs(field(points)).max()), np.finfo(float).tiny)


class Face:
    """Scaled field b/size in the subspace in which all overlaps but some vanish.

    Parameters
    ----------
    field : VectorField
        Field that leaves the subspace invariant.
    kept : tuple of int
        Features whose overlaps do not vanish.
    size : float
        Size of the field.
    """

    def __init__(self, field: VectorField, kept: tuple[int, ...], size: float) -> None:
        self._field = field
        self._kept = list(kept)
        self._size = size

    def embedded(self, x: FloatArray) -> FloatArray:
        """Points of the face as points of the ball, shape (..., d1)."""
        q = np.zeros((*x.shape[:-1], self._field.features))
        q[..., self._kept] = x
        return q

    def __call__(self, x: FloatArray) -> FloatArray:
        """Scaled field b/size within the face, of the shape of x."""
        return np.asarray(self._field(self.embedded(x))[..., self._kept] / self._size)

    def equations(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scaled field and its Jacobian; see `VectorField.equations`."""
        slope = self._field.jacobian(self.embedded(x))[np.ix_(self._kept, self._kept)]
        return self(x), slope / self._size

    def polished(self, x: FloatArray) -> FloatArray | None:
        """Zero next to an approximate one; None if there is none."""
        _, slope = self.equations(x)
        for _ in range(3):  # of Newton's method, which is at its end: the Jacobian does not change any more
            x = x - np.linalg.lstsq(slope, self(x), rcond=None)[0]
        return x if np.abs(self(x)).max() <= TOLERANCE else None

    def zeros(self, positive: bool, fineness: int) -> list[FloatArray]:
        """Zeros in the face, or only those with positive overlaps."""
        dimensions = len(self._kept)
        if dimensions == 1:
            return [np.array([q]) for q in line_roots(lambda q: self(q[:, None])[:, 0], positive, fineness)]
        found = self._zeros_on_grid(positive, fineness)
        return [x for x in found if np.all(x > SAME_ZERO)] if positive else found

    def _zeros_on_grid(self, positive: bool, fineness: int) -> list[FloatArray]:
        grid = _ball_grid(len(self._kept), positive, fineness)
        values = self(grid)
        crossed, least = _crossed_cells(grid, values), _least(grid, values)
        found = self.on_sphere(least)
        crossed.sort(key=lambda x: -float(np.abs(x).min()))  # of a continuum the inmost zero stands for all
        starts = [] if positive else [np.zeros(len(self._kept))]
        for start in [*starts, *crossed, *least]:
            self._add(found, newton(self.equations, start, tolerance=TOLERANCE))
        for start in least:
            self._add(found, newton(self.equations, start, found, tolerance=TOLERANCE))
        return found

    def on_sphere(self, candidates: Iterable[FloatArray]) -> list[FloatArray]:
        """Zeros with |q| = 1, from candidates on the sphere."""
        found: list[FloatArray] = []
        for x in candidates:
            if np.linalg.norm(x) < 1.0 - 1e-9:
                continue
            best = self._least_direction(x)
            if np.abs(self(best)).max() <= 1e-9:  # |b|^2 is flat there
                self._add(found, best)
        return found

    def _least_direction(self, x: FloatArray) -> FloatArray:
        """The point of the sphere near a given one where |b| is least."""
        across = null_space(x[None])  # a step along x may end in the centre, which has no direction

        def field(y: FloatArray) -> FloatArray:
            return self(_inside(x + across @ y))

        y = least_squares(field, np.zeros(across.shape[1]), xtol=1e-15, ftol=1e-15, gtol=1e-15).x
        return _inside(x + across @ y)

    def _add(self, found: list[FloatArray], x: FloatArray | None) -> None:
        """Add a zero that is new, and of a continuum only the first."""
        # Zeros within 1e-4 of one on the sphere are the same: Newton's method cannot tell them apart.
        if x is None or any(np.linalg.norm(x - other) < (1e-4 if _is_unit(other) else SAME_ZERO) for other in found):
            return
        x = np.where(np.abs(x) < 1e-13, 0.0, x)  # a smaller overlap is rounding
        if self.in_continuum(x) and any(self.in_continuum(other) for other in found):
            return
        found.append(x)

    def in_continuum(self, x: FloatArray) -> bool:
        """Whether another zero is close by in a direction in which b does not change."""
        if _is_unit(x):
            return False
        _, slope = self.equations(x)
        rates, directions = np.linalg.eig(slope)
        flat = int(np.argmin(np.abs(rates)))
        if abs(rates[flat]) > 1e-7 * np.abs(slope).max():  # the zero is isolated
            return False
        along = directions[:, flat].real
        start = x + np.copysign(CONTINUUM_STEP, -along @ x) * along  # towards the centre
        start *= min(1.0, 0.999 / float(np.linalg.norm(start)))
        beside = least_squares(self, start, xtol=1e-15, ftol=1e-15, gtol=1e-15).x
        moved = float(np.linalg.norm(beside - x))
        return bool(np.abs(self(beside)).max() <= TOLERANCE and 0.5 * CONTINUUM_STEP < moved < 2.0 * CONTINUUM_STEP)


def _is_unit(x: FloatArray) -> bool:
    return float(np.linalg.norm(x)) > 1.0 - 1e-12


def _inside(x: FloatArray) -> FloatArray:
    """The point of the sphere in a direction, rounded inwards."""
    return np.asarray(x / np.linalg.norm(x) * (1.0 - 1e-15))  # squares of five overlaps add up to 1 and some rounding


def _ball_grid(dimensions: int, positive: bool, fineness: int) -> FloatArray:
    """Corners of cells, shape (radius, angle, ..., dimensions): the ball, or its positive orthant."""
    radial, right_angle = (fineness * cells for cells in CELLS[dimensions])
    radius = np.sin(np.concatenate([[LEAST_ANGLE], np.linspace(0.0, 0.5 * np.pi, radial + 1)[1:]]))
    if positive:
        angles = [np.linspace(LEAST_ANGLE, 0.5 * np.pi - LEAST_ANGLE, right_angle + 1)] * (dimensions - 1)
    else:
        angles = [np.linspace(0.0, np.pi, 2 * right_angle + 1)] * (dimensions - 2)
        angles.append(np.linspace(0.0, 2.0 * np.pi, 4 * right_angle + 1))
    mesh = np.meshgrid(radius, *angles, indexing="ij")
    rest, points = mesh[0] * (1.0 - 2e-16), []
    for angle in mesh[1:]:
        points.append(rest * np.cos(angle))
        rest = rest * np.sin(angle)
    return np.stack([*points, rest], axis=-1)


def _crossed_cells(grid: FloatArray, values: FloatArray) -> list[FloatArray]:
    """Centres of the cells at whose corners every component has both signs."""
    corners = [values]
    centres = grid
    for axis in range(grid.ndim - 1):
        one, other = (slice(None),) * axis + (slice(1, None),), (slice(None),) * axis + (slice(None, -1),)
        corners = [corner[side] for corner in corners for side in (one, other)]
        centres = 0.5 * (centres[one] + centres[other])
    highest, lowest = np.max(corners, axis=0), np.min(corners, axis=0)
    return list(centres[np.all((lowest <= 0) & (highest >= 0), axis=-1)])


def _least(grid: FloatArray, values: FloatArray) -> list[FloatArray]:
    """Corners at which |b| is less than at all neighbours."""
    size = np.linalg.norm(values, axis=-1)
    return list(grid[size <= minimum_filter(size, size=3, mode="nearest")])


def line_roots(function: Callable[[FloatArray], FloatArray], positive: bool, fineness: int = 1) -> list[float]:
    """Roots in q of a function of size one, in order.

    Parameters
    ----------
    function : callable
        q -> f(q), both of shape (n,), on the closed interval.
    positive : bool
        Whether to find roots in (0, 1] only, for f(0) = 0.
    fineness : int
        Factor of the number of points on (0, 1] at which signs are compared, evenly spaced in arcsin q.
    """
    angle = np.linspace(0.0, 0.5 * np.pi, 200 * fineness + 1)[1:]
    smallest = (1e-6, 1e-5, 1e-4, 1e-3)  # for a root that has just left 0
    q = np.concatenate([smallest, np.sin(angle[np.sin(angle) > smallest[-1]])])
    q = np.minimum(q, 1.0) if positive else np.concatenate([-q[::-1], q])

    def reduced(q: FloatArray) -> FloatArray:
        return function(q) / q if positive else function(q)

    values = reduced(q)
    roots = [float(x) for x, f in zip(q, values, strict=True) if abs(f) <= TANGENCY_TOLERANCE and abs(x) == 1.0]
    roots += [_between(reduced, q[i], q[i + 1]) for i in np.flatnonzero(values[:-1] * values[1:] < 0)]
    size = np.abs(values)
    turns = (size[1:-1] <= size[:-2]) & (size[1:-1] <= size[2:])
    kept_sign = (values[:-2] * values[1:-1] > 0) & (values[1:-1] * values[2:] > 0)
    for i in np.flatnonzero(turns & kept_sign):
        roots += _touching(reduced, q[i], q[i + 2], float(np.sign(values[i + 1])))
    snapped = [0.0 if abs(x) < 1e-9 and abs(function(np.zeros(1))[0]) <= TANGENCY_TOLERANCE else x for x in roots]
    return sorted(set(snapped))


def _between(function: Callable[[FloatArray], FloatArray], low: float, high: float) -> float:
    return float(brentq(lambda x: function(np.array([x]))[0], low, high, xtol=1e-15, rtol=1e-15))


def _touching(function: Callable[[FloatArray], FloatArray], low: float, high: float, sign: float) -> list[float]:
    """Roots near a minimum of |f|: two, one double root or none."""
    least = minimize_scalar(
        lambda x: sign * function(np.array([x]))[0], bounds=(low, high), method="bounded", options={"xatol": 1e-10}
    )
    if least.fun < -TANGENCY_TOLERANCE:
        return [_between(function, low, least.x), _between(function, least.x, high)]
    return [float(least.x)] if least.fun <= TANGENCY_TOLERANCE else []
