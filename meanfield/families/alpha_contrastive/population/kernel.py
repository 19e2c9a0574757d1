"""Gaussian importance of two strings of tokens, averaged given their generators.

exp(-|y - y'|^2/(2 tau)) = E[exp(i xi.y) exp(-i xi.y')] over xi ~ N(0, 1/tau), and an output y is a sum over places that
are independent given the generator. So the average is one of products over places (alpha_contrastive.md, section 6).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import numpy as np
from scipy.special import gammaln

from meanfield.errors import InputError
from meanfield.typing import FloatArray

MOST_NODES = 100_000
"""Largest number of nodes of all outputs together."""

COUNTS = np.arange(4, 121, 4)
"""Numbers of nodes of a Gauss-Hermite rule; larger ones overflow."""


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
        return np.asarray(((wave * weights) @ wave.conj().T).real)

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

    def laplacian(self, y: FloatArray) -> FloatArray:
        """Laplacian of the mean importance, over the squared number of generators."""
        found = self.importance(y)
        return np.asarray((np.diag(found.sum(axis=1)) - found) / len(found) ** 2)


@lru_cache(maxsize=8)
def half_grid(counts: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of a product of rules for N(0, 1); of two opposite nodes one, for their terms are conjugate."""
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in counts]
    nodes = np.array(list(product(*(x for x, _ in rules))))
    weights = np.array(list(product(*(weight / weight.sum() for _, weight in rules)))).prod(axis=1)
    kept = (nodes[:, 0] > 0.0) & (weights > 1e-18)  # relative to the sum of all
    return nodes[kept], 2.0 * weights[kept]
