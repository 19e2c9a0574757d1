"""Values of filters at atoms of places, behind batch normalisation, and derivatives by the filters from those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.families.alpha_contrastive.limit.activation import Filter, Rounded
from meanfield.families.alpha_contrastive.population.gaussians import GaussianInputs
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
        self.h = Rounded(functions) if isinstance(law.inputs, VectorInputs) and functions.kinks else Filter(functions)
        self._norm = problem.model.batch_norm
        self._inputs = law.inputs
        self._alone = np.einsum("g,kga->ka", law.probability, law.chance)[..., None]

    @property
    def is_rounded(self) -> bool:
        """See `Drift.is_rounded`."""
        return isinstance(self.h, Rounded)

    def table(self, filters: FloatArray) -> Table:
        """Inputs of the top layer, at each atom."""
        values, kept = self._inputs.forward(self.h, filters)
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


class OwnCovariance:
    """Mean covariance, given the latent variable, of the filters of each place, shape (places, filters, filters)."""

    def __init__(self, tables: Tables, law: PlacesLaw) -> None:
        self._h, self._probability = tables.h, law.probability
        p, chance = law.probability[:, None], law.chance
        self._gaussians = law.inputs if isinstance(law.inputs, GaussianInputs) else None
        alone = np.sum(p * chance, axis=1)
        # Of values v at the atoms it is v.T spread v.
        self._spread = alone[:, :, None] * np.eye(chance.shape[2]) - np.swapaxes(p * chance, 1, 2) @ chance

    def __call__(self, table: Table, filters: FloatArray) -> FloatArray:
        """The covariance."""
        return self.with_slope(table, filters, np.zeros((len(filters), filters.shape[1], filters.shape[1])))[0]

    def with_slope(self, table: Table, filters: FloatArray, S: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Covariance C, and the slope of sum S C/2 by the values of the table, and by filters beside that.

        Parameters
        ----------
        S : ndarray, shape (places, filters, filters)
            Symmetric.
        """
        v, p = table.values, self._probability[:, None]
        if self._gaussians is None:
            apart = self._spread @ v
            return np.swapaxes(v, 1, 2) @ apart, apart @ S, np.zeros_like(filters)
        found = self._gaussians.pairs(self._h, filters)
        C = np.einsum("z,kzml->kml", self._probability, found[0].outputs) - np.swapaxes(v, 1, 2) @ (p * v)
        return C, -p * (v @ S), self._gaussians.by_pairs(found, S[:, None] * p[..., None])


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
