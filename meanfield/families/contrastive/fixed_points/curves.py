"""Curves in the disc of two overlaps: separatrices of saddles and nullclines."""

from __future__ import annotations

import numpy as np

from meanfield.families.contrastive.fixed_points.points import FixedPoints, jacobian_at
from meanfield.families.contrastive.order_parameters.table import BallTable
from meanfield.numerics.fixed_points import FixedPoint
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.typing import FloatArray

SADDLE_DISTANCE = 1e-4
"""Distance from a saddle at which manifolds begin, or those of others end, straight up to its square."""

TOLERANCE = Tolerance(relative=1e-8, absolute=1e-10)
"""Tolerance of a step of a separatrix: far below what a figure shows."""

NULLCLINE_CELLS = 200
"""Number of cells along the radius and along a right angle, at whose edges nullclines are searched."""

AXIS_DISTANCE = 1e-3
"""Distance of the cells, in angles, from axes that are nullclines as a whole."""


def separatrices(points: FixedPoints, quadrant: bool) -> list[FloatArray]:
    """Stable manifolds of saddles, traced backwards to a source, to another saddle or to the edge of the disc.

    Parameters
    ----------
    points : FixedPoints
        Fixed points of two features.
    quadrant : bool
        Whether only curves with q_1, q_2 >= 0 are kept, where every feature may be flipped by itself.

    Returns
    -------
    list of ndarray, shape (n, 2)
        A curve for each saddle and side, from the saddle on.
    """
    curves = []
    for point in points.points:
        if point.kind != "saddle" or (quadrant and np.any(point.q < 0)):
            continue
        rates, directions = np.linalg.eig(jacobian_at(points.field, point.q))
        stable = directions[:, int(np.argmin(rates.real))].real
        for start in (point.q + SADDLE_DISTANCE * stable, point.q - SADDLE_DISTANCE * stable):
            if np.linalg.norm(start) < 1.0 and not (quadrant and np.any(start < -1e-9)):
                curves.append(np.vstack([point.q, _backwards(points, point, start)]))
    return curves


def _backwards(points: FixedPoints, saddle: FixedPoint, start: FloatArray) -> FloatArray:
    """Trajectory that leads to a start near a saddle, parametrised by its length."""
    # A separatrix that comes from a source is drawn straight within 1e-3 of it.
    ends = [
        (point.q, SADDLE_DISTANCE if point.kind == "saddle" else 1e-3)
        for point in points.points
        if point.unstable_directions > 0 and point is not saddle
    ]

    def heading(_: float, q: FloatArray) -> FloatArray:
        b = points.field(q / max(1.0, float(np.linalg.norm(q)) * (1.0 + 4e-16)))
        return np.asarray(-b / max(float(np.linalg.norm(b)), np.finfo(float).tiny))

    def edge(_: float, q: FloatArray) -> float:
        return float(q @ q) - 1.0

    def nearest(_: float, q: FloatArray) -> float:
        return min([float(np.linalg.norm(q - end)) - within for end, within in ends], default=1.0)

    path = solve_ode(
        heading,
        start,
        (0.0, 20.0),  # largest length of a separatrix
        TOLERANCE,
        integrator="RK45",
        stops=[edge, nearest],
        longest_step=0.01,  # largest distance of neighbouring points
        every_step=True,
    ).values
    close = [end for end, within in ends if np.linalg.norm(path[-1] - end) < 2 * within]
    return np.vstack([path, *close])


def nullclines(table: BallTable, quadrant: bool) -> list[FloatArray]:
    """Points of the curves b_1 = 0 and b_2 = 0, close to each other but in no order.

    Parameters
    ----------
    table : BallTable
    quadrant : bool
        Whether only points with q_1, q_2 >= 0 are kept, without the axes, on which one component vanishes by symmetry.

    Returns
    -------
    list of ndarray, shape (n, 2)
        Points for each component.
    """
    angle = np.linspace(AXIS_DISTANCE, 0.5 * np.pi, NULLCLINE_CELLS + 1)
    turn = (
        np.linspace(AXIS_DISTANCE, 0.5 * np.pi - AXIS_DISTANCE, NULLCLINE_CELLS + 1)
        if quadrant
        else np.linspace(0, 2 * np.pi, 4 * NULLCLINE_CELLS + 1)
    )
    mesh = np.meshgrid((1.0 - 2e-16) * np.sin(angle), turn, indexing="ij")
    q = np.stack([mesh[0] * np.cos(mesh[1]), mesh[0] * np.sin(mesh[1])], axis=-1)
    values = table(q.reshape(-1, 2)).reshape(q.shape)
    return [np.vstack([_crossings(q, values[..., k], axis) for axis in (0, 1)]) for k in range(2)]


def _crossings(q: FloatArray, values: FloatArray, axis: int) -> FloatArray:
    """Points where values change their sign between neighbours along an axis, by linear interpolation."""
    n = values.shape[axis]
    here, there = (np.take(values, range(side, n - 1 + side), axis) for side in (0, 1))
    changes = (here > 0) != (there > 0)
    share = (here[changes] / (here[changes] - there[changes]))[:, None]
    first, second = (np.take(q, range(side, n - 1 + side), axis)[changes] for side in (0, 1))
    return np.asarray((1 - share) * first + share * second)
