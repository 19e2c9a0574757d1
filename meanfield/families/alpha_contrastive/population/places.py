"""Exact covariances of filters of two layers, and the slope of the energy (alpha_contrastive.md, section 6).

Given the generator, or another latent variable, different places are independent. So means given the generator decide
everything but covariances within a place, and these count only where views share what generators do not mark, or where
a batch is finite and a sample makes a pair with itself.

A Gaussian importance is averaged by exp(-|y - y'|^2/(2 tau)) = E[exp(i xi.y) exp(-i xi.y')] over xi ~ N(0, 1/tau): an
output y is a sum over places that are independent given the generator, so that the average is one of products over
places.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from scipy.special import gammaln

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.limit.pairs import laplacian
from meanfield.families.alpha_contrastive.population.drift import EnergyAndSlope, share_of_pairs
from meanfield.families.alpha_contrastive.population.inputs import places_of
from meanfield.families.alpha_contrastive.population.tables import OwnCovariance, Tables, by_places, flat
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.typing import FloatArray

MOST_NODES = 100_000
"""Largest number of nodes of all outputs together."""

COUNTS = np.arange(4, 121, 4)
"""Numbers of nodes of a Gauss-Hermite rule; larger ones overflow."""


@dataclass(frozen=True)
class OfPlaces:
    """What decides how the places of a network with one filter in each work together.

    Parameters
    ----------
    share : ndarray, shape (generators, generators)
        Probabilities of pairs of generators, times the factor of the covariance of means given them.
    means : ndarray, shape (places, generators)
        E[f_k | generator] of activations, behind batch normalisation.
    within : ndarray, shape (places,)
        d_k = E Var[f_k | generator], 0 where views share nothing but the generator.
    gated : ndarray, shape (places, generators, coordinates)
        E[h'(w_k.x_k) x_k | generator].
    """

    share: FloatArray
    means: FloatArray
    within: FloatArray
    gated: FloatArray


class PlaceDrift:
    """Drift of two layers whose places are independent given the generator."""

    def __init__(self, problem: Problem) -> None:
        law = places_of(problem.data)
        self._tables, self._chance = Tables(problem, law), law.chance
        self._between, self._within = weights_of_variances(problem, law.augments)
        p = law.probability
        self._pairs = np.outer(p, p)
        self._uniform = self._between * (np.diag(p) - self._pairs)
        self._own = OwnCovariance(self._tables, law) if self._within != 0.0 else None
        self._kernel = None
        if problem.importance.kind == "gaussian":
            accuracy = problem.population.tolerance
            self._kernel = GeneratorKernel(self._chance, problem.importance.temperature, accuracy)

    @property
    def is_rounded(self) -> bool:
        """See `Drift.is_rounded`."""
        return self._tables.is_rounded

    def __call__(self, weights: Weights) -> EnergyAndSlope:
        """See `Drift.__call__`."""
        table = self._tables.table(weights.filters)
        V = by_places(weights.top, len(table.values))  # (places, outputs, M)
        F = self._chance @ table.values  # (places, generators, M)
        U = (F @ np.swapaxes(V, 1, 2)).sum(axis=0)  # (generators, outputs)
        L = self._laplacian(table.values, V)
        LU = L @ U
        by_top = LU.T @ F  # (places, outputs, M)
        by_values = np.swapaxes(self._chance, 1, 2) @ (LU @ V)  # (places, tokens, M)
        energy = 0.5 * float(np.sum(U * LU))
        trace = float(np.sum(F * (L @ F)))
        if self._own is None:
            return EnergyAndSlope(energy, trace, Weights(self._tables.by_filters(table, by_values), flat(by_top)))
        S = self._within * (np.swapaxes(V, 1, 2) @ V)  # (places, M, M)
        own, by_own, beside = self._own.with_slope(table, weights.filters, S)
        along = V @ own  # (places, outputs, M)
        trace += self._within * float(np.einsum("kmm->", own))
        energy += 0.5 * self._within * float(np.sum(along * V))
        by_top = by_top + self._within * along
        by_filters = self._tables.by_filters(table, by_values + by_own) + beside
        return EnergyAndSlope(energy, trace, Weights(by_filters, flat(by_top)))

    def of_places(self, filters: FloatArray) -> OfPlaces:
        """Means given the generator, variances within it, and gated inputs, for one filter in each place."""
        table = self._tables.table(filters)
        within = np.zeros(len(filters))
        if self._own is not None:
            within = self._within * self._own(table, filters)[:, 0, 0]
        gated = [self._tables.gated(table, chance)[:, 0] for chance in np.swapaxes(self._chance, 0, 1)]
        share = self._between * self._pairs
        return OfPlaces(share, (self._chance @ table.values)[..., 0], within, np.stack(gated, axis=1))

    def covariance(self, filters: FloatArray) -> FloatArray:
        """C[f] of what the top layer reads under the uniform importance, shape (places * filters, places * filters)."""
        table = self._tables.table(filters)
        places, _, count = table.values.shape
        F = np.swapaxes(self._chance @ table.values, 0, 1).reshape(self._chance.shape[1], -1)
        C = F.T @ self._uniform @ F
        if self._own is not None:
            blocks = C.reshape(places, count, places, count)
            place = np.arange(places)
            blocks[place, :, place] += self._within * self._own(table, filters)
        return np.asarray(C)

    def _laplacian(self, values: FloatArray, V: FloatArray) -> FloatArray:
        """Laplacian of the importances of pairs of generators, with their probabilities."""
        if self._kernel is None:
            return np.asarray(self._uniform)
        M = self._pairs * self._kernel.importance(values @ np.swapaxes(V, 1, 2))
        return np.asarray(self._between * laplacian(M))


def weights_of_variances(problem: Problem, augments: bool) -> tuple[float, float]:
    """Factors of the covariance of means given the generator, and of the mean covariance given it.

    A batch of N samples has the first times 1 - 1/N, and with pairs of a sample with itself less than nothing of the
    second, what varies between its views, over N.
    """
    between = share_of_pairs(problem)
    if not augments:
        return between, between
    own = problem.population.finite_batch and problem.importance.diagonal == "include"
    return between, -1.0 / problem.training.batch_size if own else 0.0


class GeneratorKernel:
    """Mean importance of pairs of strings of each two generators.

    Parameters
    ----------
    chance : ndarray, shape (places, generators, tokens)
        Probabilities of tokens.
    temperature : float
        tau.
    tolerance : float
        Largest error of an importance. Rules of Gauss and Hermite with n nodes for cos(s x) are off by n! s^(2n)/(2n)!
        at most, from which their nodes follow.
    """

    def __init__(self, chance: FloatArray, temperature: float, tolerance: float) -> None:
        self._chance, self._temperature, self._tolerance = chance, temperature, tolerance

    def importance(self, y: FloatArray) -> FloatArray:
        """Mean importance, shape (generators, generators).

        Parameters
        ----------
        y : ndarray, shape (places, tokens, outputs)
            Contribution of each token to the outputs.

        Raises
        ------
        InputError
            If that takes too many nodes.
        """
        y = y / np.sqrt(self._temperature)
        nodes, weights = half_grid(self._counts(y))
        phase = np.exp(1j * (y @ nodes.T))  # (places, tokens, nodes)
        wave = np.ones((self._chance.shape[1], len(weights)), dtype=complex)
        for chance, of_tokens in zip(self._chance, phase, strict=True):
            wave *= chance @ of_tokens
        return ((wave * weights) @ wave.conj().T).real

    def _counts(self, y: FloatArray) -> tuple[int, ...]:
        """Number of nodes for each output, from the largest difference of two strings."""
        widest = np.ptp(y, axis=1).sum(axis=0)
        errors = (
            gammaln(COUNTS + 1) - gammaln(2 * COUNTS + 1) + 2 * COUNTS * np.log(np.maximum(widest, 1e-300))[:, None]
        )
        enough = errors <= np.log(self._tolerance / len(widest))
        counts = COUNTS[np.argmax(enough, axis=1)]
        needed = float(np.prod(counts.astype(float)))
        if not enough.any(axis=1).all() or needed > MOST_NODES:
            raise InputError(
                f"importance.temperature = {self._temperature:g} is {1.0 / widest.max() ** 2:.2g} of the largest "
                f"squared difference of two outputs, which with model.outputs = {len(widest)} takes more than "
                f"{MOST_NODES:,} nodes; raise it or population.tolerance, lower model.outputs, or solve by particles"
            )
        return tuple(int(count) for count in counts)


@lru_cache(maxsize=8)
def half_grid(counts: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of a product of rules for N(0, 1); of two opposite nodes one, for their terms are conjugate."""
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in counts]
    nodes = np.array(list(product(*(x for x, _ in rules))))
    weights = np.array(list(product(*(weight / weight.sum() for _, weight in rules)))).prod(axis=1)
    kept = (nodes[:, 0] > 0.0) & (weights > 1e-18)  # relative to the sum of all
    return nodes[kept], 2.0 * weights[kept]
