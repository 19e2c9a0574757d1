"""Overlaps of several channels from which states at rest are searched: simple arrangements, and random ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np

from meanfield.families.contrastive.channels.states.field import SmoothField
from meanfield.numerics.continuation import directions
from meanfield.typing import FloatArray


def random_state(field: SmoothField, rng: np.random.Generator) -> FloatArray:
    """Overlaps of channels that are uniform on the unit sphere in d1 + d2 dimensions, d1 of them features."""
    w = rng.normal(size=(field.features + field.channels, field.channels))
    w /= np.linalg.norm(w, axis=0)
    return field.packed(w[: field.features], w.T @ w)


def state_from_nothing(field: SmoothField, rates: FloatArray, M: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Overlaps of channels from nothing as the dimension N grows, when they first can be seen.

    By then overlaps with the features that grow fastest exceed all others by a power of N. They are independent normal
    numbers, as at the start.

    Parameters
    ----------
    field : SmoothField
    rates : ndarray, shape (d1,)
        Growth rates of overlaps with each feature where nothing is learnt.
    M : ndarray, shape (d2, d2)
        Overlaps of channels where nothing is learnt.
    rng : Generator
    """
    q = rng.normal(size=(field.features, field.channels))
    # Rates that agree to 1e-6 are equal, by a symmetry.
    q[rates < rates.max() - 1e-6 * abs(rates.max())] = 0.0
    return field.packed(1e-3 * q / np.abs(q).max(), M)  # hardly anything is learnt


def arrangements(features: int, channels: int) -> Iterator[FloatArray]:
    """Overlaps q, shape (features, channels), of channels with nothing, a feature, or a mixture of features each.

    Collapsed, tilted, distinct and rotated states are near some of them, channels that have learnt nothing are among
    them.
    """
    columns = [np.zeros(features), *_half(directions(features)), *_half(_tilted(features))]
    chosen = list(combinations_with_replacement(range(len(columns)), channels))
    most = 150
    if len(chosen) > most:  # a part of them, by a fixed seed
        kept = np.random.default_rng(0).choice(len(chosen), most, replace=False)
        chosen = [chosen[i] for i in np.sort(kept)]
    longest, shorter = 0.97, 0.75  # lengths |q_k|
    for radius in (longest, shorter):
        for numbers in chosen:
            if radius == longest or any(numbers):
                yield radius * np.transpose([columns[i] for i in numbers])


def _tilted(features: int) -> Iterator[FloatArray]:
    """Unit vectors near an axis."""
    for f in range(features):
        for g in range(features):
            for part in (0.2, -0.2) if g != f else ():  # overlap with another feature
                tilted = np.zeros(features)
                tilted[[f, g]] = np.sqrt(1.0 - part * part), part
                yield from (tilted, -tilted)


def _half(vectors: Iterator[FloatArray]) -> list[FloatArray]:
    """One of each two opposite vectors: where signs of channels matter, random starts lead to the others."""
    return [v for v in vectors if v[np.flatnonzero(v)[0]] > 0]
