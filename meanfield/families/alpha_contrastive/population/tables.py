"""Values of filters at atoms of places, behind batch normalisation, and derivatives by the filters from those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.families.alpha_contrastive.limit.activation import Filter, Rounded
from meanfield.families.alpha_contrastive.population.inputs import PlacesLaw, VectorInputs
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.families.alpha_contrastive.settings import BatchNorm
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Table:
    """Values of what the top layer reads, at each atom.

    Parameters
    ----------
    kept : object
        Of the inputs.
    values : ndarray, shape (places, atoms, filters)
        Activations, with batch normalisation where there is one.
    gain : ndarray, shape (places, 1, filters)
        1/sigma of it, or 1.
    """

    kept: Any
    values: FloatArray
    gain: FloatArray


class Tables:
    """Tables of the filters of a problem."""

    def __init__(self, problem: Problem, law: PlacesLaw) -> None:
        functions = problem.model.activation_functions
        self._h = Rounded(functions) if isinstance(law.inputs, VectorInputs) and functions.kinks else Filter(functions)
        self._norm = problem.model.batch_norm
        self._inputs = law.inputs
        self._alone = np.einsum("g,kga->ka", law.probability, law.chance)[..., None]

    @property
    def is_rounded(self) -> bool:
        """See `Drift.is_rounded`."""
        return isinstance(self._h, Rounded)

    def table(self, filters: FloatArray) -> Table:
        """Inputs of the top layer, at each atom."""
        values, kept = self._inputs.forward(self._h, filters)
        if not self._norm.active:
            return Table(kept, values, np.ones((len(values), 1, values.shape[2])))
        values -= np.sum(self._alone * values, axis=1, keepdims=True)
        variance = np.sum(self._alone * values * values, axis=1, keepdims=True)
        gain = np.divide(1.0, np.sqrt(variance + self._norm.epsilon), out=np.zeros_like(variance), where=variance > 0.0)
        return Table(kept, values * gain, gain)

    def gated(self, table: Table, chance: FloatArray) -> FloatArray:
        """E[h' x] behind batch normalisation with statistics that do not move, shape (places, filters, coordinates).

        Parameters
        ----------
        chance : ndarray, shape (places, atoms)
        """
        return self._inputs.back(table.kept, chance[..., None] * table.gain)

    def by_filters(self, table: Table, slope: FloatArray) -> FloatArray:
        """Derivative by the filters from that by the values of the table."""
        if self._norm.active:
            slope = _through_statistics(self._norm, self._alone, table, slope)
        return self._inputs.back(table.kept, slope)


def _through_statistics(norm: BatchNorm, alone: FloatArray, table: Table, slope: FloatArray) -> FloatArray:
    """Derivative by activations from that by normalised ones, over the law of each place."""
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
