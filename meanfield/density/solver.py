"""Solve a problem for its density, with cells and steps that it names or that its tolerance needs."""

from __future__ import annotations

import time

import xarray as xr

from meanfield.density.fipy_stepper import FiPyStepper
from meanfield.density.fixed import solve_fixed
from meanfield.density.plan import MOST_FEATURES
from meanfield.density.refinement import solve_to_tolerance
from meanfield.density.steppers import MakeStepper, NumbaStepper
from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset

BACKENDS: dict[str, MakeStepper] = {"numba": NumbaStepper, "fipy": FiPyStepper}


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
        `q`, `r`, `P`, `u`, `u_weight`, `w`, `w_edge`, `mass`, `norm`, `g`, `Lambda` as
        `meanfield.families.contrastive.results` describes them. P holds averages over cells. With a tolerance also
        `q_error`, `r_error` and `P_error`, estimates. The attribute `status` is `complete`, `interrupted` or `failed:
        ...`; output times that were not reached are NaN. A tolerance that was missed is a failure, with all output
        times and the errors there are.

    Raises
    ------
    InputError
        If the problem has more than three features or a random start, needs more memory than is free, or an unknown
        backend is asked for.

    Notes
    -----
    Finite volumes with Scharfetter-Gummel fluxes from differences of the potential; implicit midpoint rule; Richardson
    extrapolation in cell width and time step together. `density.tolerance` is the error allowed in q and r at every
    output time; half-width, cells, nodes and steps follow from it. With `density.cells`, `density.steps` or
    `density.order` they are fixed instead, and nothing is estimated. Densities are corrected by positive factors, so
    that they stay positive. All quantities are dimensionless. Source: theory.md, section 2.
    """
    check_density(problem, backend)
    started = time.perf_counter()
    closure = Closure(problem)
    make_stepper, tolerance = BACKENDS[backend], problem.density.tolerance
    if tolerance is None:
        solution = solve_fixed(problem, closure, make_stepper)
    else:
        solution = solve_to_tolerance(problem, closure, make_stepper, tolerance)
    record = provenance(time.perf_counter() - started, backend=backend, **solution.effort)
    return build_dataset("density", problem, solution.arrays(problem, closure), solution.status, record)


def check_density(problem: Problem, backend: str = "numba") -> None:
    """Refuse what has no density that could be solved for; see `solve_density`."""
    if backend not in BACKENDS:
        raise InputError(f"backend = '{backend}': known backends are {', '.join(BACKENDS)}; choose one of them")
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
