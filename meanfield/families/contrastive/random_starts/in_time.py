"""Random starts under schedules and phases: growth along q = 0 at rates of each time, and the paths that follow.

While q is small, sqrt(N) q is Gaussian with the covariance C of

    dC/dt = J C + C J^T + S,   J = db/dq and S at q = 0 and the time t,   C(0) = 1.

As long as the directions of growth v_k stay the same, each component is q_k(t) = exp(L_k(t)) Y_k(t)/sqrt(N) with the
integral L_k of j_k. Its amplitude Y_k gathers noise of the variance exp(-2 L_k) S_kk dt, until growth has made this
small: so paths begin where deviations are smallest with the noise that is still to come, up to the time at which a
direction has grown most before its deviations are of order 1. At constant rates these are the amplitudes of `start`,
but for terms of relative order 1/N. Source: finite_size.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.limit import Stage, limit_of_stages, stages_of
from meanfield.families.contrastive.order_parameters.field import check_closes
from meanfield.families.contrastive.order_parameters.table import MOST_FEATURES, BallTable, into_ball
from meanfield.families.contrastive.order_parameters.trajectory import LinearStretch, linear_along
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.random_starts.outcomes import TAKE_OFF, TOLERANCE, Outcomes, beyond
from meanfield.families.contrastive.random_starts.start import amplitudes_of, check_overlap, check_rests
from meanfield.mckean_vlasov.closure_in_time import ClosureInTime, weights_at
from meanfield.mckean_vlasov.closures import ClosureFunction, closures_of
from meanfield.mckean_vlasov.drive import factors_of
from meanfield.numerics.linear_noise import covariance_in_stretches
from meanfield.numerics.ode import Rate, Tolerance, solve_in_stretches
from meanfield.numerics.paths import Velocity, follow_paths
from meanfield.problems.base import check_problem
from meanfield.problems.phases import pieces_of
from meanfield.typing import FloatArray, IntArray

TIMES = 64
"""Number of times of each stretch at which paths may take off."""

LOGARITHMS = Tolerance(relative=1e-8, absolute=1e-8)
"""Tolerance of a step of integrals of growth rates: rates by differences are known to 1e-9 or so."""


def outcomes_in_time(problem: Problem, N: float, overlap: float, samples: int = 1024, seed: int = 0) -> Outcomes:
    """Escape times and winners of random starts under schedules and phases, at large N.

    Parameters
    ----------
    problem : Problem
        With a prior that closes the ODEs, one channel, and rates, batches, noise and laws that may change in time. Its
        initial overlaps do not matter: the start is random.
    N : float
    overlap : float
        Norm |q| that counts as escape, in (0, 1].
    samples : int
        Number of starts, by a scrambled Sobol sequence: best a power of 2.
    seed : int

    Returns
    -------
    Outcomes
        Escape times, infinite of paths that do not escape until `time.stop`, and the overlaps there.

    Raises
    ------
    InputError
        If the prior does not close the ODEs, q = 0 is no fixed point at some time, the noise of a step is not known,
        nothing grows, or directions of growth turn in time.

    Notes
    -----
    Exact as N grows, but for noise that meets paths which are no longer small. Source: finite_size.md.
    """
    check_problem(problem, Problem)
    check_overlap(overlap)
    growth, d1 = growth_of(problem), len(problem.features)
    now, q = growth.take_off(N, samples, seed)
    parts_of, of_q, escape = cache(_parts_of), beyond(overlap), np.full(samples, np.inf)
    for (low, high), along in growth.stretches:
        going = np.flatnonzero(now < high)
        if not len(going):
            continue
        paths = follow_paths(
            _velocity(along.stage, parts_of(along.stage.closure, d1), low, high),
            np.column_stack([q[going], now[going]]),
            TOLERANCE,
            first_step=(high - low) / TIMES,
            margin=lambda points: of_q(points[:, :d1]),
            stop=high - now[going],
        )
        escape[going] = np.minimum(escape[going], now[going] + paths.event)
        q[going], now[going] = into_ball(paths.end[:, :d1]), high
    return Outcomes(escape, q)


class Growth(NamedTuple):
    """Overlaps along q = 0 at some times.

    Parameters
    ----------
    stretches : list of (ndarray, LinearStretch)
        Both ends, from corner to corner of schedules and phases.
    times : ndarray, shape (times,)
    directions : ndarray, shape (d1, d1)
        Orthonormal directions v_k in columns.
    logs : ndarray, shape (times, d1)
        L_k, the integrals of growth rates.
    covariance : ndarray, shape (times, d1, d1)
        C along the directions; NaN from where it is larger than any N.
    """

    stretches: list[tuple[FloatArray, LinearStretch]]
    times: FloatArray
    directions: FloatArray
    logs: FloatArray
    covariance: FloatArray

    def take_off(self, N: float, samples: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Times, (samples,), and points, (samples, d1), up to which paths are linear.

        Raises
        ------
        InputError
            If nothing grows.
        """
        first, covariance = self.amplitudes(N)
        Y = amplitudes_of(covariance, samples, seed)
        with np.errstate(over="ignore"):
            growth = np.exp(self.logs[first:] - self.logs[first])
            left = Y**2 @ (growth**2).T > N * TAKE_OFF**2
        at = np.where(left.any(axis=1), np.maximum(left.argmax(axis=1) - 1, 0), len(growth) - 1)
        return self.times[first + at], into_ball(Y * growth[at] / np.sqrt(N) @ self.directions.T)

    def amplitudes(self, N: float) -> tuple[int, FloatArray]:
        """Number of the time of least deviations, and N times their covariance with all noise that comes to count."""
        over = ~(np.einsum("tkk->tk", self.covariance) < N)
        ends = np.where(over.any(axis=0), np.maximum(over.argmax(axis=0), 1), len(over))
        row, column = np.indices(self.directions.shape)

        def grown_from(first: int) -> IntArray:
            return np.array([first + self.logs[first:end, k].argmax() for k, end in enumerate(ends)])

        def covariance_at(first: int) -> FloatArray:
            grown = grown_from(first)
            at = np.minimum(grown[:, None], grown)  # amplitudes are martingales
            since = self.logs[first] - self.logs[at, row] + self.logs[first][:, None] - self.logs[at, column]
            return np.asarray(np.exp(since) * self.covariance[at, row, column])

        first = min(range(ends.min()), key=lambda i: float(np.trace(covariance_at(i))))
        if np.all(grown_from(first) == first):
            raise InputError(
                f"model: from a random start q stays near 0, which is stable until t = {self.times[-1]:g}, and nothing "
                "is learnt in the limit. Raise model.batch_size, lower model.learning_rate, or give the hidden "
                "variables larger second moments"
            )
        return first, covariance_at(first)


