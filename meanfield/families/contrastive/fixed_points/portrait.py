"""The phase portrait of two features: velocities, separatrices of saddles, nullclines and regions of attraction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from meanfield.arguments import as_whole, wrong
from meanfield.errors import InputError
from meanfield.families.contrastive.fixed_points.attraction import UNDECIDED, Labels, trapping_points, traps
from meanfield.families.contrastive.fixed_points.faces import jacobian_at
from meanfield.families.contrastive.fixed_points.points import FixedPoints, find_fixed_points, fixed_point_arrays
from meanfield.families.contrastive.fixed_points.symmetries import is_reflected
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.table import BallTable
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.growth_rates import FixedPoint
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

SADDLE_DISTANCE = 1e-4
"""Distance from a saddle at which manifolds begin, or those of others end, straight up to its square."""

TOLERANCE = Tolerance(relative=1e-8, absolute=1e-10)
"""Tolerance of a step of a separatrix: far below what a figure shows."""

OUTSIDE_DISC = -2
"""Label of grid points outside the disc."""

Plane = Literal["q", "Q"]


@dataclass(frozen=True)
class Portrait:
    """A phase portrait of two features.

    Parameters
    ----------
    plane : str
        `q`: the disc of (q_1, q_2); `Q`: the triangle of (Q_1, Q_2) = (q_1^2, q_2^2), for q_1, q_2 >= 0.
    fixed_points : FixedPoints
        All fixed points, also those outside the quadrant.
    shown : tuple of int
        Indices of the fixed points that lie in the plane that is shown.
    q : ndarray, shape (rows, columns, 2)
        Overlaps at the centres of the cells of a square grid over the plane, the second one along rows; NaN outside.
    velocity : ndarray, shape (rows, columns, 2)
        Velocity dq/dt at these overlaps.
    region : ndarray of int, shape (rows, columns)
        Number of the fixed point that attracts a cell, `UNDECIDED` or `OUTSIDE_DISC`.
    separatrices : list of ndarray, shape (n, 2)
    nullclines : list of ndarray, shape (n, 2)
        Points of b_1 = 0 and of b_2 = 0, in no order.
    table_error : float
        Error of the interpolated field that regions and nullclines come from, relative to its largest value.
    """

    plane: Plane
    fixed_points: FixedPoints
    shown: tuple[int, ...]
    q: FloatArray
    velocity: FloatArray
    region: Labels
    separatrices: list[FloatArray]
    nullclines: list[FloatArray]
    table_error: float

    @property
    def shares(self) -> FloatArray:
        """Part of the plane's area that each fixed point attracts, shape (fixed points,)."""
        inside = np.count_nonzero(self.region != OUTSIDE_DISC)
        return np.array([np.count_nonzero(self.region == i) for i in range(len(self.fixed_points.points))]) / inside


def portrait_of(fixed_points: FixedPoints, plane: Plane | None = None, cells: int = 60) -> Portrait:
    """The phase portrait around the fixed points of two features.

    Parameters
    ----------
    plane : {"q", "Q"}, optional
        `Q` unless the features are not symmetric.
    cells : int
        Number of cells along each side of the grid.

    Raises
    ------
    InputError
        If there are not two features, `Q` would not tell all, or there are no cells.
    """
    plane = _checked(fixed_points, plane, cells)
    quadrant = plane == "Q"
    field = fixed_points.field
    table = BallTable(field, 2, quadrant)
    q = _cells(plane, cells)
    inside = np.isfinite(q[..., 0])
    velocity, region = np.full(q.shape, np.nan), np.full(inside.shape, OUTSIDE_DISC)
    velocity[inside] = table(q[inside])
    region[inside] = trapping_points(table, q[inside], traps(fixed_points), fixed_points.size)
    shown = tuple(i for i, point in enumerate(fixed_points.points) if not quadrant or np.all(point.q >= 0))
    return Portrait(
        plane,
        fixed_points,
        shown,
        q,
        velocity,
        region,
        separatrices(fixed_points, quadrant),
        nullclines(table, quadrant),
        table.error,
    )


