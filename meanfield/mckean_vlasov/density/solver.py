"""Solve a limit for its density, with the cells and steps that settings name or that their tolerance needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from meanfield.arguments import as_text
from meanfield.errors import InputError
from meanfield.ingredients.part import with_unchecked
from meanfield.mckean_vlasov.condensation import with_condensate
from meanfield.mckean_vlasov.density.lagrangian.search import Search
from meanfield.mckean_vlasov.density.level import Level, Thresholds, combined_density, extrapolated_moments
from meanfield.mckean_vlasov.density.level_search import Factors, solved
from meanfield.mckean_vlasov.density.plan import WIDEST, Plan, check_memory, fixed_plan
from meanfield.mckean_vlasov.density.refinement import solve_to_tolerance
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.mckean_vlasov.density.solution import Solution
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.extrapolation import SMOOTH_POWERS, extrapolation_weights
from meanfield.numerics.finite_volumes.fipy_step import FiPyStep
from meanfield.numerics.finite_volumes.grid import MakeStep
from meanfield.process.progress import progress_bar
from meanfield.results.solved import Solved

THRESHOLDS = Thresholds(norm=0.05, negative=1e-14, edge=1e-9, edge_mean=1e-9)
"""Thresholds of a solution with given cells and steps, so loose that only unintended ones fail."""

CELL_STEP = 2e-9
"""Seconds for each cell, node and step; docs/cost.md has 1.3 to 2 ns."""

LONGEST_TIME = 86_400.0
"""Largest predicted time in seconds of a solution, a day."""


def solve_fixed(limit: Limit, settings: DensitySettings, make_step: MakeStep | None) -> Solution:
    """Solve with the cells and steps of the settings, and defaults for what they leave open."""

    def attempt_with(factors: Factors) -> _Attempt:
        return _Attempt(limit, settings, fixed_plan(limit, settings, *factors), make_step)

    def allowed(attempt: _Attempt, factors: Factors) -> bool:
        # A plan that cannot change, because the settings fix it or it is at its limits, is not tried twice.
        return factors.widening <= WIDEST and fixed_plan(limit, settings, *factors).size != attempt.plan.size

    levels, status = solved(attempt_with, 1.5, allowed)  # mass has reached the outermost cells
    return levels.solution(status)


def levels_of(settings: DensitySettings) -> tuple[int, ...]:
    """Refinement factors of the levels."""
    return (1,) if settings.order == 2 else (1, 2)


def check_work(limit: Limit, settings: DensitySettings, plan: Plan) -> float:
    """Cells times nodes times steps of all levels.

    Raises
    ------
    InputError
        If they would take longer than a day.
    """
    nodes, cells = plan.grid(limit, solved=True).shape
    work = float(nodes) * cells * plan.step_times.total * sum(k * k for k in levels_of(settings))
    if CELL_STEP * work > LONGEST_TIME:
        raise InputError(
            f"density: {plan.step_times.total:.4g} steps on {nodes} nodes x {cells} cells would take about "
            f"{CELL_STEP * work / LONGEST_TIME:,.2g} days, and may take one; lower density.steps, density.cells or "
            "density.feature_nodes, or give density.tolerance in their place"
        )
    return work


class _Attempt:
    """The levels of one plan, which reach the output times together."""

    def __init__(self, limit: Limit, settings: DensitySettings, plan: Plan, make_step: MakeStep | None) -> None:
        self.plan, self._factors = plan, levels_of(settings)
        check_work(limit, settings, plan)
        self._grid, self._nodes, self._outputs = plan.grid(limit), plan.nodes(limit), len(limit.times)
        check_memory(self._outputs, self._grid.shape, sum(k * (self._outputs + 6) for k in self._factors))
        solved = plan.grid(limit, solved=True)
        self._levels = [Level(limit, solved, plan.step_times, k, THRESHOLDS, make_step) for k in self._factors]

    def solve(self) -> str:
        """Advance to the last output time and return the status."""
        with progress_bar(self._outputs - 1, "density") as bar:
            for index in range(self._outputs):
                for level in self._levels:
                    level.reach(index)
                bar.update(index > 0)
        return "complete"

    def solution(self, status: str) -> Solution:
        """Solution up to the last output time that was reached."""
        weights = extrapolation_weights(self._factors, SMOOTH_POWERS[: len(self._factors) - 1])
        moments, (density, _) = extrapolated_moments(self._levels, weights), combined_density(self._levels, weights, 1)
        effort: dict[str, object] = {
            "cells": [level.grid.shape[1] for level in self._levels],
            "steps": [level.steps for level in self._levels],
            "nodes": len(self._nodes.u),
        }
        return Solution(self._grid, moments, self._nodes.unfolded(density, 1, 2), status, effort)


MOST_FEATURES = 3
"""Largest number of features: the number of nodes grows exponentially with it."""

MARGINAL_TOLERANCE = 1e-3
"""Estimated L1 error of the density of w alone by interpolation in u, above which more nodes are taken. The estimate
compares with every other node; the error itself is some ten times less."""

LEAST_MORE_NODES, MORE_NODES, MOST_NODES = 1.4, 2.0, 4.0
"""Least and largest factor on the number of nodes from one solution to the next, and the largest altogether."""

BACKENDS: dict[str, MakeStep | None] = {"numba": None, "fipy": FiPyStep}
"""Software that computes steps, by name; None is the compiled kernel."""


def solve(limit: Limit, settings: DensitySettings | None = None, backend: str = "numba") -> Solution:
    """Density of weights and features from the Fokker-Planck equation, with self-consistent q and r.

    Parameters
    ----------
    limit : Limit
        Limit with one to three features.
    settings : DensitySettings, optional
        Accuracy, or cells and steps; by default an error of q and r below 1e-6.
    backend : {"numba", "fipy"}
        Our kernel, or the same scheme in FiPy as a reference (slow).

    Returns
    -------
    Solution
        Its `status` is `complete`, `interrupted` or `failed: ...`.

    Raises
    ------
    InputError
        If there are more than three features, the solution needs more memory than is free, the closure gives arrays of
        other shapes, or an unknown backend is asked for.

    Notes
    -----
    `tolerance` is the error allowed in q and r at every output time; points or cells, nodes and steps follow from it.

    The Lagrangian scheme, in the quantile frame (inverse distribution function), follows the weights w = X(xi) of a
    node at quantiles xi of the normal law, between which the probability stays the same: second order in the points
    with Richardson extrapolation, linearly implicit steps of order 5 (`meanfield.numerics.quantile_frame`). No weight
    is advected through cells, however little noise there is.

    The Eulerian scheme has finite volumes with Scharfetter-Gummel fluxes from differences of the potential; implicit
    midpoint rule; Richardson extrapolation in cell width and time step together. With `cells`, `steps` or `order` they
    are fixed, and nothing is estimated. The backend "fipy" always takes it. All quantities are dimensionless. Source:
    theory.md, section 2.
    """
    check_backend(backend)
    if len(limit.coordinates) > MOST_FEATURES:
        raise InputError(
            f"coordinates: {len(limit.coordinates)} of them, but the density is solved for one to {MOST_FEATURES} "
            "features; remove some"
        )
    if limit.spectrum is not None and backend == "fipy":
        raise InputError("backend = 'fipy': its steps know one variance of the noise; take 'numba'")
    settings = DensitySettings() if settings is None else settings
    if limit.initial_law is not None:  # it is known at its own nodes, and no others are tried
        per_feature = math.ceil(len(limit.initial_law.u) ** (1.0 / len(limit.coordinates)))
        settings = with_unchecked(settings, feature_nodes=per_feature)
    if settings.tolerance is None:
        return solve_fixed(limit, settings, BACKENDS[backend])
    more: Callable[[float], Solution | None]
    if settings.scheme == "lagrangian" and backend == "numba":
        search = Search(limit, settings, settings.tolerance)
        solution, more = search.solve(), search.with_more_nodes
    else:
        eulerian = partial(solve_to_tolerance, limit, settings, settings.tolerance, BACKENDS[backend])
        solution, more = eulerian(), lambda scale: eulerian(node_scale=scale)
    return solution if settings.feature_nodes else _with_enough_nodes(limit, solution, more)


def density_of(limit: Limit, settings: DensitySettings, dimension: int, backend: str = "numba") -> Solved:
    """Density of a limit as a method returns it, with a warning where the norm goes to ever fewer weights.

    Parameters
    ----------
    limit : Limit
        Limit with one to three features.
    settings : DensitySettings
    dimension : int
        N of the problem's SGD, which follows the limit as long as enough weights carry the norm.
    backend : {"numba", "fipy"}

    Returns
    -------
    Solved
        Of the kind `density`; see `solve`.
    """
    solution = solve(limit, settings, backend)
    arrays, warning = solution.arrays(limit), ""
    if not limit.free_norm and limit.spectrum is None:
        arrays, warning = with_condensate(limit, arrays, dimension)
    if limit.initial_law is not None:
        arrays |= {name: arrays[name] + error for name, error in limit.initial_law.errors.items() if name in arrays}
    return Solved("density", arrays, solution.status, warning, {"backend": backend} | solution.effort)


def _with_enough_nodes(limit: Limit, solution: Solution, more: Callable[[float], Solution | None]) -> Solution:
    """Solution with more nodes in u, if those that q and r need are too few for the density of w alone; the best one.

    Parameters
    ----------
    more : callable
        Solution with a factor on the number of nodes of this one, or None.
    """
    scale = 1.0
    best, least = solution, math.inf
    while solution.status == "complete":
        error = solution.error_between_nodes(limit)
        if error <= least:
            best, least = solution, error
        if error <= MARGINAL_TOLERANCE or scale >= MOST_NODES:
            break
        # By interpolation the error falls at least like the square of the distance of nodes, where narrow laws bend.
        factor = (error / MARGINAL_TOLERANCE) ** (1 / 2)
        scale = min(MOST_NODES, scale * float(np.clip(factor, LEAST_MORE_NODES, MORE_NODES)))
        better = more(scale)
        if better is None or better.status != "complete":
            break
        solution = better
    return best


def check_backend(backend: str) -> None:
    """Refuse an unknown backend.

    Raises
    ------
    InputError
        If the backend is unknown; the message names the known ones.
    """
    if as_text(backend, "backend", f"choose one of {', '.join(BACKENDS)}") not in BACKENDS:
        raise InputError(f"backend = '{backend}': known backends are {', '.join(BACKENDS)}; choose one of them")
