"""Velocity of the overlaps of several channels and its Jacobian, up to the border where channels coincide.

K = M - q^T q has no negative eigenvalue, and vanishes in some direction where channels coincide, so that no difference
reaches beyond such a state. The scaled overlaps (1 - s)(q, M) are inside, with K >= s, and Jacobians there are
extrapolated to s = 0. Searches for states at rest start from simple arrangements of overlaps, and random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.field import OverlapField
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.continuation import directions
from meanfield.numerics.growth_rates import RATE_RESOLUTION
from meanfield.typing import FloatArray

ROOM_SHARE = 0.1
"""Largest length of differences, as a share of the least eigenvalue of K."""

COINCIDING = 1.0 - 1e-6
"""Least overlap |M_kl| of channels that coincide."""


class SmoothField(OverlapField):
    """Velocity b(q, M) of a problem whose averages are smooth functions of the overlaps.

    Parameters
    ----------
    problem : Problem
        With several channels and a linear phi.
    size : float, optional
        Size of the velocity, if it is known.
    closure : ChannelClosure, optional
        Averages of the problem, if they are at hand.

    Raises
    ------
    InputError
        If averages take random batches, or there is no closure.
    """

    def __init__(self, problem: Problem, size: float | None = None, closure: ChannelClosure | None = None) -> None:
        closure = closure or ChannelClosure(problem)
        if closure.at_random:
            raise InputError(
                "decorrelation.penalty: its averages take random batches, whose errors hide growth rates; use the "
                "penalty 'square', or 'absolute' where that has a quadrature"
            )
        super().__init__(closure)
        self.features, self.channels = len(problem.features), problem.model.channels
        self._size = size
        self._has_kinks = bool(problem.model.activation_functions.kinks)

    @cached_property
    def size(self) -> float:
        """Size of the velocity, the unit of rates: its largest component where channels have something of a feature."""
        if self._size is not None:
            return self._size
        sizes = []
        for f in range(self.features):
            for amount in (0.3, 0.6, 0.9):
                q = np.zeros((self.features, self.channels))
                q[f] = amount * np.linspace(1.0, 0.5, self.channels)
                M = q.T @ q
                np.fill_diagonal(M, 1.0)
                sizes.append(np.abs(self(self.packed(q, M))).max())
        return max(float(np.max(sizes)), np.finfo(float).tiny)

    @property
    def resolution(self) -> float:
        """Size of a growth rate below which it counts as zero."""
        return (1e-5 if self._has_kinks else RATE_RESOLUTION) * self.size

    def room(self, x: FloatArray) -> float:
        """Least eigenvalue of K, negative outside of the domain."""
        return -self.excess(x)

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Jacobian db/dx, shape (n, n), by differences of fourth order, from inside where channels coincide."""
        room = self.room(x)
        if room > 1e-5:  # closer by, shorter differences would lose digits to rounding
            return differences(self, x, room)
        points = 5  # of the extrapolation
        places = range(1, points + 1)
        # With kinks, averages are smooth functions of the square root of s only.
        inwards = [(0.03 * k) ** 2 if self._has_kinks else 2e-3 * k for k in places]
        weights = [(-1) ** (k + 1) * comb(points, k) for k in places]
        slopes = [differences(self, (1.0 - s) * x, s) for s in inwards]
        return np.asarray(np.einsum("k,kij->ij", weights, slopes))


def differences(field: Callable[[FloatArray], FloatArray], x: FloatArray, room: float) -> FloatArray:
    """Jacobian of a field by central differences of fourth order, as short as the room that x has demands."""
    h = min(1e-3, ROOM_SHARE * room)
    columns = [
        (field(x - 2 * h * unit) - 8 * field(x - h * unit) + 8 * field(x + h * unit) - field(x + 2 * h * unit))
        for unit in np.eye(len(x))
    ]
    return np.array(columns).T / (12 * h)


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
    rates : ndarray, shape (d1,)
        Growth rates of overlaps with each feature where nothing is learnt.
    M : ndarray, shape (d2, d2)
        Overlaps of channels where nothing is learnt.
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
