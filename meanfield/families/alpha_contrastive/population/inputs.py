"""Inputs of the places of two layers, given a latent variable such as the generator, and filters at them.

Places are independent given the latent variable. A place holds atoms, such as tokens, with chances that depend on it;
or Gaussians, of which the mean activation given the latent variable is all that views without more in common leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from meanfield.families.alpha_contrastive.laws import Conditional, DataLaw, DiscreteLaw, GaussianMixture, Tokens
from meanfield.families.alpha_contrastive.laws.tokens import WILDCARD
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.population.gaussians import GaussianInputs
from meanfield.typing import FloatArray


class Inputs(Protocol):
    """Filters at the atoms of their places."""

    def forward(self, h: Filter, filters: FloatArray) -> tuple[FloatArray, Any]:
        """Activations, shape (places, atoms, filters), and what the derivative needs."""

    def back(self, kept: Any, slope: FloatArray) -> FloatArray:
        """Derivative by the filters, shape (places, filters, coordinates), from that by the activations."""


class TokenInputs:
    """Tokens: multiples of unit vectors."""

    def __init__(self, lengths: FloatArray) -> None:
        self._lengths = lengths[:, None]

    def forward(self, h: Filter, filters: FloatArray) -> tuple[FloatArray, Any]:
        """See `Inputs.forward`."""
        z = np.swapaxes(filters, 1, 2) * self._lengths
        return h.value(z), h.slope(z)

    def back(self, kept: Any, slope: FloatArray) -> FloatArray:
        """See `Inputs.back`."""
        return np.swapaxes(slope * kept * self._lengths, 1, 2)


class VectorInputs:
    """Points of any place, shape (places, atoms, coordinates)."""

    def __init__(self, atoms: FloatArray) -> None:
        self._atoms = atoms

    def forward(self, h: Filter, filters: FloatArray) -> tuple[FloatArray, Any]:
        """See `Inputs.forward`."""
        z = self._atoms @ np.swapaxes(filters, 1, 2)
        return h.value(z), h.slope(z)

    def back(self, kept: Any, slope: FloatArray) -> FloatArray:
        """See `Inputs.back`."""
        return np.asarray(np.swapaxes(slope * kept, 1, 2) @ self._atoms)


@dataclass(frozen=True)
class PlacesLaw:
    """Law of the inputs of all places.

    Parameters
    ----------
    chance : ndarray, shape (places, conditions, atoms)
        Chances of atoms given the latent variable.
    probability : ndarray, shape (conditions,)
    inputs : Inputs
    augments : bool
        Whether two views share the latent variable alone, or are the same.
    """

    chance: FloatArray
    probability: FloatArray
    inputs: Inputs
    augments: bool


def places_of(data: DataLaw) -> PlacesLaw:
    """Law of the places of a problem; points and mixtures are one place, each sample or component a condition."""
    if isinstance(data, Tokens):
        rows, tokens = data.rows, np.arange(data.vocabulary)
        chance = np.where(rows[..., None] == WILDCARD, 1.0 / data.vocabulary, rows[..., None] == tokens)
        alike = np.full(len(rows), 1.0 / len(rows))
        chance = np.ascontiguousarray(np.swapaxes(chance, 0, 1))
        return PlacesLaw(chance, alike, TokenInputs(data.lengths), data.augmentation)
    if isinstance(data, DiscreteLaw) and data.sample_of is not None:
        own = np.arange(data.sample_of.max() + 1)[:, None] == data.sample_of
        probability = own @ data.weights
        chance = own * data.weights / probability[:, None]
        return PlacesLaw(chance[None], probability, VectorInputs(data.atoms[None]), True)
    if isinstance(data, DiscreteLaw):
        return PlacesLaw(np.eye(len(data.weights))[None], data.weights, VectorInputs(data.atoms[None]), False)
    if isinstance(data, GaussianMixture):
        mixture = GaussianInputs(data.centres[None], data.covariances[None])
        return PlacesLaw(np.eye(len(data.weights))[None], data.weights, mixture, data.augmentation)
    assert isinstance(data, Conditional)
    if data.points is None:
        one = np.repeat(np.eye(len(data.weights))[None], data.places, axis=0)
        shape = (*data.centres.shape, data.dimension)
        inputs: Inputs = GaussianInputs(data.centres, np.broadcast_to(data.common_covariance, shape))
        return PlacesLaw(one, data.weights, inputs, data.augmentation)
    return PlacesLaw(data.chances_of_atoms, data.weights, VectorInputs(data.atoms), data.augmentation)
