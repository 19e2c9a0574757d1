"""Values of filters at tokens, behind batch normalisation, and derivatives by the filters from those by the values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.families.alpha_contrastive.laws import Tokens
from meanfield.families.alpha_contrastive.laws.tokens import WILDCARD
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.families.alpha_contrastive.settings import BatchNorm
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Table:
    """Values of what the top layer reads, at each token.

    Parameters
    ----------
    z : ndarray, shape (places, tokens, filters)
        What the activation is taken of.
    values : ndarray, shape (places, tokens, filters)
        Activations, with batch normalisation where there is one.
    gain : ndarray, shape (places, 1, filters)
        1/sigma of it, or 1.
    """

    z: FloatArray
    values: FloatArray
    gain: FloatArray


class TokenTables:
    """Tables of the filters of a problem on tokens.

    Attributes
    ----------
    chance : ndarray, shape (places, generators, tokens)
        Probabilities of tokens.
    """

    def __init__(self, problem: Problem, data: Tokens) -> None:
        self._h = Filter(problem.model.activation_functions)
        self._norm = problem.model.batch_norm
        rows, tokens = data.rows, np.arange(data.vocabulary)
        chance = np.where(rows[..., None] == WILDCARD, 1.0 / data.vocabulary, rows[..., None] == tokens)
        self.chance = np.ascontiguousarray(np.swapaxes(chance, 0, 1))
        self._alone = chance.mean(axis=0)[..., None]  # (places, tokens, 1)
        self._lengths = data.lengths[:, None]

    def table(self, filters: FloatArray) -> Table:
        """Inputs of the top layer, at each token."""
        z = np.swapaxes(filters, 1, 2) * self._lengths
        values = self._h.value(z)
        if not self._norm.active:
            return Table(z, values, np.ones((len(z), 1, z.shape[2])))
        values -= np.sum(self._alone * values, axis=1, keepdims=True)
        variance = np.sum(self._alone * values * values, axis=1, keepdims=True)
        gain = np.divide(1.0, np.sqrt(variance + self._norm.epsilon), out=np.zeros_like(variance), where=variance > 0.0)
        return Table(z, values * gain, gain)

    def gated(self, table: Table) -> FloatArray:
        """Coordinate of h' x along each token, behind batch normalisation, shape (places, tokens, filters)."""
        return np.asarray(self._h.slope(table.z) * self._lengths * table.gain)

    def by_filters(self, table: Table, slope: FloatArray) -> FloatArray:
        """Derivative by the filters from that by the values of the table."""
        if self._norm.active:
            slope = _through_statistics(self._norm, self._alone, table, slope)
        return np.swapaxes(slope * self._h.slope(table.z) * self._lengths, 1, 2)


def _through_statistics(norm: BatchNorm, alone: FloatArray, table: Table, slope: FloatArray) -> FloatArray:
    """Derivative by activations from that by normalised ones, over the law of tokens of each place."""
    found = slope
    if norm.differentiate_mean:
        found = found - alone * slope.sum(axis=1, keepdims=True)
    if norm.differentiate_variance:
        found = found - alone * table.values * np.sum(slope * table.values, axis=1, keepdims=True)
    return found * table.gain


def by_places(top: FloatArray, places: int) -> FloatArray:
    """Weights of the top layer, shape (places, outputs, filters)."""
    return np.ascontiguousarray(np.swapaxes(top.reshape(len(top), places, -1), 0, 1))


def flat(top: FloatArray) -> FloatArray:
    """Weights of the top layer as a matrix, from shape (places, outputs, filters)."""
    return np.ascontiguousarray(np.swapaxes(top, 0, 1)).reshape(top.shape[1], -1)
