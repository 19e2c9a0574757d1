"""Regions of attraction: the stable fixed point that a start is attracted to, for any number of features.

Around each stable fixed point lies an ellipsoid that no trajectory leaves: a sublevel set of x.P x with
J^T P + P J = -1, as large as b confirms that x.P x decreases in it. Starts are integrated side by side, each with its
own steps, until they are in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from meanfield.errors import InputError
from meanfield.families.contrastive.fixed_points.faces import jacobian_at
from meanfield.families.contrastive.fixed_points.points import FixedPoints
from meanfield.numerics.ode import Tolerance
from meanfield.numerics.paths import Flags, Velocity, follow_paths
from meanfield.typing import FloatArray

Labels = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

UNDECIDED = -1
"""Label of starts that reach no stable fixed point: they lie on the border of regions, or there is a cycle."""

TOLERANCE = Tolerance(relative=0.0, absolute=1e-6)
"""Tolerance of a step of q, which decides on which side of a border a path goes: far below the width of a cell of a
portrait."""


@dataclass(frozen=True)
class Trap:
    """An ellipsoid around a stable fixed point that trajectories do not leave.

    Parameters
    ----------
    number : int
        Number of the fixed point.
    centre : ndarray, shape (d1,)
    metric : ndarray, shape (d1, d1)
        Points with x.metric x <= 1 are inside, x from the centre.
    """

    number: int
    centre: FloatArray
    metric: FloatArray

    def holds(self, q: FloatArray) -> Flags:
        """Whether each of the points, shape (n, d1), is inside."""
        x = q - self.centre
        return np.asarray(np.einsum("ni,ij,nj->n", x, self.metric, x) <= 1.0)


def traps(points: FixedPoints) -> list[Trap]:
    """Traps of all stable fixed points."""
    return [trap for i in points.stable if (trap := _trap(points, i)) is not None]


def _trap(points: FixedPoints, number: int) -> Trap | None:
    centre = points.points[number].q
    d1 = points.field.features
    slope = jacobian_at(points.field, centre)
    metric = solve_continuous_lyapunov(slope.T, -np.eye(d1))
    metric = 0.5 * (metric + metric.T) / np.linalg.norm(metric, 2)
    others = np.delete(points.q, number, axis=0)
    radius = min([0.2, *(0.5 * np.linalg.norm(others - centre, axis=1))])
    # The decrease of x.P x is checked along 32 directions, at four parts of the radius.
    sphere = np.random.default_rng(0).normal(size=(32, d1))
    sphere /= np.sqrt(np.einsum("ni,ij,nj->n", sphere, metric, sphere))[:, None]
    unit = np.concatenate([part * sphere for part in (0.25, 0.5, 0.75, 1.0)])
    # The shortest axis of the ellipsoid of unit size is 1: radius bounds it, and the longest one, by the loop.
    while radius > 1e-7:
        x = radius * unit
        growth = np.einsum("ni,ij,nj->n", x, metric, points.field(centre + x))
        if np.nanmax(growth, initial=-np.inf) < 0 and np.linalg.norm(x, axis=1).max() < 1.0:
            return Trap(number, centre, metric / radius**2)
        radius *= 0.5
    return None


def trapping_points(velocity: Velocity, starts: FloatArray, sinks: list[Trap], size: float) -> Labels:
    """The fixed point in whose trap the path from each start ends.

    Parameters
    ----------
    velocity : callable
        dq/dt at many points, shape (n, d1); NaN outside its domain.
    starts : ndarray, shape (n, d1)
    size : float
        Size of the velocity, which its smallness is relative to.

    Returns
    -------
    ndarray of int, shape (n,)
        Numbers of fixed points, or `UNDECIDED`.
    """
    labels = np.full(len(starts), UNDECIDED)
    if not sinks:
        return labels

    def arrived(q: FloatArray, speed: FloatArray) -> Flags:
        # A path that stands still outside all traps is at a border of regions.
        stands = ~(np.linalg.norm(speed, axis=1) > 1e-9 * size)
        return np.asarray(np.logical_or.reduce([stands, *(trap.holds(q) for trap in sinks)]))

    # The first step has a length of 0.01, or less where the field is below 0.01 of its size.
    first_step = 0.01 / np.maximum(np.linalg.norm(velocity(starts), axis=1), 0.01 * size)
    paths = follow_paths(velocity, starts, TOLERANCE, first_step=first_step, arrived=arrived, most_steps=1000)
    for trap in sinks:
        labels[trap.holds(paths.end)] = trap.number
    return labels


def attractor_of(points: FixedPoints, starts: FloatArray) -> Labels:
    """The stable fixed point that each start is attracted to, along the reduced ODEs themselves.

    Parameters
    ----------
    starts : ndarray, shape (..., d1)
        Overlaps in the closed unit ball.

    Returns
    -------
    ndarray of int, shape (...)
        Index into `points.points`, or `UNDECIDED` on a border of regions.

    Raises
    ------
    InputError
        If a start lies outside the ball.
    """
    starts = np.asarray(starts, dtype=float)
    d1 = points.field.features
    if starts.shape[-1:] != (d1,):
        raise InputError(f"starts have shape {starts.shape}, but the problem has {d1} feature(s); give (..., {d1})")
    outside = ~(np.linalg.norm(starts, axis=-1) <= 1.0)
    if outside.any():
        raise InputError(f"start {starts[outside][0].tolist()} lies outside the unit ball; give |q| <= 1")
    return trapping_points(points.field, starts.reshape(-1, d1), traps(points), points.size).reshape(starts.shape[:-1])


def attraction_shares(
    points: FixedPoints, radius: float, count: int = 400, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Parts of the sphere |q| = radius that each fixed point attracts, by starts in uniform directions.

    Parameters
    ----------
    radius : float
        Radius of the sphere, in (0, 1].
    count : int
        Number of starts.

    Returns
    -------
    share : ndarray, shape (points,)
        Share of the starts that each point attracts; the rest is undecided.
    error : ndarray, shape (points,)
        Standard error of the share.

    Raises
    ------
    InputError
        If the radius is outside (0, 1] or there are no starts.
    """
    if not 0.0 < radius <= 1.0:
        raise InputError(f"radius = {radius}: overlaps lie in the unit ball; give a number in (0, 1]")
    if count < 1:
        raise InputError(f"count = {count}: give at least one start")
    directions = np.random.default_rng(seed).normal(size=(count, points.field.features))
    starts = (1.0 - 4e-16) * radius * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    labels = attractor_of(points, starts)
    share = np.array([np.mean(labels == i) for i in range(len(points.points))])
    return share, np.sqrt(share * (1.0 - share) / count)


def attraction_intervals(points: FixedPoints) -> list[tuple[float, float, int]]:
    """Intervals (low, high, number) that each stable fixed point attracts, for one feature.

    Raises
    ------
    InputError
        If there is more than one feature.
    """
    if points.field.features != 1:
        raise InputError(
            f"features: {points.field.features} of them, but intervals are for one; use attractor_of or the portrait"
        )
    q = points.q[:, 0]
    borders = [-1.0, *(float(x) for i, x in enumerate(q) if points.points[i].verdict != 1), 1.0]
    ends = {i: np.searchsorted(borders, q[i]) for i in points.stable}
    return [(borders[max(end - 1, 0)], borders[min(end, len(borders) - 1)], i) for i, end in ends.items()]
