"""Trajectories of the overlaps q_t, and of their covariance at finite N."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.order_parameters.field import VectorField, check_linear
from meanfield.families.contrastive.order_parameters.noise import StepNoise
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.order_parameters import as_order_parameters, overlaps_along
from meanfield.numerics.linear_noise import covariance_along
from meanfield.numerics.ode import Path
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray


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
        from meanfield.families.contrastive.channels.closure import ChannelClosure  # both imported where they are used
        from meanfield.families.contrastive.channels.trajectory import trajectory_of_channels

        return Solved("order_parameters", *trajectory_of_channels(ChannelClosure(problem), fluctuations=True))
    field = VectorField(problem)
    limit = limit_of(problem, field.closure)
    solution = overlaps_along(limit)
    solved = as_order_parameters(limit, solution)
    if solution.path is None or solution.status == "interrupted":
        return solved
    last = int(np.isfinite(solution.values).all(axis=1).sum())
    covariance, interrupted = _covariance(field, solution.path, solution.times, last)
    status = "interrupted" if interrupted else solved.status
    return replace(solved, arrays=solved.arrays | covariance, status=status)


def _covariance(
    field: VectorField, trajectory: Path, times: FloatArray, last: int
) -> tuple[dict[str, FloatArray], bool]:
    """Covariance C at the times before `last`, empty if that of a step is not known; and whether Ctrl-C came."""
    try:
        noise = StepNoise(field)
    except InputError:
        return {}, False
    C = np.full((len(times), field.features, field.features), np.nan)
    # Without a second feature q moves one way, from the first of its values to the last.
    S = noise.between(np.array([trajectory(t)[0] for t in times[[0, last - 1]]])) if field.features == 1 else noise
    C[:last], interrupted = covariance_along(
        lambda t: (field.jacobian(q := trajectory(t)), S(q)), field.features, times[:last]
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
