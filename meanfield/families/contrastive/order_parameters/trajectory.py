"""Trajectories of the overlaps q_t, and of their covariance at finite N."""

from __future__ import annotations

import numpy as np

from meanfield.errors import BlowUpError, InputError
from meanfield.families.contrastive.channels.trajectory import trajectory_of_channels
from meanfield.families.contrastive.order_parameters.field import VectorField, check_linear, rate
from meanfield.families.contrastive.order_parameters.noise import StepNoise
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.linear_noise import covariance_along
from meanfield.numerics.ode import Path, Tolerance, solve_ode
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

TOLERANCE = Tolerance(relative=1e-11, absolute=1e-13)
"""Tolerance of a step of q: other methods are compared with these trajectories, and covariances are built on them."""

BALL_TOLERANCE = 1e-6
"""Largest |q|^2 - 1 by errors of the integration."""


@solver
def solve_order_parameters(problem: Problem) -> Solved:
    """Overlaps q_t from the reduced ODEs, and their fluctuations at finite N.

    Parameters
    ----------
    problem : Problem
        Problem with a prior that closes the ODEs (none or l2), any number of features, and a start that is not random.

    Returns
    -------
    xarray.Dataset
        `q`, `g`, `Lambda` as `meanfield.families.contrastive.results` describes them, and `q_covariance`, N times the
        covariance of q over runs of SGD to leading order, except under batch centring and where S does not exist
        (`StepNoise`). With several channels `q`, `M`, `P_gain`, `D` and `Lambda`, and where averages over a batch are
        not exact their standard error, `q_error` and `M_error`. The attribute `status` is `complete`, `interrupted` or
        `failed: ...`; output times that were not reached are NaN.

    Raises
    ------
    InputError
        If the prior does not close the ODEs or the start is random.
    """
    check_trajectory(problem)
    if problem.model.channels > 1:
        return Solved("order_parameters", *trajectory_of_channels(problem, fluctuations=True))
    field = VectorField(problem)
    solution = solve_ode(
        lambda t, q: rate(field.closure, q),
        problem.initial_overlap,
        problem.time.outputs_at,
        TOLERANCE,
        check=_blow_up,
        dense=True,
        label="order parameters",
        interruptible=True,
    )
    q, status = solution.values, solution.status
    closed = [field.closure(row) if np.all(np.isfinite(row)) else (row, np.nan) for row in q]
    arrays = {
        "time": solution.times,
        "q": q,
        "g": np.array([g for g, _ in closed]),
        "Lambda": np.array([diffusion for _, diffusion in closed]),
    }
    if solution.path is not None and status != "interrupted":
        last = int(np.isfinite(q).all(axis=1).sum())
        covariance, interrupted = _covariance(field, solution.path, solution.times, last)
        arrays |= covariance
        status = "interrupted" if interrupted else status
    return Solved("order_parameters", arrays, status)


def _covariance(
    field: VectorField, trajectory: Path, times: FloatArray, last: int
) -> tuple[dict[str, FloatArray], bool]:
    """Covariance C at the times before `last`, empty if that of a step is not known; and whether Ctrl-C came."""
    try:
        noise = StepNoise(field)
    except InputError:
        return {}, False
    C = np.full((len(times), field.features, field.features), np.nan)
    C[:last], interrupted = covariance_along(
        lambda t: (field.jacobian(q := trajectory(t)), noise(q)), field.features, times[:last]
    )
    return {"q_covariance": C}, interrupted


def check_trajectory(problem: Problem) -> None:
    """Refuse problems without a trajectory of their own; see `solve_order_parameters`."""
    check_linear(problem)
    if problem.random_start:
        raise InputError(
            "features.initial_overlap = 'random': the order parameters stay at q = 0 from a random start in the "
            "limit; give a number, or use SGD"
        )


def _blow_up(time: float, q: FloatArray) -> BlowUpError | None:
    finite = bool(np.all(np.isfinite(q)))
    if finite and q @ q <= 1.0 + BALL_TOLERANCE:
        return None
    what = f"|q| = {np.linalg.norm(q):.4g}" if finite else "q is not finite"
    return BlowUpError(
        time, f"{what}, but overlaps lie in the unit ball", "lower model.learning_rate or raise model.batch_size"
    )
