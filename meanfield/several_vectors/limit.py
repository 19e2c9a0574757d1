"""Limit of training several vectors as N grows, for cells and for particles, of any family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from meanfield.ingredients.laws import CoordinateLaw
from meanfield.ingredients.priors import PriorSettings
from meanfield.typing import FloatArray

LONGEST = 1e3
"""Length of a vector, in units of sqrt(N), that is taken for a blow-up where it is free."""


class Motion(NamedTuple):
    """Coefficients of the motion of weights; see `JointLimit`.

    Parameters
    ----------
    of_features : ndarray, shape (weights, features)
        a.
    of_weights : ndarray, shape (weights, weights)
        L, with what a normalisation takes back.
    noise : ndarray, shape (weights, weights)
        Lambda.
    """

    of_features: FloatArray
    of_weights: FloatArray
    noise: FloatArray


class Stretch(Protocol):
    """Time between two corners, in which nothing jumps or bends."""

    @property
    def start(self) -> float:
        """Its first time; an output time that is the same but for rounding."""

    @property
    def prior(self) -> PriorSettings:
        """Prior of its phase, at its largest strength."""

    def pull_at(self, time: float) -> float:
        """Factor c of the force of that prior at a time."""

    def motion(self, time: float, q: FloatArray, M: FloatArray, work: FloatArray) -> Motion:
        """Coefficients at a time, at overlaps q and M with E[w_k phi(w_l)], shape (weights, weights)."""

    def noise_at(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """Lambda at overlaps, at a time of the stretch at which rates are not 0."""


class Words(NamedTuple):
    """Words of messages.

    Parameters
    ----------
    vector : str
        What a vector is called.
    overlaps : (str, str)
        Symbols of its overlaps with features and with others.
    given_u : str
        Formula of the covariance of weights given u.
    slower : str
        Advice against dynamics that is too fast.
    """

    vector: str
    overlaps: tuple[str, str]
    given_u: str
    slower: str


@dataclass(frozen=True, eq=False)
class JointLimit:
    """McKean-Vlasov equation of the weights of several vectors at one coordinate, given its features u.

        dw_k = [u.a_k + sum_l L_kl w_l - c phi(w_k)] dt + dB_k,    d<B_k, B_l> = Lambda_kl dt

    with a, L and Lambda that depend on q = E[u w^T] and M = E[w w^T] (several_channels.md, section 5, and
    update_rules.md, section 5). Weights are Gaussian given u at the start, or a sample.

    Parameters
    ----------
    stretches : sequence of Stretch
    coordinates : tuple of CoordinateLaw
        Laws of the feature coordinates u.
    initial_q : ndarray, shape (features, weights)
    initial_M : ndarray, shape (weights, weights)
    lengths : ndarray, shape (weights,)
        Roots of E[w_k^2] that normalisations keep; NaN where it is free.
    times : ndarray, shape (outputs,)
        Output times, increasing from 0.
    rates : callable
        The fastest rate of the dynamics without the force of the prior in the tails, and that of this force.
    words : Words
    seed : int
        Of particles.
    snapshots : sequence of int
        Numbers of the output times at which particles are kept.
    corners, starts : tuple of float
        Times within the run at which something jumps or bends, and those of them at which the dynamics begins anew.
    back : callable, optional
        From M after a step to the matrix A with which vectors are normalised, w <- A w, where that mixes them.
    sample : (ndarray, ndarray), optional
        Weights, shape (coordinates, weights), and their features, shape (coordinates, features), with which particles
        start where weights are not Gaussian.
    """

    stretches: Sequence[Stretch]
    coordinates: tuple[CoordinateLaw, ...]
    initial_q: FloatArray
    initial_M: FloatArray
    lengths: FloatArray
    times: FloatArray
    rates: Callable[[], tuple[float, float]]
    words: Words
    seed: int = 0
    snapshots: Sequence[int] = ()
    corners: tuple[float, ...] = ()
    starts: tuple[float, ...] = ()
    back: Callable[[FloatArray], FloatArray] | None = None
    sample: tuple[FloatArray, FloatArray] | None = None

    @property
    def priors(self) -> tuple[PriorSettings, ...]:
        """Priors of all stretches, at their largest strengths."""
        return tuple(stretch.prior for stretch in self.stretches)

    @property
    def kept(self) -> FloatArray:
        """E[w_k^2] that is kept, shape (weights,); NaN where it is free."""
        return self.lengths**2

    def stretch_at(self, time: float) -> Stretch:
        """Stretch that a time belongs to: the later one at corners."""
        return next(each for each in self.stretches[::-1] if each.start <= time)

    def normalised(self, weights: FloatArray, out: FloatArray) -> bool:
        """Write normalised weights, shape (weights, particles), to `out`; false if a step was far too long for them."""
        length = np.sqrt(np.einsum("kn,kn->k", weights, weights) / weights.shape[1])
        free = np.isnan(self.lengths)
        change = length / np.where(free, 1.0, self.lengths)
        if self.back is None:
            np.divide(weights, np.where(free, 1.0, change)[:, None], out=out)
        else:
            np.matmul(self.back(weights @ weights.T / weights.shape[1]), weights, out=out)
        # Beyond these changes the step is far too long.
        return bool(np.all(np.where(free, change < LONGEST, (change < 1.5) & (change > 1.0 / 1.5))))
