"""Density of infinitely many filters on the circle, on grids that are halved until two agree.

Source: alpha_contrastive.md, section 4, equation (MV).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.density.flows import CoupledFlow, MakeFlow, MixtureFlow
from meanfield.families.alpha_contrastive.density.grid import Grid, make_grid
from meanfield.families.alpha_contrastive.filters import FourierStart, UniformStart
from meanfield.families.alpha_contrastive.laws import DiscreteLaw, GaussianMixture, Images, Tokens
from meanfield.families.alpha_contrastive.limit.circle import walls_of
from meanfield.families.alpha_contrastive.limit.fields import discrete_field, mixture_field, scale_of_angles
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.numerics.periodic_transport import steps_of, transport
from meanfield.problems.base import check_problem
from meanfield.process.progress import progress_bar
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset
from meanfield.typing import FloatArray

HARMONICS = 8
"""Number of moments E[cos k theta], E[sin k theta] of results."""

MOST_STEPS = 20_000
"""Largest number of time steps, as the velocity of the start predicts them; grids that need more are not tried."""

FEWEST_CELLS, MOST_CELLS = 100, 6400
"""Numbers of cells of the first and of the finest grid."""


@dataclass(frozen=True)
class Path:
    """Density on one grid, and what is known of it.

    Parameters
    ----------
    grid : Grid
    rho : ndarray, shape (times, cells)
    moments : ndarray, shape (2, times, harmonics)
        E[cos k theta] and E[sin k theta].
    objective, gap : ndarray, shape (times,)
    """

    grid: Grid
    rho: FloatArray
    moments: FloatArray
    objective: FloatArray
    gap: FloatArray


def check_density(problem: Problem) -> None:
    """Refuse problems that have no density on the circle, at no cost.

    Raises
    ------
    InputError
    """
    check_problem(problem, Problem)
    if isinstance(problem.data, Tokens | Images):
        raise InputError(
            f"data.law = '{problem.data.law}' is for two layers, which have no density on a circle; take other data"
        )
    if problem.data.dimension != 2:
        raise InputError(
            f"data have {problem.data.dimension} coordinates, and the density of filters is on the circle; take data "
            "in the plane, or the method 'critical_points'"
        )
    start = problem.filters.start
    if not isinstance(start, UniformStart | FourierStart):
        raise InputError(
            f"filters.start.law = '{start.law}' is a start of single filters; take 'uniform' or 'fourier' for a density"
        )
    _flow_of(problem)


def _flow_of(problem: Problem) -> MakeFlow:
    longest = scale_of_angles(problem)
    if isinstance(problem.data, GaussianMixture):
        return partial(MixtureFlow, mixture_field(problem, problem.data), longest=longest)
    assert isinstance(problem.data, DiscreteLaw)
    return partial(CoupledFlow, discrete_field(problem, problem.data), longest=longest)


def solve_density(problem: Problem) -> xr.Dataset:
    """Density of filters on the circle in the limit of infinitely many.

    Parameters
    ----------
    problem : Problem
        With one layer, data in the plane, and a start that has a density.

    Returns
    -------
    xarray.Dataset
        `rho`, averages over cells; `moment_cos` and `moment_sin` with estimated errors; the objective `G` that the flow
        ascends; and `certificate_gap`, what E_alpha of the best filter is above its average over the density, which
        bounds what G is below its largest value.

    Raises
    ------
    InputError
        If the method does not apply to the problem, or would take very many steps.

    Notes
    -----
    Source: alpha_contrastive.md, section 4. Errors are the differences of the two finest grids, which are three times
    the error of the finer one at order two, that of smooth activations, and as large as the error at order one. For
    ReLU, whose density has jumps that move away from walls, the order of moments is 1.3 to 1.9.
    """
    check_density(problem)
    started = time.perf_counter()
    make, cells = _flow_of(problem), FEWEST_CELLS
    steps = _steps(problem, make, cells)
    if not steps <= MOST_STEPS / 2:
        raise InputError(
            f"time.stop = {problem.time.stop:g} takes {steps:.2g} time steps on the coarsest grid, {cells} cells; "
            f"lower it to {problem.time.stop * MOST_STEPS / (4 * steps):.2g} or less, by when filters have gathered, "
            "or scale the data down"
        )
    coarse = _solved(problem, make, cells)
    while True:
        cells *= 2
        fine = _solved(problem, make, cells)
        error = np.abs(fine.moments - coarse.moments)
        if (
            error.max() <= problem.density.tolerance
            or cells >= MOST_CELLS
            or 2 * steps * cells > MOST_STEPS * FEWEST_CELLS
        ):
            break
        coarse = fine
    arrays = {
        "time": problem.time.outputs_at,
        "angle": fine.grid.nodes,
        "angle_bnds": np.stack([fine.grid.edges[:-1], fine.grid.edges[1:]], axis=1),
        "rho": fine.rho,
        "harmonic": np.arange(1, HARMONICS + 1),
        "moment_cos": fine.moments[0],
        "moment_sin": fine.moments[1],
        "moment_cos_error": error[0],
        "moment_sin_error": error[1],
        "G": fine.objective,
        "G_error": np.abs(fine.objective - coarse.objective),
        "certificate_gap": fine.gap,
    }
    warning = ""
    if error.max() > problem.density.tolerance:
        warning = (
            f"moments differ by {error.max():.2g} between {cells // 2} and {cells} cells, more than density.tolerance "
            f"= {problem.density.tolerance:g}: mass gathers in spikes; raise the tolerance, or lower time.stop"
        )
    origin = provenance(time.perf_counter() - started, cells=cells)
    return build_dataset("density", problem, arrays, "complete", origin, warning)


def _steps(problem: Problem, make: MakeFlow, cells: int) -> float:
    """Number of time steps on an even grid, at the velocity of the start."""
    even = make_grid(np.empty(0), np.empty(0, dtype=bool), cells)
    return steps_of(make(even).velocity(_start(problem, even.edges)), even.width, problem.time.stop)


def predicted_steps(problem: Problem, cells: int) -> float:
    """Number of time steps of a density on a grid of even cells, at the velocity of the start."""
    return _steps(problem, _flow_of(problem), cells)


def example_step(problem: Problem, cells: int) -> Callable[[], FloatArray]:
    """Function that takes one time step from the start, on a grid of even cells."""
    grid = make_grid(np.empty(0), np.empty(0, dtype=bool), cells)
    flow, start = _flow_of(problem)(grid), _start(problem, grid.edges)
    duration = problem.time.stop / max(predicted_steps(problem, cells), 1.0)
    return lambda: transport(start, grid.width, flow.velocity, duration, grid.breaks)


def _solved(problem: Problem, make: MakeFlow, cells: int) -> Path:
    """Density on a grid."""
    walls, even = walls_of_problem(problem), make_grid(np.empty(0), np.empty(0, dtype=bool), cells)
    attracting = make(even).attracting(_start(problem, even.edges), walls)
    grid, times = make_grid(walls, attracting, cells), problem.time.outputs_at
    flow, rows = make(grid), [_start(problem, grid.edges)]
    with progress_bar(len(times) - 1, f"density, {cells} cells") as bar:
        for duration in np.diff(times):
            rows.append(transport(rows[-1], grid.width, flow.velocity, float(duration), grid.breaks))
            bar.update(1)
    rho = np.array(rows)
    objective, gap = np.array([flow.summary(row) for row in rho]).T
    return Path(grid, rho, _moments(rho, grid), objective, gap)


def walls_of_problem(problem: Problem) -> FloatArray:
    """Angles at which filters may gather in finite time."""
    if not isinstance(problem.data, DiscreteLaw):
        return np.empty(0)
    return walls_of(problem.data.atoms, problem.model.activation_functions.kinks)


def _start(problem: Problem, edges: FloatArray) -> FloatArray:
    """Cell averages of the density at the start."""
    start = problem.filters.start
    if isinstance(start, FourierStart):
        return np.maximum(np.diff(start.distribution(edges)) / np.diff(edges), 0.0)
    return np.full(len(edges) - 1, 0.5 / np.pi)


def _moments(rho: FloatArray, grid: Grid) -> FloatArray:
    """E[cos k theta] and E[sin k theta], shape (2, times, harmonics).

    An average over a cell of width d damps harmonic k by sin(k d/2)/(k d/2), which is undone.
    """
    k = np.arange(1, HARMONICS + 1)
    waves = np.stack([np.cos(np.outer(grid.nodes, k)), np.sin(np.outer(grid.nodes, k))])
    damping = np.sinc(0.5 * np.outer(grid.width, k) / np.pi)
    return np.asarray((rho * grid.width) @ (waves / damping))
