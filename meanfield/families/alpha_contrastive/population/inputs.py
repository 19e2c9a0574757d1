"""Inputs of the places of two layers, given a latent variable such as the generator, and filters at them.

Places are independent given the latent variable. A place holds atoms, such as tokens, with chances that depend on it;
or Gaussians, of which the mean activation given the latent variable is all that views without more in common leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr

from meanfield.families.alpha_contrastive.laws import Conditional, DataLaw, DiscreteLaw, Tokens
from meanfield.families.alpha_contrastive.laws.tokens import WILDCARD
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.typing import FloatArray

NODES = np.polynomial.hermite_e.hermegauss(80)
"""Nodes and weights for smooth activations of Gaussian inputs."""


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


class GaussianInputs:
    """Gaussians, each of which stands for one atom with its mean activation.

    With u = w.x of mean m and variance s^2 it is E h(u), and its derivative
    E[h'(u) x] = E h' mu + E[h' (u - m)] S w/s^2.
    """

    def __init__(self, means: FloatArray, covariance: FloatArray) -> None:
        self._means, self._covariance = means, covariance

    def forward(self, h: Filter, filters: FloatArray) -> tuple[FloatArray, Any]:
        """See `Inputs.forward`."""
        v = filters @ self._covariance
        s = np.sqrt(np.sum(v * filters, axis=-1))[:, None]  # (places, 1, filters)
        m = self._means @ np.swapaxes(filters, 1, 2)
        if h.straight is not None:
            a, b = h.straight
            t = m / s
            Phi, phi = ndtr(t), np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
            value, slope, along = a * m + b * (m * Phi + s * phi), a + b * Phi, b * phi
        else:
            x, weight = NODES[0], NODES[1] / NODES[1].sum()
            u = m[..., None] + s[..., None] * x
            gated = h.slope(u) * weight
            value, slope, along = h.value(u) @ weight, gated.sum(axis=-1), gated @ x
        return value, (slope, along, np.swapaxes(v, 1, 2) / s)

    def back(self, kept: Any, slope: FloatArray) -> FloatArray:
        """See `Inputs.back`."""
        on_mean, along, unit = kept
        by_covariance = np.sum(slope * along, axis=1, keepdims=True) * unit
        return np.asarray(np.swapaxes(slope * on_mean, 1, 2) @ self._means + np.swapaxes(by_covariance, 1, 2))


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
    """Law of the places of a problem; points without views are a single place, each a condition of its own."""
    if isinstance(data, Tokens):
        rows, tokens = data.rows, np.arange(data.vocabulary)
        chance = np.where(rows[..., None] == WILDCARD, 1.0 / data.vocabulary, rows[..., None] == tokens)
        alike = np.full(len(rows), 1.0 / len(rows))
        chance = np.ascontiguousarray(np.swapaxes(chance, 0, 1))
        return PlacesLaw(chance, alike, TokenInputs(data.lengths), data.augmentation)
    if isinstance(data, DiscreteLaw):
        return PlacesLaw(np.eye(len(data.weights))[None], data.weights, VectorInputs(data.atoms[None]), False)
    assert isinstance(data, Conditional)
    if data.points is None:
        one = np.repeat(np.eye(len(data.weights))[None], data.places, axis=0)
        inputs: Inputs = GaussianInputs(data.centres, data.common_covariance)
        return PlacesLaw(one, data.weights, inputs, data.augmentation)
    return PlacesLaw(data.chances_of_atoms, data.weights, VectorInputs(data.atoms), data.augmentation)