def growth_of(problem: Problem) -> Growth:
    """Linear regime of a run from q = 0.

    Raises
    ------
    InputError
        See `outcomes_in_time`.
    """
    for piece in pieces_of(problem):
        check_closes(piece.problem)
    stages, origin = stages_of(problem), np.zeros(len(problem.features))
    found = list(linear_along(stages, limit_of_stages(stages), np.array([problem.time.stop]), lambda _: origin))
    slopes = []
    for (low, high), along in found:
        slopes.append((high - low) * along(0.5 * (low + high))[0])
        check_rests(along.field)
    _, directions = np.linalg.eigh(sum(slopes))
    turned = directions.T @ np.array(slopes) @ directions
    if np.abs(turned * (1.0 - np.eye(len(origin)))).max() > 1e-6 * np.abs(turned).max():  # rounding of differences
        raise InputError(
            "hidden: correlations of hidden variables change, so that directions in which overlaps grow turn in time, "
            "and no rate is that of one direction; let them stay the same in all phases, or use SGD with "
            "particles.escape_overlap"
        )
    linear = [(np.linspace(low, high, TIMES + 1), along) for (low, high), along in found]
    times = np.unique(np.concatenate([at for at, _ in linear]))

    def rates(along: LinearStretch) -> Rate:
        return lambda t, _: np.einsum("ik,ij,jk->k", directions, along(t)[0], directions)

    C, interrupted = covariance_in_stretches(linear, len(origin), times, np.eye(len(origin)))
    if interrupted:
        raise KeyboardInterrupt
    logs = solve_in_stretches([(at, rates(along)) for at, along in linear], origin, times, LOGARITHMS).values
    return Growth(found, times, directions, logs, directions.T @ C @ directions)


Parts = Callable[[FloatArray], FloatArray]
"""Function of points, shape (n, d1), to parts of dq/dt, shape (nodes, n, 2, d1)."""


def _parts_of(closure: Closure | ClosureInTime, features: int) -> Parts:
    """Parts of dq/dt that have the factors tau and tau^2, by the closures of all nodes in time."""

    def by_one(closure: ClosureFunction) -> Velocity:
        def parts(q: FloatArray) -> FloatArray:
            g, diffusion = closure(q)
            return np.array([q * (q @ g) - g, -0.5 * diffusion * q])

        if features <= MOST_FEATURES:
            return BallTable(parts, features)
        return lambda points: np.array([parts(q) for q in points])

    each = [by_one(one) for one in closures_of(closure)]
    return lambda points: np.array([values(points) for values in each])


def _velocity(stage: Stage, parts: Parts, low: float, high: float) -> Velocity:
    """Velocity at many points with times of their own in the last column, between two corners."""
    factors, last = factors_of(stage.problem, stage.at(stage.start)), np.nextafter(high, low)
    nodes = getattr(stage.closure, "nodes", np.zeros(1))

    def velocity(points: FloatArray) -> FloatArray:
        times = np.minimum(points[:, -1], last)
        rate = factors(times)[0][:, None]
        weights = np.array([weights_at(nodes, t) for t in times.tolist()])
        gain, shrinking = np.einsum("nj,jnpk->pnk", weights, parts(into_ball(points[:, :-1])))
        return np.column_stack([rate * gain + rate**2 * shrinking, np.ones(len(times))])

    return velocity
