"""Curves in the disc of two overlaps: separatrices of saddles and nullclines."""

from __future__ import annotations

import numpy as np

from meanfield.families.contrastive.fixed_points.points import FixedPoints, jacobian_at
from meanfield.families.contrastive.order_parameters.table import BallTable
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.typing import FloatArray

SADDLE_DISTANCE = 1e-4
"""Distance from a saddle at which its manifold begins, straight up to the square of the distance."""

SOURCE_DISTANCE = 1e-3
"""Distance from a source within which a separatrix that comes from it is drawn straight."""

LONGEST_CURVE = 20.0
"""Largest length of a separatrix."""

TOLERANCE = Tolerance(relative=1e-8, absolute=1e-10)
"""Tolerance of a step of a separatrix: far below what a figure shows."""

SPACING = 0.01
"""Largest distance of neighbouring points of a separatrix."""

NULLCLINE_CELLS = 200
"""Number of cells along the radius and along a right angle, at whose edges nullclines are searched."""

AXIS_DISTANCE = 1e-3
"""Distance of the cells, in angles, from axes that are nullclines as a whole."""


def separatrices(points: FixedPoints, quadrant: bool) -> list[FloatArray]:
    """Stable manifolds of saddles, traced backwards to a source or to the edge of the disc.

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
                curves.append(np.vstack([point.q, _backwards(points, start)]))
    return curves


def _backwards(points: FixedPoints, start: FloatArray) -> FloatArray:
    """Trajectory that leads to a start, parametrised by its length."""
    sources = [point.q for point in points.points if point.unstable_directions == 2]

    def heading(_: float, q: FloatArray) -> FloatArray:
        b = points.field(q / max(1.0, float(np.linalg.norm(q)) * (1.0 + 4e-16)))
        return np.asarray(-b / max(float(np.linalg.norm(b)), np.finfo(float).tiny))

    def edge(_: float, q: FloatArray) -> float:
        return float(q @ q) - 1.0

    def nearest(_: float, q: FloatArray) -> float:
        return min([float(np.linalg.norm(q - source)) for source in sources], default=1.0) - SOURCE_DISTANCE

    path = solve_ode(
        heading,
        start,
        (0.0, LONGEST_CURVE),
        TOLERANCE,
        integrator="RK45",
        stops=[edge, nearest],
        longest_step=SPACING,
        every_step=True,
    ).values
    close = [source for source in sources if np.linalg.norm(path[-1] - source) < 2 * SOURCE_DISTANCE]
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
