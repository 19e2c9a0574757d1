"""Trajectories of the overlaps q_t, and of their covariance at finite N."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp

from meanfield.errors import BlowUpError, InputError
from meanfield.families.contrastive.order_parameters.field import VectorField, check_closes, rate
from meanfield.families.contrastive.order_parameters.fluctuations import covariance_along
from meanfield.families.contrastive.order_parameters.noise import StepNoise
from meanfield.families.contrastive.problem import Problem
from meanfield.process.progress import progress_bar
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset
from meanfield.typing import FloatArray

RELATIVE_TOLERANCE = 1e-11
ABSOLUTE_TOLERANCE = 1e-13


def solve_order_parameters(problem: Problem) -> xr.Dataset:
    """Overlaps q_t from the reduced ODEs, and how much they fluctuate at finite N.

    Parameters
    ----------
    problem : Problem
        With a prior that closes the ODEs (none or l2), any number of features, and a start that is not random.

    Returns
    -------
    xarray.Dataset
        `q`, `g`, `Lambda` as `meanfield.families.contrastive.results` describes them, and `q_covariance`, N times the
        covariance of q over runs of SGD to leading order, except under batch centring and where S does not exist
        (`StepNoise`). The attribute `status` is `complete` or `failed: ...`; output times after a failure are NaN.

    Raises
    ------
    InputError
        If the prior does not close the ODEs or the start is random.
    """
    check_trajectory(problem)
    started = time.perf_counter()
    field = VectorField(problem)
    times = problem.time.outputs_at
    q = np.full((len(times), len(problem.features)), np.nan)
    status = "complete"
    # An overflow ends as a failed step, which is reported.
    with np.errstate(all="ignore"), progress_bar(problem.time.stop, "order parameters", unit="t") as bar:

        def derivative(t: float, q: FloatArray) -> FloatArray:
            bar.update(max(t - bar.n, 0.0))
            return rate(field.closure, q)

        solution = solve_ivp(
            derivative,
            (0.0, problem.time.stop),
            problem.initial_overlap,
            method="LSODA",
            t_eval=times,
            dense_output=True,
            rtol=RELATIVE_TOLERANCE,
            atol=ABSOLUTE_TOLERANCE,
        )
    reached = solution.y.T
    q[: len(reached)] = reached
    inside = np.einsum("tf,tf->t", q, q) <= 1.0 + 1e-6
    last = len(times) if inside.all() else int(np.argmin(inside))
    if last < len(times):
        status = _blow_up(times, q, last).status
        q[last:] = np.nan
    closed = [field.closure(row) if np.all(np.isfinite(row)) else (row, np.nan) for row in q]
    arrays = {
        "time": times,
        "q": q,
        "g": np.array([g for g, _ in closed]),
        "Lambda": np.array([diffusion for _, diffusion in closed]),
    }
    if solution.sol is not None:
        arrays |= _covariance(field, solution.sol, times, last)
    return build_dataset("order_parameters", problem, arrays, status, provenance(time.perf_counter() - started))


def _covariance(
    field: VectorField, trajectory: Callable[[float], FloatArray], times: FloatArray, last: int
) -> dict[str, FloatArray]:
    """C at the times before `last`, or nothing if the covariance of a step is not known."""
    try:
        noise = StepNoise(field)
    except InputError:
        return {}
    C = np.full((len(times), field.features, field.features), np.nan)
    with np.errstate(all="ignore"):  # an overflow ends in NaN
        C[:last] = covariance_along(field, noise, trajectory, times[:last])
    return {"q_covariance": C}


def check_trajectory(problem: Problem) -> None:
    """Refuse what has no trajectory of its own; see `solve_order_parameters`."""
    check_closes(problem)
    if problem.random_start:
        raise InputError(
            "features.initial_overlap = 'random': the order parameters stay at q = 0 from a random start in the "
            "limit; give a number, or use SGD"
        )


def _blow_up(times: FloatArray, q: FloatArray, index: int) -> BlowUpError:
    last = q[index]
    what = f"|q| = {np.linalg.norm(last):.4g}" if np.all(np.isfinite(last)) else "q is not finite"
    return BlowUpError(
        float(times[index]),
        f"{what}, but overlaps lie in the unit ball",
        "lower model.learning_rate or raise model.batch_size",
    )
