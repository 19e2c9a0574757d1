"""One method on one random problem: its numbers, the errors that it claims, and its processor time.

References are methods, too: the reduced ODEs by another integrator for linear priors, and otherwise the density again,
to a tenth of the tolerance. The Eulerian scheme, which shares nothing in w with the default one, is a second
opinion that takes longer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.mckean_vlasov.density.settings import DensitySettings
from meanfield.problems.file import parse_problem
from meanfield.typing import FloatArray
from validation.contrastive.exact_marginal import exact_marginal
from validation.contrastive.random_problems import random_text
from validation.contrastive.stationary_residual import stationary_residual

REFINEMENT = 10.0
"""Factor between the tolerance of a density and that of its refined reference."""

TIGHTEST = 1e-10
"""Tightest tolerance that a density takes."""

ODE_TOLERANCE = 1e-12

DIMENSION, REPLICAS = 400, 16
"""Size of the ensembles of SGD: the dimension N, and the number of replicas."""

STANDARD_ERRORS = 5.0
"""Number of standard errors that SGD may be off, with 16 replicas at 20 times that depend on each other: one of a
thousand means of Gaussian fluctuations is further off than that."""


@dataclass(frozen=True)
class Run:
    """End of one method on one problem, in plain numbers that JSON can hold.

    Parameters
    ----------
    status : str
        Of the result, or `refused: ...` with the message of an InputError.
    seconds : float
        Processor time, without reading the problem.
    moments : list of list of float
        q and r at all output times, shape (outputs, d1 + 1); r is None where a method does not give it.
    errors : list of list of float
        Their claimed errors, of the same shape; empty where none are claimed.
    residual : tuple of float, optional
        Largest residual of stationary states by another quadrature, the claimed error, and that of the quadrature.
    marginal : tuple of float, optional
        Error of the marginal density in L1 halfway and at the end, and the claimed one.
    """

    status: str
    seconds: float
    moments: list[list[float | None]]
    errors: list[list[float]]
    residual: tuple[float, float, float] | None = None
    marginal: tuple[float, float] | None = None


def _density(problem: Problem, tolerance: float, **settings: str) -> xr.Dataset:
    chosen = DensitySettings.model_validate({"tolerance": max(tolerance, TIGHTEST)} | settings)
    return meanfield.solve_density(meanfield.with_value(problem, "density", chosen))


def _particles(problem: Problem, tolerance: float) -> xr.Dataset:
    sizes = {"particles.dimension": DIMENSION, "particles.replicas": REPLICAS}
    return meanfield.simulate_sgd(meanfield.with_values(problem, sizes), workers=1)


def _exact(problem: Problem, tolerance: float) -> xr.Dataset:
    """Reduced ODEs of a linear prior by DOP853."""
    field, times = VectorField(problem), problem.time.outputs_at
    path = solve_ivp(
        lambda t, q: field(q),
        (0.0, times[-1]),
        problem.initial_overlap,
        "DOP853",
        times,
        rtol=ODE_TOLERANCE,
        atol=ODE_TOLERANCE,
    )
    work = problem.prior.strength if problem.prior.name == "l2" else 0.0
    arrays = {"q": (("time", "feature"), path.y.T), "r": ("time", np.full(len(times), work))}
    status = "complete" if path.success else f"failed: {path.message}"
    return xr.Dataset(arrays, {"time": times}, {"status": status})


Solver = Callable[[Problem, float], xr.Dataset]

METHODS: dict[str, Solver] = {
    "density": _density,
    "order_parameters": lambda problem, tolerance: meanfield.solve_order_parameters(problem),
    "stationary": lambda problem, tolerance: meanfield.find_stationary_states(problem),
    "dynamics": lambda problem, tolerance: meanfield.contrastive.analyse_dynamics(problem),
    "particles": _particles,
}
"""Methods that the study is about, by name."""

REFERENCES: dict[str, Solver] = {
    "exact": _exact,
    "refined": lambda problem, tolerance: _density(problem, tolerance / REFINEMENT),
    "eulerian": lambda problem, tolerance: _density(problem, tolerance, scheme="eulerian"),
}
"""Solutions that errors are measured by, the most trusted first; the last one is asked for by an option."""

CLOSED = ("order_parameters", "dynamics")
"""Methods for linear priors alone."""

IN_TIME = ("density", "order_parameters", "particles")
"""Methods whose errors are measured by a reference."""


MOST_SAMPLES = 2e8
"""Largest number of samples that SGD may draw for a problem; other problems are left out of its row."""


def solvers_of(problem: Problem, methods: list[str], eulerian: bool = False) -> list[str]:
    """Methods that apply to a problem, and the references that they need."""
    linear = problem.prior.functions.linear
    samples = problem.model.batch_size * problem.time.stop * DIMENSION * REPLICAS
    left_out = [*([] if linear else CLOSED), *(["particles"] if samples > MOST_SAMPLES else [])]
    applying = [name for name in methods if name not in left_out]
    if not any(name in IN_TIME for name in applying):
        return applying
    return [*applying, *(["exact"] if linear else ["refined"]), *(["eulerian"] if eulerian else [])]


def run_one(seed: int, solver: str, tolerance: float) -> Run:
    """Run a method or a reference on the problem of a seed."""
    problem = parse_problem(random_text(seed))
    began = time.process_time()
    try:
        result = (METHODS | REFERENCES)[solver](problem, tolerance)
    except InputError as error:
        return Run(f"refused: {error}", time.process_time() - began, [], [])
    seconds = time.process_time() - began
    return Run(
        result.attrs["status"],
        seconds,
        *_moments(result),
        _residual(problem, result) if solver == "stationary" else None,
        _marginal(problem, result) if solver == "density" else None,
    )


def _moments(result: xr.Dataset) -> tuple[list[list[float | None]], list[list[float]]]:
    if "time" not in result.dims:
        return [], []
    q, r = result["q"], result.get("r", xr.full_like(result["time"], math.nan, dtype=float))
    errors: list[list[float]] = []
    if "q_error" in result:
        errors = np.column_stack([result["q_error"], result["r_error"]]).tolist()
    if "replica" in result.dims:
        both = q.transpose("time", "replica", "feature").values, r.transpose("time", "replica").values[..., None]
        several = np.concatenate(both, axis=2)
        errors = (STANDARD_ERRORS * several.std(1, ddof=1) / math.sqrt(REPLICAS)).tolist()
        return several.mean(1).tolist(), errors
    return [[None if math.isnan(x) else x for x in row] for row in np.column_stack([q, r]).tolist()], errors


def _residual(problem: Problem, result: xr.Dataset) -> tuple[float, float, float] | None:
    states = [result.isel(state=k) for k in range(result.sizes["state"])]
    if not states:
        return None
    claimed = float((result["residual"] + result["quadrature_error"]).max())
    found = [stationary_residual(problem, state) for state in states]
    return max(residual for residual, _ in found), claimed, max(error for _, error in found)


def _marginal(problem: Problem, result: xr.Dataset) -> tuple[float, float] | None:
    """Error of `P_w` under a linear prior, where the result has it, and the claimed error of densities."""
    if not problem.prior.functions.linear or "P_w" not in result or result.attrs["status"] != "complete":
        return None
    edges: FloatArray = edges_of(result)
    halfway_and_last = result.isel(time=[result.sizes["time"] // 2, -1])
    found: FloatArray = halfway_and_last["P_w"].values
    exact = np.array([exact_marginal(problem, q, edges) for q in halfway_and_last["q"].values])
    claimed = float(halfway_and_last["P_error"].max()) if "P_error" in result else math.nan
    return float((np.abs(found - exact) @ np.diff(edges)).max()), claimed
