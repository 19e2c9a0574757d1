"""Trajectories of the overlaps q and M of several channels, with their errors, and of one with a velocity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from meanfield.errors import BlowUpError, InputError
from meanfield.families.contrastive.channels.closure import BatchAverages
from meanfield.families.contrastive.channels.field import OverlapField
from meanfield.families.contrastive.channels.fluctuations import StepCovariance, step_covariance_of
from meanfield.families.contrastive.channels.in_time import ChannelsInTime, ChannelStretch
from meanfield.families.contrastive.channels.limit import coefficients
from meanfield.families.contrastive.channels.moving_averages import moving_averages_along
from meanfield.families.contrastive.channels.velocity import FieldWithVelocity
from meanfield.families.contrastive.initial_state import with_errors_of_start
from meanfield.families.contrastive.variables import AVERAGES, AVERAGES_OF_CHANNELS
from meanfield.mckean_vlasov.declarations import ODE_ACCURACY
from meanfield.numerics.linear_noise import covariance_in_stretches, interpolant
from meanfield.numerics.ode import Rate, Solution, Tolerance, solve_in_stretches
from meanfield.process.cores import one_thread
from meanfield.several_vectors.particle_search import DEVIATIONS
from meanfield.typing import FloatArray

TOLERANCE = Tolerance(relative=1e-11, absolute=1e-13)
"""Tolerance of a step where averages are smooth functions of the overlaps, as that of a single channel."""

TOLERANCE_AT_RANDOM = Tolerance(relative=1e-4, absolute=1e-5)
"""Tolerance of a step where averages are taken over random batches, and jump with the sign of a covariance."""


class Trajectory(NamedTuple):
    """Variables of a result, and its status."""

    arrays: dict[str, FloatArray]
    status: str


def trajectory_of_channels(closure: ChannelsInTime, fluctuations: bool = False) -> Trajectory:
    """Overlaps of several channels at the output times, with the averages that drive them.

    Parameters
    ----------
    closure : ChannelsInTime
        Of a problem with linear priors and a start that is not random.
    fluctuations : bool
        Whether N times the covariance of the overlaps is asked for, where it is known.

    Notes
    -----
    Where averages come from random batches, each randomisation has its own trajectory; the result is their mean, and
    `q_error` and `M_error` are what chance exceeds once in 100 times. Where the quadrature over one sample is not exact
    they hold what another one changes. Without these variables the errors are those of a single channel.
    """
    problem, each_run = closure.problem, closure.runs
    solutions: list[Solution] = []
    for number, each in enumerate(each_run):
        label = "order parameters" if len(each_run) == 1 else f"order parameters, {number + 1} of {len(each_run)}"
        solutions.append(_integrated(each, label))
        if solutions[-1].status != "complete":
            break
    runs, status = [solution.values for solution in solutions], solutions[-1].status
    arrays: dict[str, Any] = {"time": problem.time.outputs_at}
    arrays["q"], arrays["M"] = _unpacked(_field_of(closure), np.mean(runs, axis=0))
    if status != "interrupted":
        other = None if closure.compared is None else _integrated(closure.compared, "order parameters, error")
        arrays |= _errors(closure, runs, other)
        if problem.model.average_rate is not None:
            arrays |= _moving_averages(closure, solutions, other, problem.model.average_rate)
        arrays = with_errors_of_start(problem, arrays)
        known = fluctuations and not closure.at_random and problem.model.momentum_rate is None
        if known and solutions[0].path is not None:
            covariance, interrupted = _covariance(closure, solutions[0])
            arrays |= covariance
            status = "interrupted" if interrupted else status
    return Trajectory(arrays | averages_along(closure, arrays["q"], arrays["M"]), status)


def as_one_channel(closure: ChannelsInTime, found: Trajectory) -> Trajectory:
    """Trajectory of a single channel with the variables that its results have."""
    arrays = dict(found.arrays)
    M, P, D, noise, q = (arrays.pop(name) for name in ("M", "P_gain", "D", "Lambda", "q"))
    g = np.full(q.shape[:2], np.nan)
    for i in np.flatnonzero(np.isfinite(q).all(axis=(1, 2))):
        averages = BatchAverages(P[i], D[i], noise[i])
        rate = closure.at(arrays["time"][i]).problem.model.rate
        g[i] = -coefficients(averages, q[i], M[i], rate).of_features[0]
    one = {"time": arrays["time"], "q": q[:, :, 0], "g": g, "Lambda": noise[:, 0, 0]}
    if "q_average" in arrays:
        values = (arrays["q_average"][:, :, 0], arrays["overlap_average"][:, 0, 0], arrays["M_average"][:, 0, 0])
        one |= dict(zip(AVERAGES, values, strict=True))
    return Trajectory(one, found.status)


def _integrated(closure: ChannelsInTime, label: str) -> Solution:
    """Vectors at the output times and between them."""
    problem, times = closure.problem, closure.problem.time.outputs_at
    field = _field_of(closure)

    def rate_in(stretch: ChannelStretch) -> Rate:
        return lambda t, vector: field.at(stretch.at(t))(vector)

    return solve_in_stretches(
        [(stretch.outputs(times), rate_in(stretch)) for stretch in closure.stretches],
        field.start(problem.initial_overlap, problem.initial_channel_overlap),
        times,
        **_steps(closure),
        check=lambda t, vector: _blow_up(field, t, vector),
        dense=True,
        label=label,
        interruptible=True,
    )


def _field_of(closure: ChannelsInTime) -> OverlapField:
    """Velocity of what is integrated, with the averages of the start."""
    model = closure.problem.model
    if model.momentum_rate is None:
        return OverlapField(closure.closures[0])
    return FieldWithVelocity(closure.closures[0], model.momentum_rate, model.average_rate or 0.0)


def _steps(closure: ChannelsInTime) -> dict[str, Any]:
    """How averages let an integrator step."""
    if closure.at_random:
        return {"tolerance": TOLERANCE_AT_RANDOM, "integrator": "RK45"}
    return {"tolerance": TOLERANCE, "integrator": "LSODA"}


def _covariance(closure: ChannelsInTime, solution: Solution) -> tuple[dict[str, FloatArray], bool]:
    """N times the covariance of the overlaps, empty if that of a step is not known; and whether Ctrl-C came."""
    field = OverlapField(closure.closures[0])
    reached = solution.times[np.isfinite(solution.values).all(axis=1)]

    def stretches() -> Iterator[tuple[FloatArray, Callable[[float], tuple[FloatArray, FloatArray]]]]:
        steps = {each: step_covariance_of(each) for each in closure.closures}
        for stretch in closure.stretches:
            inside = stretch.outputs(solution.times)
            inside = inside[inside <= reached[-1]]
            if len(inside) > 1:
                yield inside, _drift_and_noise(stretch, solution, inside, field, steps[stretch.closure])

    try:
        C, interrupted = covariance_in_stretches(stretches(), field.unknowns, solution.times)
    except InputError:
        return {}, False
    return {"overlap_covariance": C} | field.covariances(C), interrupted


def _drift_and_noise(
    stretch: ChannelStretch, solution: Solution, times: FloatArray, field: OverlapField, step: StepCovariance
) -> Callable[[float], tuple[FloatArray, FloatArray]]:
    """J and Cov(X) between the first and the last of some times of a stretch, interpolated to six digits of their size.

    Raises
    ------
    InputError
        If they are not smooth.
    """
    path = solution.path
    assert path is not None

    def jacobian(times: FloatArray) -> FloatArray:
        return np.array([field.at(stretch.at(t)).jacobian(path(t)) for t in times.tolist()])

    def noise(times: FloatArray) -> FloatArray:
        return np.array([step.at(stretch.at(t).problem)(*field.unpacked(path(t))) for t in times.tolist()])

    ends = times[0], times[-1]
    with one_thread():
        J = interpolant(jacobian, *ends, "the Jacobian of the overlaps")
        S = interpolant(noise, *ends, "the covariance of a step")
    return lambda t: (J(t), S(t))


def _blow_up(field: OverlapField, time: float, vector: FloatArray) -> BlowUpError | None:
    excess = field.excess(vector)
    if excess <= 1e-6:  # the excess is an error of the integration
        return None
    what = "overlaps are not finite" if np.isnan(excess) else f"M - q^T q has the eigenvalue {-excess:.3g}"
    return BlowUpError(
        time, f"{what}, and unit vectors have no such overlaps", "lower model.learning_rate or raise model.batch_size"
    )


def _unpacked(field: OverlapField, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    q, M = zip(*(field.unpacked(row) for row in rows), strict=True)
    return np.array(q), np.array(M)


def _errors(closure: ChannelsInTime, runs: list[FloatArray], other: Solution | None) -> dict[str, FloatArray]:
    """Errors of q and M."""
    error = _error(runs, None if other is None else other.values)
    if error is None:
        return {}
    q, M = _unpacked(_field_of(closure), error)
    M[:, range(M.shape[1]), range(M.shape[1])] = 0.0
    return {"q_error": _stated(q), "M_error": _stated(M, 1.0 - np.eye(M.shape[1]))}


def _error(runs: list[FloatArray], other: FloatArray | None) -> FloatArray | None:
    """Error by the randomisations, and by what another quadrature changes; None where there is none."""
    error = np.zeros_like(runs[0])
    if len(runs) > 1:
        error += DEVIATIONS * np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    if other is not None:
        error += np.abs(other - runs[0])
    return error if error.any() else None


def _stated(error: FloatArray, moving: ArrayLike = 1.0) -> FloatArray:
    """Error with that of the integrator, where something moves; the start is known exactly."""
    start = np.arange(len(error)) == 0
    return np.where(start[:, None, None], 0.0, error + ODE_ACCURACY * np.asarray(moving))


def _moving_averages(
    closure: ChannelsInTime, solutions: list[Solution], other: Solution | None, a: float
) -> dict[str, FloatArray]:
    """Order parameters of the averages of weights, with their errors where overlaps have some."""
    d1, d2 = len(closure.problem.features), closure.problem.model.channels

    def along(each: ChannelsInTime, solution: Solution) -> FloatArray:
        field, path = _field_of(each), solution.path
        if isinstance(field, FieldWithVelocity):
            return field.averages(solution.values)
        reached = int(np.isfinite(solution.values).all(axis=1).sum())

        def overlaps(t: float) -> tuple[FloatArray, FloatArray]:
            assert path is not None  # where more than the start was reached
            return field.unpacked(path(t))

        return moving_averages_along(each, overlaps, reached, a, **_steps(each))

    def parts(values: FloatArray) -> list[FloatArray]:
        return np.split(values, [d1, d1 + d2], axis=1)

    runs = [along(each, solution) for each, solution in zip(closure.runs, solutions, strict=False)]
    error = _error(runs, along(closure.compared, other) if other and closure.compared else None)
    found = dict(zip(AVERAGES_OF_CHANNELS, parts(np.mean(runs, axis=0)), strict=True))
    if error is None:
        return found
    return found | {f"{name}_error": _stated(part) for name, part in zip(found, parts(error), strict=True)}


def averages_along(closure: ChannelsInTime, q: FloatArray, M: FloatArray) -> dict[str, FloatArray]:
    """P, D and Lambda along a trajectory at the output times, and the standard error of those by random batches.

    Parameters
    ----------
    q, M : ndarray, shapes (times, d1, d2) and (times, d2, d2)
        NaN at times that were not reached.
    """
    d1, d2 = q.shape[1:]
    runs = closure.runs
    P, D, noise = (
        np.full((len(q), d1, d2), np.nan),
        np.full((len(q), d2, d2), np.nan),
        np.full((len(q), d2, d2), np.nan),
    )
    error = np.full(len(q), np.nan)
    for i in np.flatnonzero(np.isfinite(q).all(axis=(1, 2))):
        each = [run.at(closure.problem.time.outputs_at[i])(q[i], M[i]) for run in runs]
        P[i], D[i], noise[i] = (np.mean(values, axis=0) for values in zip(*each, strict=True))
        if len(each) > 1:
            spread = [np.std(values, axis=0, ddof=1).max() for values in zip(*each, strict=True)]
            error[i] = max(spread) / np.sqrt(len(each))
    arrays = {"P_gain": P, "D": D, "Lambda": noise}
    return arrays | ({"averages_standard_error": error} if len(runs) > 1 else {})
