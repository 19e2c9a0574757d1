"""Trajectories of the overlaps q_t, and of their covariance at finite N, by the covariance S(q) of one SGD step.

In the limit a step adds (1/N)(1/m) sum_b Y_b to q, with independent samples b and

    Y = tau A - q tau^2 B/(2m),   A = (alpha + beta)(c - q b) + alpha xi_1 + beta xi_2,
    B = alpha^2 (1 + v11) + beta^2 (1 + v22) + 2 alpha beta (1 + v12)

where b = c.q + sqrt(1 - q.q) e, and xi_l ~ N(0, v (1 - q q^T)) is what the noise of view l along the features has
besides what moves the pre-activations (eta_l = q zeta_l + xi_l). Hence E[Y] = dq/dt, and S = Cov[Y]/m.
To leading order the covariance of q over runs of SGD is C/N (`meanfield.numerics.linear_noise`). At a stable fixed
point C tends to the solution of J C + C J^T + S = 0. Source: theory.md, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_continuous_lyapunov

from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.closures.sensitivities import Sensitivities
from meanfield.families.contrastive.limit import Stage, limit_of_stages, stages_along, stages_of
from meanfield.families.contrastive.order_parameters.averages import averages_along
from meanfield.families.contrastive.order_parameters.field import VectorField, check_linear
from meanfield.families.contrastive.problem import Problem, without_velocity
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.order_parameters import as_order_parameters, overlaps_along
from meanfield.numerics.linear_noise import NoiseInTime, covariance_in_stretches, interpolant, noise_in_time
from meanfield.numerics.ode import Path, Solution
from meanfield.numerics.piecewise import tabulate, values_at
from meanfield.problems.base import check_problem
from meanfield.problems.phases import pieces_of
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

ALPHA_PLUS_BETA = np.array([1.0, 1.0])
"""Coefficients of alpha + beta in alpha and beta."""


class StepNoise:
    """Covariance S(q) of one step of a problem, inside the unit ball.

    Parameters
    ----------
    field : VectorField
        Vector field of a problem whose samples are independent within a step: centring none or population.

    Raises
    ------
    InputError
        If centring is by the batch, a hidden law lacks the moments that S needs, or the products of the activation that
        S averages are not resolved.

    Notes
    -----
    All quantities are dimensionless. A prior with linear phi acts on the norm alone and adds nothing. The mean outputs
    of population centring are constants within a step, whatever they depend on. Errors are below 1e-9 of S, except
    where |q| > 0.999 and a uniform hidden variable meets a kink that no noise smooths: up to 1e-4 at 0.99999.
    """

    def __init__(self, field: VectorField) -> None:
        problem = field.problem
        check_independent(problem)
        self.features = field.features
        self._tau, self._m = problem.model.rate, problem.model.batch_size
        v = problem.noise_covariance
        # Forms in alpha and beta: coefficients of alpha^2, alpha beta and beta^2, and so on
        self._own = np.array([v[0, 0], 2 * v[0, 1], v[1, 1]])
        length = np.array([1 + v[0, 0], 2 * (1 + v[0, 1]), 1 + v[1, 1]])
        self._of_B, self._of_BB = length, np.convolve(length, length)
        self._of_AA, self._of_AB = np.convolve(ALPHA_PLUS_BETA, ALPHA_PLUS_BETA), np.convolve(ALPHA_PLUS_BETA, length)
        self._one = np.eye(self.features)
        self._sensitivities = Sensitivities(field.closure, problem)

    def __call__(self, q: FloatArray) -> FloatArray:
        """Covariance S(q), shape (..., d1, d1) at overlaps of shape (..., d1); NaN outside the unit ball."""
        return self.moments(q)[1]

    def moments(self, q: FloatArray, factors: ArrayLike = 1.0) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of a step.

        Parameters
        ----------
        q : ndarray, shape (..., d1)
        factors : array_like, shape (...)
            On the learning rate.

        Returns
        -------
        mean : ndarray, shape (..., d1)
            N times the mean, which is dq/dt.
        covariance : ndarray, shape (..., d1, d1)
            S(q).
        """
        q = np.asarray(q, dtype=float)
        points = q.reshape(-1, self.features)
        taus = (self._tau * np.broadcast_to(factors, q.shape[:-1])).ravel()
        inside = np.flatnonzero(np.einsum("nf,nf->n", points, points) <= 1.0)
        mean = np.full(points.shape, np.nan)
        covariance = np.full((*points.shape, self.features), np.nan)
        if inside.size:
            for i, *averages in zip(inside, *self._sensitivities(points[inside]), strict=True):
                mean[i], covariance[i] = self._moments_of(points[i], float(taus[i]), *averages)
        return mean.reshape(q.shape), covariance.reshape(*q.shape, self.features)

    def between(self, ends: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """S(q) of one feature between two overlaps: from a table in arcsin q, if few panels resolve it there."""
        first, last = np.arcsin(np.clip(ends, -1.0, 1.0))
        middle, half = 0.5 * (first + last), 0.5 * abs(last - first)
        try:
            # for more panels more values would be made than a path takes of them
            table = tabulate(lambda x: self(np.sin(middle + half * x)[:, None])[:, 0].T, (), 1.0, "S", most_panels=8)
        except InputError:
            return self
        return lambda q: values_at(table, (math.asin(min(max(q[0], -1.0), 1.0)) - middle) / (half or 1.0))[None]

    def _moments_of(
        self, q: FloatArray, tau: float, first: FloatArray, second: FloatArray, third: FloatArray, fourth: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        d1 = self.features
        of_x, of_xx = slice(1, 1 + d1), slice(1 + d1, None)
        A = ALPHA_PLUS_BETA @ first[:, of_x]
        B = self._of_B @ second[:, 0]
        AA = (self._of_AA @ second[:, of_xx]).reshape(d1, d1)
        AA += (self._own @ second[:, 0]) * (self._one - np.outer(q, q))
        AB = self._of_AB @ third[:, of_x]
        BB = self._of_BB @ fourth[:, 0]
        shrinking = 0.5 * tau**2 / self._m * q
        mean = tau * A - shrinking * B
        mixed = tau * np.outer(AB, shrinking)
        square = tau**2 * AA - mixed - mixed.T + np.outer(shrinking, shrinking) * BB
        return mean, (square - np.outer(mean, mean)) / self._m


def check_independent(problem: Problem) -> None:
    """Refuse batches whose samples depend on each other.

    Raises
    ------
    InputError
        If centring is by the batch.
    """
    if problem.model.centering == "batch":
        raise InputError(
            "model.centering = 'batch': fluctuations of the overlaps are known for samples that are independent within "
            "a step; set it to 'none' or 'population', or use SGD"
        )


def stationary_covariance(field: VectorField, noise: StepNoise, q: FloatArray) -> FloatArray:
    """N times the covariance of q about a stable fixed point, long after the start.

    Parameters
    ----------
    q : ndarray, shape (d1,)
        The fixed point.

    Returns
    -------
    ndarray, shape (d1, d1)
        C with J C + C J^T + S = 0.

    Raises
    ------
    InputError
        If the fixed point is not stable.
    """
    q = np.asarray(q, dtype=float)
    J = field.jacobian(q)
    growth = float(np.linalg.eigvals(J).real.max()) if np.all(np.isfinite(J)) else np.nan
    if not growth < 0:
        raise InputError(
            f"q = {q}: small perturbations grow at the rate {growth:.4g}, so that fluctuations there do not become "
            "stationary; give a stable fixed point"
        )
    return np.asarray(solve_continuous_lyapunov(J, -noise(q)))


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
        `q`, `g`, `Lambda` as `meanfield.families.contrastive.results` describes them, with `model.average_rate` also
        `q_average`, `overlap_average` and `norm_average`, and `q_covariance`, N times the covariance of q over runs of
        SGD to leading order, except under batch centring, with `model.momentum_rate` and where S does not exist
        (`StepNoise`). With several channels `q`, `M`, `P_gain`, `D` and `Lambda`, and where averages over a batch are
        not exact their standard error, `q_error` and `M_error`. The attribute `status` is `complete`, `interrupted` or
        `failed: ...`; output times that were not reached are NaN.

    Raises
    ------
    InputError
        If the prior does not close the ODEs or the start is random.
    """
    check_trajectory(problem)
    if problem.model.channels > 1 or problem.model.momentum_rate is not None:
        from meanfield.families.contrastive.channels.in_time import ChannelsInTime  # both imported where they are used
        from meanfield.families.contrastive.channels.trajectory import as_one_channel, trajectory_of_channels

        closure = ChannelsInTime(problem)
        found = trajectory_of_channels(closure, fluctuations=True)
        return Solved("order_parameters", *(found if problem.model.channels > 1 else as_one_channel(closure, found)))
    stages = stages_of(problem)
    limit = limit_of_stages(stages)
    solution = overlaps_along(limit)
    solved = as_order_parameters(limit, solution)
    if solution.path is None or solution.status == "interrupted":
        return solved
    if problem.model.average_rate is not None:
        averages = averages_along(limit, solution, solution.path, problem.model.average_rate)
        solved = replace(solved, arrays=solved.arrays | averages)
    covariance, interrupted = _covariance(stages, limit, solution, solution.path)
    status = "interrupted" if interrupted else solved.status
    return replace(solved, arrays=solved.arrays | covariance, status=status)


def _covariance(
    stages: list[Stage], limit: Limit, solution: Solution, path: Path
) -> tuple[dict[str, FloatArray], bool]:
    """Covariance C at the times that were reached, empty if that of a step is not known; and whether Ctrl-C came."""
    reached, size = solution.times[np.isfinite(solution.values).all(axis=1)], solution.values.shape[1]
    try:
        C, interrupted = covariance_in_stretches(linear_along(stages, limit, reached, path), size, solution.times)
    except InputError:
        return {}, False
    return {"q_covariance": C}, interrupted


def overlaps_in_time(problem: Problem) -> NoiseInTime:
    """Overlaps of a channel with their covariance over runs at and between all output times; see `meanfield.fit`.

    Raises
    ------
    InputError
        If they do not close, or their covariance in time is not known.
    """
    check_trajectory(problem)
    if problem.model.channels > 1 or problem.model.momentum_rate is not None:
        raise InputError("the covariance of overlaps between times is known for one channel without momentum only")
    stages = stages_of(problem)
    limit = limit_of_stages(stages)
    solution = overlaps_along(limit)
    if solution.path is None or solution.status != "complete":
        raise InputError(f"order parameters are needed at all output times, and are {solution.status}")
    times = solution.times
    stretches = list(linear_along(stages, limit, times, solution.path))
    return noise_in_time(
        stretches, times, solution.values, lambda runs: runs["q"].transpose("replica", "time", "feature").values
    )


def linear_along(
    stages: list[Stage], limit: Limit, times: FloatArray, path: Path
) -> Iterator[tuple[FloatArray, LinearStretch]]:
    """Stretches from corner to corner of schedules and phases until the last of some times.

    Of each come its ends and the times in between, with J and S along a path.
    """
    for low, high, stage, phase in stages_along(stages, limit, times[-1]):
        inside = times[(low < times) & (times < high)]
        yield np.unique([low, *inside, high]), LinearStretch(stage, phase, path, low, high)


class LinearStretch:
    """J and S along the overlaps between two corners, as functions of time.

    Attributes
    ----------
    stage : Stage
        What it is a part of.
    field : VectorField
        That of the time at which J and S were last asked for.
    """

    def __init__(self, stage: Stage, phase: Limit, path: Path, low: float, high: float) -> None:
        self.stage, self._phase, self._path = stage, phase, path
        self._ends, self._factors = (low, high), phase.drive.room
        known = stage.closure if isinstance(stage.closure, Closure) else None
        self.field = field = VectorField(stage.at(low), known)
        noise = StepNoise(field)
        if phase.drive.moves:
            self.field = field.driven_by(self._driven)

            def at(times: FloatArray) -> FloatArray:
                q, factors = np.array([path(t) for t in times]), np.array([self._fill(t) for t in times])
                if known:
                    return noise.moments(q, factors)[1]
                fields = (VectorField(stage.at(t)) for t in times.tolist())
                return np.array([StepNoise(each).moments(*of)[1] for each, *of in zip(fields, q, factors, strict=True)])

            self._S = interpolant(at, low, high, "S")
        else:
            # Without a second feature q moves one way, from the first of its values to the last.
            of_q = noise.between(np.array([path(t)[0] for t in (low, high)])) if field.features == 1 else noise
            self._S = lambda t: of_q(path(t))

    def __call__(self, t: float) -> tuple[FloatArray, FloatArray]:
        """J and S."""
        self._fill(t)
        return self.field.jacobian(self._path(t)), self._S(t)

    def _fill(self, t: float) -> float:
        """Take the factors of a time, and return that of the learning rate."""
        self._phase.drive.fill(t, *self._ends, self._factors)
        return float(self._factors[0])

    def _driven(self, q: FloatArray) -> tuple[FloatArray, float]:
        g, diffusion = self._phase.closure(q)
        return self._factors[0] * g, self._factors[1] * diffusion


def check_trajectory(problem: Problem) -> None:
    """Refuse problems without a trajectory of their own; see `solve_order_parameters`."""
    check_problem(problem, Problem)
    for piece in pieces_of(problem):
        check_linear(without_velocity(piece.problem))
    if problem.random_start:
        raise InputError(
            "features.initial_overlap = 'random': the order parameters stay at q = 0 from a random start in the "
            "limit; give a number, or use SGD"
        )
