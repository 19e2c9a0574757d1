"""Latents of all mixtures of one start as combinations of the same random numbers.

A latent that draws its own component is C_r = mu_(k_r) + z_r, and F^T C = sum_j (mu_j - mu_m) F^T 1[k = j] +
mu_m F^T 1 + F^T z: the products with F do not depend on the means. Where a sample draws one component, C = mu_k + z
with vectors mu_k. Standardisation shifts and divides; in the second reading it divides each latent by its own number,
and takes a product of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from validation.hidden_manifold.figures.mixtures import FloatArray, standardisation
from validation.hidden_manifold.figures.sgd import Start, combine

GAUSSIAN, COORDINATE, SAMPLE, MATCHED = "gaussian", "coordinate", "sample", "matched"
"""Laws of latents: N(0, 1); a component for each latent; a component for each sample; and one Gaussian with mean and
variance of the first mixture."""

STANDARDISED = {COORDINATE: "coordinate, standardised", SAMPLE: "sample, standardised"}

LAWS = (COORDINATE, STANDARDISED[COORDINATE], SAMPLE, STANDARDISED[SAMPLE], MATCHED)
"""Laws that depend on means."""


class Means(NamedTuple):
    """Means of the components of one mixture in units of alpha, in both readings.

    Parameters
    ----------
    number : ndarray, shape (components,)
    vector : ndarray, shape (components, D)
    """

    number: FloatArray
    vector: FloatArray


class Law(NamedTuple):
    """Law of latents as a combination of random numbers.

    Parameters
    ----------
    components : int
        Number m of components, 1 for a Gaussian.
    factors : ndarray of float32, shape (parts,)
        Of F^T z and, where latents draw components, of F^T 1[k = j].
    offsets : ndarray of float32, shape (components or 1, fields)
    divisor : ndarray, shape (D,), or None
        Standard deviations of latents, by which z is divided.
    """

    components: int
    factors: FloatArray
    offsets: FloatArray
    divisor: FloatArray | None = None


def draw_means(rng: np.random.Generator, components: int, D: int) -> Means:
    """Means of a mixture by the paper's law (17), for alpha = 1."""
    return Means(rng.uniform(-1.0, 1.0, components), rng.uniform(-1.0, 1.0, (components, D)))


def make_law(name: str, start: Start, means: Means | None = None, alpha: float = 0.0) -> Law:
    """A law by its name: of `LAWS`, or `GAUSSIAN`."""
    if name == GAUSSIAN or means is None:
        return _law(1, [1.0], np.zeros((1, start.fields.shape[1])))
    standardised, m = name in STANDARDISED.values(), len(means.number)
    ones = start.fields.sum(axis=0)
    if name.startswith(COORDINATE) or name == MATCHED:
        mu = alpha * means.number
        shift, scale = standardisation(mu)
        if name == MATCHED:
            return _law(1, [scale], shift * ones)
        shift, scale = (shift, scale) if standardised else (0.0, 1.0)
        return _law(m, [1.0 / scale, *(mu[:-1] - mu[-1]) / scale], (mu[-1] - shift) / scale * ones)
    mu = alpha * means.vector
    if not standardised:
        return _law(m, [1.0], mu @ start.fields)
    shift, scale = standardisation(mu)
    return _law(m, [1.0], (mu - shift) / scale @ start.fields, scale)


def _law(components: int, factors: Sequence[float], offsets: FloatArray, divisor: FloatArray | None = None) -> Law:
    rows = np.atleast_2d(offsets).astype(np.float32)
    return Law(components, np.array(factors, np.float32), rows, None if divisor is None else divisor.astype(np.float32))


class Samples:
    """Streams of samples of many laws.

    Parameters
    ----------
    start : Start
    components : sequence of int
        Numbers of components that occur.
    most : int
        Largest number of samples at once.
    rng : Generator
    """

    def __init__(self, start: Start, components: Sequence[int], most: int, rng: np.random.Generator) -> None:
        self._start, self._most = start, most
        self._streams = dict(zip(("z", *components), rng.spawn(1 + len(components)), strict=True))
        width = start.fields.shape[1]
        self._parts = {m: np.empty((m, most, width), np.float32) for m in {1, *components}}
        self._z = np.empty((most, start.latents), np.float32)
        self._component: Mapping[int, FloatArray] = {}
        self._own, self._out = np.empty((1, most, width), np.float32), np.empty((most, width), np.float32)
        self._count = 0

    def draw(self, count: int) -> None:
        """Draw the random numbers of some samples, and their products with F."""
        fields, self._count = self._start.fields, count
        self._streams["z"].standard_normal(dtype=np.float32, out=self._z[:count])
        noise = self._z[:count] @ fields
        self._component = {1: np.zeros(count, np.int64)}
        for m, parts in self._parts.items():
            parts[0, :count] = noise
            if m == 1:
                continue
            own = self._streams[m].integers(m, size=(count, self._start.latents), dtype=np.uint8)
            for j in range(m - 1):
                np.dot((own == j).astype(np.float32), fields, out=parts[1 + j, :count])
            self._component[m] = self._streams[m].integers(m, size=count)

    def of(self, law: Law) -> FloatArray:
        """Fields of the samples under a law, shape (samples, N + teachers); valid until the next call."""
        count, parts = self._count, self._parts[law.components][: len(law.factors), : self._count]
        if law.divisor is not None:
            parts = self._own[:, :count]
            np.dot(self._z[:count] / law.divisor, self._start.fields, out=parts[0])
        component = self._component[law.components if len(law.offsets) > 1 else 1]
        combine(parts, law.factors, law.offsets, component, self._out[:count])
        return self._out[:count]
