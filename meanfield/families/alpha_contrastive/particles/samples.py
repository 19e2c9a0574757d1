"""Batches of pairs of views from the law of the data."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import Generator

from meanfield.families.alpha_contrastive.laws import Conditional, DiscreteLaw, GaussianMixture, Images, Tokens
from meanfield.families.alpha_contrastive.laws.images import cropped, quarters
from meanfield.families.alpha_contrastive.laws.tokens import WILDCARD
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.particles.first_layer import DenseLayer, FirstLayer, TokenLayer

Inputs = Any
"""Array of inputs: tokens by place, or coordinates by place."""


class Batch(NamedTuple):
    """Inputs of a batch.

    Parameters
    ----------
    views : array, shape (views, N, ...)
        One where both views are the same, else two.
    source : array, shape (1, N, ...), or None
        Samples before augmentation, where they are asked for and differ from the views.
    """

    views: Inputs
    source: Inputs | None


class Sampler(Protocol):
    """Law of batches, and the first layer that takes their inputs."""

    augments: bool
    """Whether the two views of a sample differ."""

    def layer(self, h: Filter) -> FirstLayer:
        """First layer for such inputs."""

    def draw(self, rng: Generator, N: int, with_source: bool) -> Batch:
        """A batch of N samples."""


def sampler_of(data: Any) -> Sampler:
    """Sampler of a law of the data."""
    if isinstance(data, Tokens):
        return TokenSampler(data)
    if isinstance(data, Conditional):
        return ConditionalSampler(data)
    if isinstance(data, Images):
        return ImageSampler(data)
    return PointSampler(data) if isinstance(data, DiscreteLaw) else MixtureSampler(data)


class TokenSampler:
    """Tokens in places; views share the generator, and what it does not mark is drawn anew for each."""

    def __init__(self, data: Tokens) -> None:
        self._rows, self._lengths, self._tokens = data.rows, data.lengths, data.vocabulary
        self.augments = data.augmentation

    def layer(self, h: Filter) -> FirstLayer:
        """See `Sampler.layer`."""
        return TokenLayer(h, self._lengths)

    def draw(self, rng: Generator, N: int, with_source: bool) -> Batch:
        """See `Sampler.draw`."""
        rows = self._rows[rng.integers(len(self._rows), size=N)]
        copies = 1 + self.augments * (1 + with_source)
        drawn = rng.integers(self._tokens, size=(copies, *rows.shape))
        found = np.where(rows == WILDCARD, drawn, rows)
        return Batch(found[:2], found[2:] if copies == 3 else None)


class PointSampler:
    """Atoms of a discrete law; two views of a sample are independent atoms of it, or the same."""

    def __init__(self, data: DiscreteLaw) -> None:
        self._atoms, self._weights, sample = data.atoms, data.weights, data.sample_of
        self.augments = sample is not None
        if sample is not None:
            order = np.argsort(sample, kind="stable")
            self._atoms, self._weights, self._sample = self._atoms[order], self._weights[order], sample[order]
            # Atoms of a sample come one after the other, in a range of the distribution function.
            self._rise = np.cumsum(self._weights)
            self._ends = np.concatenate([[0.0], self._rise[np.append(np.diff(self._sample) > 0, True)]])

    def layer(self, h: Filter) -> FirstLayer:
        """See `Sampler.layer`."""
        return DenseLayer(h)

    def draw(self, rng: Generator, N: int, with_source: bool) -> Batch:
        """See `Sampler.draw`."""
        chosen = rng.choice(len(self._atoms), size=N, p=self._weights)
        if not self.augments:
            return Batch(self._atoms[None, chosen, None, :], None)
        low, high = self._ends[self._sample[chosen]], self._ends[self._sample[chosen] + 1]
        place = low + (high - low) * rng.random((1 + with_source, N))
        others = np.minimum(np.searchsorted(self._rise, place, side="right"), len(self._atoms) - 1)
        found = self._atoms[np.concatenate([chosen[None], others])][:, :, None]
        return Batch(found[:2], found[2:] if with_source else None)


class MixtureSampler:
    """Samples of a mixture of Gaussians; two views share the component alone, or are the same."""

    def __init__(self, data: GaussianMixture) -> None:
        self._means, self._weights, self.augments = data.centres, data.weights, data.augmentation
        self._roots = np.linalg.cholesky(data.covariances)

    def layer(self, h: Filter) -> FirstLayer:
        """See `Sampler.layer`."""
        return DenseLayer(h)

    def draw(self, rng: Generator, N: int, with_source: bool) -> Batch:
        """See `Sampler.draw`."""
        chosen = rng.choice(len(self._means), size=N, p=self._weights)
        copies = 1 + self.augments * (1 + with_source)
        noise = rng.standard_normal((copies, N, self._means.shape[1]))
        x = (self._means[chosen] + np.einsum("iab,cib->cia", self._roots[chosen], noise))[:, :, None]
        return Batch(x[:2], x[2:] if copies == 3 else None)


class ConditionalSampler:
    """Places that are independent given a latent variable, which views share."""

    def __init__(self, data: Conditional) -> None:
        self._data, self._weights, self.augments = data, data.weights, data.augmentation
        self._places = np.arange(data.places)
        if data.points is None:
            self._means, self._root = data.centres, np.linalg.cholesky(data.common_covariance)
        else:
            self._atoms, self._rise = data.atoms, np.cumsum(data.chances_of_atoms, axis=2)
            self._rise[..., -1] = np.inf  # rounding

    def layer(self, h: Filter) -> FirstLayer:
        """See `Sampler.layer`."""
        return DenseLayer(h)

    def draw(self, rng: Generator, N: int, with_source: bool) -> Batch:
        """See `Sampler.draw`."""
        z = rng.choice(len(self._weights), size=N, p=self._weights)[:, None]
        copies = 1 + self.augments * (1 + with_source)
        if self._data.points is None:
            noise = rng.standard_normal((copies, N, len(self._places), self._data.dimension))
            found = self._means[self._places, z] + noise @ self._root.T
        else:
            drawn = rng.random((copies, N, len(self._places), 1))
            found = self._atoms[self._places, (drawn > self._rise[self._places, z]).sum(axis=-1)]
        return Batch(found[:2], found[2:] if copies == 3 else None)


class ImageSampler:
    """Images of a file through their receptive fields, pixels from 0 to 1."""

    def __init__(self, data: Images) -> None:
        self._images, self.augments = data.atoms, data.crop

    def layer(self, h: Filter) -> FirstLayer:
        """See `Sampler.layer`."""
        return DenseLayer(h)

    def draw(self, rng: Generator, N: int, with_source: bool) -> Batch:
        """See `Sampler.draw`."""
        images = self._images[rng.integers(len(self._images), size=N)] / 255.0
        if not self.augments:
            return Batch(quarters(images)[None], None)
        views = np.stack([quarters(cropped(images, rng)) for _ in range(2)])
        return Batch(views, quarters(images)[None] if with_source else None)
