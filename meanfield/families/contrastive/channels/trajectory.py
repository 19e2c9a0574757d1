"""Trajectories of the overlaps q and M of several channels, with their errors.

For linear phi the overlaps close, with n_k = tau D_kk + Lambda_kk/2 the multiplier that keeps |w_k|^2 = N:

    dq_k/dt  = tau P_k - q_k n_k
    dM_kl/dt = tau (D_kl + D_lk) + Lambda_kl - M_kl (n_k + n_l)

M_kk = 1 is conserved. Source: several_channels.md, section 2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meanfield.errors import BlowUpError, InputError
from meanfield.families.contrastive.channels.closure import BatchAverages, ChannelClosure
from meanfield.families.contrastive.channels.fluctuations import step_covariance_of
from meanfield.mckean_vlasov.declarations import ODE_ACCURACY
from meanfield.numerics.linear_noise import covariance_along, interpolant
from meanfield.numerics.ode import Path, Solution, Tolerance, solve_ode
from meanfield.process.cores import one_thread
from meanfield.typing import FloatArray

TOLERANCE = Tolerance(relative=1e-11, absolute=1e-13)
"""Tolerance of a step where averages are smooth functions of the overlaps, as that of a single channel."""

TOLERANCE_AT_RANDOM = Tolerance(relative=1e-4, absolute=1e-5)
"""Tolerance of a step where averages are taken over random batches, and jump with the sign of a covariance."""

DEVIATIONS = 3.5
"""Standard errors of 8 randomisations that are exceeded by chance once in 100 times (Student's t of 7 degrees)."""


class Trajectory(NamedTuple):
    """Variables of a result, and its status."""

    arrays: dict[str, FloatArray]
    status: str


class OverlapField:
    """Velocity of the overlaps as a vector field of q and the pairs of M in one vector.

    Attributes
    ----------
    unknowns : int
        Length of the vector.
    """

    def __init__(self, closure: ChannelClosure) -> None:
        self.closure = closure
        self._shape = len(closure.problem.features), closure.problem.model.channels
        self._pairs = np.triu_indices(self._shape[1], 1)
        self._tau = closure.problem.model.learning_rate
        self.unknowns = self._shape[0] * self._shape[1] + len(self._pairs[0])

    def packed(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """Vector of shape (d1 d2 + d2 (d2 - 1)/2,)."""
        return np.concatenate([np.ravel(q), M[self._pairs]])

    def unpacked(self, vector: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Overlaps q, shape (d1, d2), and M, shape (d2, d2)."""
        d1, d2 = self._shape
        M = np.eye(d2)
        M[self._pairs] = vector[d1 * d2 :]
        M.T[self._pairs] = vector[d1 * d2 :]
        return vector[: d1 * d2].reshape(d1, d2), M

    def __call__(self, vector: FloatArray) -> FloatArray:
        """Velocity of the vector."""
        q, M = self.unpacked(vector)
        return self.packed(*velocity(self.closure(q, M), q, M, self._tau))

    def jacobian(self, vector: FloatArray) -> FloatArray:
        """Jacobian of the velocity by central differences; NaN where K is singular."""
        # The truncation of differences is about 1e-9 of the velocity; they take a tenth of the least eigenvalue of K.
        step = min(1e-4, 0.1 * -self.excess(vector))
        if not step > 0.0:
            return np.full((self.unknowns, self.unknowns), np.nan)
        shifts = step * np.eye(self.unknowns)
        return np.array([self(vector + shift) - self(vector - shift) for shift in shifts]).T / (2.0 * step)

    def covariances(self, C: FloatArray) -> dict[str, FloatArray]:
        """Covariances of q, shape (..., d1, d1, d2, d2), and variances of M, shape (..., d2, d2), of all there are."""
        d1, d2 = self._shape
        of_q = C[..., : d1 * d2, : d1 * d2].reshape(*C.shape[:-2], d1, d2, d1, d2)
        of_M = np.zeros((*C.shape[:-2], d2, d2))
        k, j = self._pairs
        of_M[..., k, j] = of_M[..., j, k] = np.einsum("...ii->...i", C)[..., d1 * d2 :]
        return {"q_covariance": of_q.swapaxes(-3, -2), "M_variance": of_M}

    def excess(self, vector: FloatArray) -> float:
        """Negative of the least eigenvalue of K = M - q^T q, NaN if an overlap is not finite."""
        if not np.isfinite(vector).all():
            return np.nan
        q, M = self.unpacked(vector)
        return -float(np.linalg.eigvalsh(M - q.T @ q).min())


def velocity(averages: BatchAverages, q: FloatArray, M: FloatArray, tau: float) -> tuple[FloatArray, FloatArray]:
    """Velocities dq/dt, shape (d1, d2), and dM/dt, shape (d2, d2), for linear phi."""
    P, D, noise = averages
    n = tau * np.diag(D) + 0.5 * np.diag(noise)
    return tau * P - q * n, tau * (D + D.T) + noise - M * (n[:, None] + n)


def trajectory_of_channels(closure: ChannelClosure, fluctuations: bool = False) -> Trajectory:
    """Overlaps of several channels at the output times, with the averages that drive them.

    Parameters
    ----------
    closure : ChannelClosure
        Of a problem with a linear prior and a start that is not random.
    fluctuations : bool
        Whether N times the covariance of the overlaps is asked for, where it is known.

    Notes
    -----
    Where averages come from random batches, each randomisation has its own trajectory; the result is their mean, and
    `q_error` and `M_error` are what chance exceeds once in 100 times. Where the quadrature over one sample is not exact
    they hold what another one changes. Without these variables the errors are those of a single channel.
    """
    problem = closure.problem
    closures = closure.randomisations or [closure]
    runs: list[FloatArray] = []
    status = "complete"
    for number, each in enumerate(closures):
        label = "order parameters" if len(closures) == 1 else f"order parameters, {number + 1} of {len(closures)}"
        solution = _integrated(each, label)
        status = solution.status
        runs.append(solution.values)
        if status != "complete":
            break
    field = OverlapField(closure)
    arrays: dict[str, Any] = {"time": problem.time.outputs_at}
    mean = np.mean(runs, axis=0)
    arrays["q"], arrays["M"] = _unpacked(field, mean)
    if status != "interrupted":
        arrays |= _errors(closure, runs)
        if fluctuations and solution.path is not None and not closure.at_random:
            covariance, interrupted = _covariance(closure, solution.path, problem.time.outputs_at, runs[0])
            arrays |= covariance
            status = "interrupted" if interrupted else status
    return Trajectory(arrays | averages_along(closure, arrays["q"], arrays["M"]), status)


def _integrated(closure: ChannelClosure, label: str) -> Solution:
    """Vectors at the output times and between them."""
    field, problem = OverlapField(closure), closure.problem
    return solve_ode(
        lambda t, vector: field(vector),
        field.packed(problem.initial_overlap, problem.initial_channel_overlap),
        problem.time.outputs_at,
        TOLERANCE_AT_RANDOM if closure.at_random else TOLERANCE,
        integrator="RK45" if closure.at_random else "LSODA",
        check=lambda t, vector: _blow_up(field, t, vector),
        dense=True,
        label=label,
        interruptible=True,
    )


def _covariance(
    closure: ChannelClosure, path: Path, times: FloatArray, values: FloatArray
) -> tuple[dict[str, FloatArray], bool]:
    """N times the covariance of the overlaps, empty if that of a step is not known; and whether Ctrl-C came."""
    field = OverlapField(closure)
    reached = times[np.isfinite(values).all(axis=1)]
    try:
        with one_thread():
            step = step_covariance_of(closure)
            # J and Cov(X) are interpolated in time, to six digits of their size.
            J, S = (
                interpolant(function, reached[0], reached[-1], what)
                for function, what in (
                    (lambda t: field.jacobian(path(t)), "the Jacobian of the overlaps"),
                    (lambda t: step(*field.unpacked(path(t))), "the covariance of a step"),
                )
            )
    except InputError:
        return {}, False
    C = np.full((len(times), field.unknowns, field.unknowns), np.nan)
    C[: len(reached)], interrupted = covariance_along(lambda t: (J(t), S(t)), field.unknowns, reached)
    return {"overlap_covariance": C} | field.covariances(C), interrupted


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


def _errors(closure: ChannelClosure, runs: list[FloatArray]) -> dict[str, FloatArray]:
    """Errors of q and M: by the randomisations, and by what another quadrature changes."""
    error = np.zeros_like(runs[0])
    if len(runs) > 1:
        error += DEVIATIONS * np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    compared = (closure.randomisations or [closure])[0].compared
    if compared is not None:
        error += np.abs(_integrated(compared, "order parameters, error").values - runs[0])
    if not error.any():
        return {}
    q, M = _unpacked(OverlapField(closure), error)
    M[:, range(M.shape[1]), range(M.shape[1])] = 0.0
    start = np.arange(len(q)) == 0  # the start is known exactly
    return {
        "q_error": np.where(start[:, None, None], 0.0, q + ODE_ACCURACY),
        "M_error": np.where(start[:, None, None], 0.0, M + ODE_ACCURACY * (1.0 - np.eye(M.shape[1]))),
    }


def averages_along(closure: ChannelClosure, q: FloatArray, M: FloatArray) -> dict[str, FloatArray]:
    """P, D and Lambda along a trajectory, and the standard error of those by random batches.

    Parameters
    ----------
    q, M : ndarray, shapes (times, d1, d2) and (times, d2, d2)
        NaN at times that were not reached.
    """
    d1, d2 = q.shape[1:]
    P, D, noise = (
        np.full((len(q), d1, d2), np.nan),
        np.full((len(q), d2, d2), np.nan),
        np.full((len(q), d2, d2), np.nan),
    )
    error = np.full(len(q), np.nan)
    for i in np.flatnonzero(np.isfinite(q).all(axis=(1, 2))):
        each = [part(q[i], M[i]) for part in closure.randomisations or [closure]]
        P[i], D[i], noise[i] = (np.mean(values, axis=0) for values in zip(*each, strict=True))
        if len(each) > 1:
            spread = [np.std(values, axis=0, ddof=1).max() for values in zip(*each, strict=True)]
            error[i] = max(spread) / np.sqrt(len(each))
    arrays = {"P_gain": P, "D": D, "Lambda": noise}
    return arrays | ({"averages_standard_error": error} if closure.randomisations else {})
