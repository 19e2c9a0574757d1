"""Solve a problem for its density: advance one or two solutions, combine them, and fill a Dataset."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import xarray as xr

from meanfield.closures import Closure
from meanfield.density.evolution import Evolution, LongStepsError
from meanfield.density.fipy_stepper import FiPyStepper
from meanfield.density.grid import Grid
from meanfield.density.plan import MOST_FEATURES, Plan, check_memory, make_plan
from meanfield.density.steppers import NumbaStepper, Stepper
from meanfield.errors import BlowUpError, InputError
from meanfield.problem import Problem
from meanfield.progress import progress_bar
from meanfield.provenance import provenance
from meanfield.schema import build_dataset
from meanfield.typing import FloatArray

BACKENDS: dict[str, Callable[[Grid, FloatArray], Stepper]] = {"numba": NumbaStepper, "fipy": FiPyStepper}

EDGE_MASS = 1e-9
"""Largest conditional probability in an outermost cell; with more the cells do not reach far enough."""

NEGATIVE = 1e-14
"""A density below minus this is no rounding: the midpoint rule rings when steps are too long."""

WIDEST = 10.0
"""Largest factor on the default half-width before giving up."""


class NarrowCellsError(BlowUpError):
    """Mass reached the outermost cells."""


def solve_density(problem: Problem, backend: str = "numba") -> xr.Dataset:
    """Density of weights and features from the Fokker-Planck equation, with self-consistent q and r.

    Parameters
    ----------
    problem : Problem
        With one to three features and a start that is not random.
    backend : {"numba", "fipy"}
        Our kernel, or the same scheme in FiPy as a reference (slow).

    Returns
    -------
    xarray.Dataset
        `q`, `r`, `P`, `u`, `u_weight`, `w`, `w_edge`, `mass`, `norm`, `g`, `Lambda` as `meanfield.schema` describes
        them. P holds averages over cells. The attribute `status` is `complete`, `interrupted` or `failed: ...`; in
        the latter two the output times that were not reached are NaN.

    Raises
    ------
    InputError
        If the problem has more than three features or a random start, needs more memory than is free, or an unknown
        backend is asked for.

    Notes
    -----
    Finite volumes with Scharfetter-Gummel fluxes from differences of the potential; implicit midpoint rule. With
    `density.order = 4` a second solution with half the cell width and half the time step is combined with the
    first: moments linearly, densities as P_fine^(4/3) / P_coarse^(1/3), which is as accurate and stays positive.
    All quantities are dimensionless. Source: theory.md, section 2.
    """
    _check(problem, backend)
    started = time.perf_counter()
    closure = Closure(problem)
    widening = refinement = 1.0
    plan, next_plan = None, make_plan(problem, closure)
    # A plan that cannot change, because the problem file fixes it or it is at its limits, is not tried twice.
    while next_plan != plan and widening <= WIDEST:
        plan = next_plan
        check_memory(problem, plan)
        run = _Run(problem, closure, plan, BACKENDS[backend])
        try:
            status = run.solve()
        except NarrowCellsError as error:
            status = error.status
            widening *= 1.5
        except LongStepsError as error:
            status = error.status
            refinement *= 4.0
        else:
            break
        next_plan = make_plan(problem, closure, widening, refinement)
    record = provenance(time.perf_counter() - started, backend=backend)
    return build_dataset("density", problem, run.arrays(), status, record)


def _check(problem: Problem, backend: str) -> None:
    if backend not in BACKENDS:
        raise InputError(f"backend = '{backend}': known backends are {', '.join(BACKENDS)}")
    if len(problem.features) > MOST_FEATURES:
        raise InputError(
            f"features: {len(problem.features)} of them, but the density is solved for one to {MOST_FEATURES}; "
            "remove features, or use the order parameters or SGD"
        )
    if problem.random_start:
        raise InputError(
            "features.initial_overlap = 'random': the density needs a known overlap, because a random one "
            "stays at q = 0 in the limit; give a number, or use SGD"
        )


class _Run:
    """Arrays over the output times, filled as the solutions advance."""

    def __init__(
        self, problem: Problem, closure: Closure, plan: Plan, make_stepper: Callable[[Grid, FloatArray], Stepper]
    ) -> None:
        self._problem = problem
        self._closure = closure
        plans = [plan] if problem.density.order == 2 else [plan, plan.refined]
        self._steps = [p.steps_per_output for p in plans]
        self._solutions = [Evolution(problem, closure, p.grid(problem), make_stepper, p.dt) for p in plans]
        self._grid = self._solutions[0].grid
        self._times = problem.time.outputs_at
        outputs = len(self._times)
        self._vectors = np.full((outputs, len(problem.features) + 3), np.nan)
        self._density = np.full((outputs, *self._grid.shape), np.nan)

    def solve(self) -> str:
        """Advance to the last output time and return the status."""
        self._record(0)
        with progress_bar(len(self._times) - 1, "density") as bar:
            try:
                for index in range(1, len(self._times)):
                    for solution, steps in zip(self._solutions, self._steps, strict=True):
                        solution.advance(steps)
                    self._record(index)
                    bar.update()
            except (NarrowCellsError, LongStepsError):
                raise
            except BlowUpError as error:
                return error.status
            except KeyboardInterrupt:
                return "interrupted"
        return "complete"

    def _record(self, index: int) -> None:
        vectors = [solution.moments.vector for solution in self._solutions]
        densities = [solution.density for solution in self._solutions]
        self._check(float(self._times[index]), densities)
        if len(vectors) == 1:
            self._vectors[index], self._density[index] = vectors[0], densities[0]
        else:
            self._vectors[index] = (4 * vectors[1] - vectors[0]) / 3
            self._density[index] = _extrapolate(densities[0], densities[1], self._grid.h)

    def _check(self, time: float, densities: list[FloatArray]) -> None:
        """Refuse densities that are negative or do not fit into the cells."""
        lowest = min(float(P.min()) for P in densities)
        if lowest < -NEGATIVE:
            raise LongStepsError(
                time,
                f"the density fell to {lowest:.2g}, because time steps are too long for its dynamics",
                "raise density.steps, or lower model.learning_rate",
            )
        edge = self._grid.h * float(max(densities[0][:, 0].max(), densities[0][:, -1].max()))
        if edge > EDGE_MASS:
            raise NarrowCellsError(
                time,
                f"a conditional probability of {edge:.2g} reached the outermost cells at |w| = "
                f"{self._grid.edges[-1]:.4g}",
                "raise density.half_width and density.cells with it",
            )

    def arrays(self) -> dict[str, FloatArray]:
        """The variables of the Dataset."""
        q = self._vectors[:, :-3]
        closed = [self._closure(row) if np.all(np.isfinite(row)) else (row, np.nan) for row in q]
        return {
            "time": self._times,
            "q": q,
            "r": self._vectors[:, -3],
            "norm": self._vectors[:, -2],
            "mass": self._vectors[:, -1],
            "g": np.array([g for g, _ in closed]),
            "Lambda": np.array([diffusion for _, diffusion in closed]),
            "P": self._density,
            "u": self._grid.u,
            "u_weight": self._grid.u_weight,
            "w": self._grid.centres,
            "w_edge": self._grid.edges,
        }


def _extrapolate(coarse: FloatArray, fine: FloatArray, h: float) -> FloatArray:
    """Richardson extrapolation of log P in (h, dt), normalised for each node.

    Linear extrapolation has the same order but goes negative in the tails. Where a density is zero to rounding
    there is no logarithm, and the finer solution stands.
    """
    paired = 0.5 * (fine[:, ::2] + fine[:, 1::2])
    positive = (coarse > 0) & (paired > 0)
    correction = np.cbrt(np.divide(paired, coarse, where=positive, out=np.ones_like(paired)))
    P = paired * correction
    return np.asarray(P / (h * P.sum(axis=1, keepdims=True)))