def _checked(fixed_points: FixedPoints, plane: Plane | None, cells: int) -> Plane:
    features = fixed_points.field.features
    if features != 2:
        raise InputError(f"features: {features} of them, but portraits are drawn for 2; give two features")
    as_whole(cells, "cells", "give a whole number, at least 2 along each side", least=2)
    if plane not in (None, "q", "Q"):
        raise wrong("plane", plane, "give 'q' or 'Q', or None for the one that shows all")
    symmetric = is_reflected(fixed_points.flips)
    if plane == "Q" and not symmetric:
        raise InputError(
            "plane = 'Q': signs of the overlaps matter in this problem, since a hidden variable is not symmetric; "
            "draw plane = 'q'"
        )
    return plane or ("Q" if symmetric else "q")


def _cells(plane: Plane, cells: int) -> FloatArray:
    """Overlaps at the centres of cells, shape (rows, columns, 2), NaN outside the disc."""
    centres = (np.arange(cells) + 0.5) / cells
    side = np.sqrt(centres) if plane == "Q" else 2.0 * centres - 1.0
    q = np.stack(np.meshgrid(side, side), axis=-1)
    return np.where(np.linalg.norm(q, axis=-1, keepdims=True) < 1.0, q, np.nan)


@solver
def phase_portrait(problem: Problem, plane: Plane | None = None, cells: int = 60) -> Solved:
    """The phase portrait of a problem with two features.

    Parameters
    ----------
    problem : Problem
        Problem with a prior that closes the ODEs.
    plane : {"q", "Q"}, optional
        The disc of (q_1, q_2), or the triangle of (Q_1, Q_2) = (q_1^2, q_2^2); the latter unless features are not
        symmetric.
    cells : int
        Number of cells along each side of the grid.

    Returns
    -------
    xarray.Dataset
        Result of the method `portrait`: fixed points along `state`; `q_cell`, `velocity` and `region` along `row` and
        `column`; `separatrix`, whose curves are separated by NaN; `nullcline`. The attribute `plane` is the plane.

    Raises
    ------
    InputError
        If the prior does not close the ODEs, there are not two features, `Q` would not tell all, or there are no cells.

    Notes
    -----
    Source: theory.md, section 2, for dq/dt.
    """
    field = VectorField(problem)
    with field.watched("phase portrait"):
        portrait = portrait_of(find_fixed_points(field), plane, cells)
    return Solved("portrait", portrait_arrays(portrait), attributes={"plane": portrait.plane})


def portrait_arrays(portrait: Portrait) -> dict[str, Any]:
    """The variables of a portrait, as the schema names them; regions count the fixed points that are shown."""
    shown = np.array(portrait.shown)
    # A region of a fixed point that is not shown does not meet the plane.
    number = np.full(len(portrait.fixed_points.points) + 2, UNDECIDED)
    number[shown], number[OUTSIDE_DISC] = np.arange(len(shown)), OUTSIDE_DISC
    broken = np.full((1, 2), np.nan)
    return fixed_point_arrays(portrait.fixed_points, portrait.shown) | {
        "q_cell": portrait.q,
        "velocity": portrait.velocity,
        "region": number[portrait.region].astype(np.int16),
        "region_share": portrait.shares[shown],
        "separatrix": np.vstack([part for curve in portrait.separatrices for part in (curve, broken)] or [broken]),
        "nullcline": np.vstack(portrait.nullclines),
        "nullcline_component": np.repeat([0, 1], [len(points) for points in portrait.nullclines]).astype(np.int8),
        "table_error": np.float64(portrait.table_error),
    }


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
    quadrant : bool
        Whether only points with q_1, q_2 >= 0 are kept, without the axes, on which one component vanishes by symmetry.

    Returns
    -------
    list of ndarray, shape (n, 2)
        Points for each component.
    """
    cells = 200  # along the radius and along a right angle
    apart = 1e-3  # angle between the cells and axes that are nullclines as a whole
    angle = np.linspace(apart, 0.5 * np.pi, cells + 1)
    turn = np.linspace(apart, 0.5 * np.pi - apart, cells + 1) if quadrant else np.linspace(0, 2 * np.pi, 4 * cells + 1)
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
