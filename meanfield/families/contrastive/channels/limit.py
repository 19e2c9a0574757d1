"""The limit of several channels for cells and particles, from averages over a batch."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.channels.closure import BatchAverages, ChannelClosure
from meanfield.families.contrastive.channels.in_time import ChannelsInTime, ChannelStretch
from meanfield.families.contrastive.initial_state import starts_from_sample
from meanfield.ingredients.priors import PriorSettings
from meanfield.results.initial_state import seed_of
from meanfield.several_vectors.limit import JointLimit, Motion, Words
from meanfield.several_vectors.plan import stiffest_rate
from meanfield.several_vectors.sample import SINGULAR
from meanfield.typing import FloatArray

WORDS = Words("channel", ("q", "M"), "K = M - q^T q", "lower model.learning_rate")


class WeightEquation(NamedTuple):
    """Coefficients of the equation of the weights of several channels at one coordinate, given its features u.

        dw_k = [ u.a_k + tau sum_l H_kl w_l - tau phi(w_k) - n_k w_k ] dt + dB_k,      d<B_k, B_l> = Lambda_kl dt
        H = (D - P^T q) K^{-1},    a_k = tau (P_k - sum_l q_l H_kl),    n_k = tau D_kk + Lambda_kk/2 - tau r_k

    with K = M - q^T q. Source: several_channels.md, section 5.

    Parameters
    ----------
    of_features : ndarray, shape (d2, d1)
        a.
    of_weights : ndarray, shape (d2, d2)
        tau H.
    multiplier : ndarray, shape (d2,)
        n + tau r.
    noise : ndarray, shape (d2, d2)
        Lambda.
    """

    of_features: FloatArray
    of_weights: FloatArray
    multiplier: FloatArray
    noise: FloatArray


def coefficients(averages: BatchAverages, q: FloatArray, M: FloatArray, tau: float) -> WeightEquation:
    """WeightEquation at overlaps q, shape (d1, d2), and M, shape (d2, d2), from the averages there.

    Where K is singular, channels are equal or lie in the span of the features, H is the one of least size: the rest of
    it acts on nothing.
    """
    P, D, noise = averages
    values, vectors = np.linalg.eigh(M - q.T @ q)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > SINGULAR)
    H = (D - P.T @ q) @ (vectors * inverse) @ vectors.T
    return WeightEquation(tau * (P.T - H @ q.T), tau * H, tau * np.diag(D) + 0.5 * np.diag(noise), noise)


def coefficients_in_plane(averages: BatchAverages, q: FloatArray, M: FloatArray, tau: float) -> WeightEquation:
    """The same where K is regular."""
    P, D, noise = averages
    H = np.asarray(np.linalg.solve(M - q.T @ q, (D - P.T @ q).T).T, dtype=float)
    gain = tau * (P - q @ H.T)
    return WeightEquation(gain.T, tau * H, tau * np.diag(D) + 0.5 * np.diag(noise), noise)


class ChannelMotion(NamedTuple):
    """Motion of the weights of several channels in a stretch of time.

    Parameters
    ----------
    stretch : ChannelStretch
    in_plane : bool
        Whether channels have a density in the plane, so that K is regular.
    """

    stretch: ChannelStretch
    in_plane: bool

    @property
    def start(self) -> float:
        """See `Stretch.start`."""
        return self.stretch.start

    @property
    def prior(self) -> PriorSettings:
        """See `Stretch.prior`."""
        return self.stretch.closure.problem.prior

    def pull_at(self, time: float) -> float:
        """See `Stretch.pull_at`."""
        return self.stretch.pull_at(time)

    def motion(self, time: float, q: FloatArray, M: FloatArray, work: FloatArray) -> Motion:
        """See `Stretch.motion`."""
        closure = self.stretch.at(time)
        found = (coefficients_in_plane if self.in_plane else coefficients)(
            closure(q, M), q, M, closure.problem.model.rate
        )
        n = found.multiplier - self.stretch.pull_at(time) * np.diag(work)
        return Motion(found.of_features, found.of_weights - np.diag(n), found.noise)

    def noise_at(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """See `Stretch.noise_at`."""
        return self.stretch.closure(q, M).Lambda


def joint_limit_of(closure: ChannelsInTime, in_plane: bool = False) -> JointLimit:
    """Limit of several channels, for particles or for a density in the plane."""
    problem = closure.problem
    return JointLimit(
        stretches=[ChannelMotion(each, in_plane) for each in closure.stretches],
        coordinates=problem.coordinates,
        initial_q=problem.initial_overlap,
        initial_M=problem.initial_channel_overlap,
        lengths=np.ones(problem.model.channels),
        times=problem.time.outputs_at,
        rates=partial(_rates, closure),
        words=WORDS,
        seed=seed_of(problem),
        snapshots=problem.particles.snapshot_index(problem.time),
        corners=closure.corners,
        starts=closure.starts,
        sample=problem.initial.atoms.sample if problem.initial is not None and starts_from_sample(problem) else None,
    )


def _rates(closure: ChannelsInTime) -> tuple[float, float]:
    """See `JointLimit.rates`."""
    return max(map(_fastest, closure.closures)), max(map(_stiffest, closure.closures))


def _fastest(closure: ChannelClosure) -> float:
    """Rate of the dynamics at the start and with channels that have learnt a feature each, and by the prior."""
    problem = closure.problem
    tau = closure.problem.model.rate
    d1 = len(problem.features)
    learnt = np.zeros((len(problem.features), 2))
    learnt[np.arange(2) % d1, [0, 1]] = 0.9
    states = [
        (problem.initial_overlap, problem.initial_channel_overlap),
        (learnt, learnt.T @ learnt + (1 - 0.9**2) * np.eye(2)),
    ]
    rates = []
    for q, M in states:
        P, D, noise = closure(q, M)
        rates.append(tau * max(np.abs(P).max(), np.abs(D).max()) + 0.5 * float(np.trace(noise)))
    return float(max(rates)) + 0.5 * tau * float(problem.prior.force(np.array([2.0]))[0])


def _stiffest(closure: ChannelClosure) -> float:
    """Largest rate of change by the force of the prior in the tails."""
    return closure.problem.model.rate * stiffest_rate(closure.problem.prior)
