"""Velocity of the order parameters that constraints leave free, up to the border of those that vectors can have.

The Gram matrix G of vectors has no negative eigenvalues. Perfect students and equal ones are on the border, so that
Newton's method may step beyond it: there the velocity is that of the nearest overlaps that vectors have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from meanfield.families.update_rule.order_parameters.equations import LARGEST, Equations, Rules
from meanfield.families.update_rule.order_parameters.jacobian import jacobian_at
from meanfield.families.update_rule.rates import State, packed, unpacked
from meanfield.numerics.continuation import rough_differences
from meanfield.typing import FloatArray

LEAST_ROOM = 1e-6
"""Least eigenvalue of Q - R R^T with which differences may be one-sided."""

VANISHED = 1e-9
"""Largest |w|^2/N of a student that has vanished."""

MOST_OF_IT = 0.8
"""Overlap with a feature, relative to their lengths, of students that have most of it."""

MOST_ARRANGEMENTS = 60
"""Largest number of arrangements of students along features."""

PROBES = 4
"""Number of random states at which sizes are measured and symmetries are tried."""


class Velocity:
    """Rates of change of the free order parameters of a problem that does not change in time.

    Parameters
    ----------
    equations : Equations
    rules : Rules
        Of quadrature.
    accuracy : float
        Of averages, relative to their size.

    Attributes
    ----------
    start : ndarray
        All order parameters at the start of the problem; those that are not free are the same everywhere.
    free : ndarray of int
        Places of those that are free.
    size : float
        Size of the velocity, the unit of speeds: the median of its largest component at random states.
    """

    def __init__(self, equations: Equations, rules: Rules, accuracy: float) -> None:
        self.system, self.start, self.accuracy = equations.stretches[0].system, equations.start, accuracy
        self._rate = partial(equations.velocity(0, rules), 0.0)
        K, M = self.system.students, self.system.features
        kept = np.zeros((K, K), dtype=bool)
        for constraint, group in self.system.constraints:
            own = slice(group.start, group.stop)
            kept[own, own] = np.eye(len(group), dtype=bool) if constraint == "sphere" else constraint != "none"
        free = State(np.ones((K, M)), 1.0 - kept, np.ones(len(self.system.side)))
        self.free = np.flatnonzero(packed(free))
        rng = np.random.default_rng(0)
        sizes = [np.abs(self(self.random(rng))).max() for _ in range(PROBES)]
        self.size = max(float(np.median(sizes)), np.finfo(float).tiny)

    def state(self, y: FloatArray) -> State:
        """All order parameters as matrices."""
        return unpacked(y, self.system.students, self.system.features)

    def embedded(self, x: FloatArray) -> FloatArray:
        """All order parameters, by the free ones: the nearest that vectors can have."""
        y = self.start.copy()
        y[self.free] = x
        state = self.state(y)
        size, along = np.linalg.eigh(state.Q - state.R @ state.R.T)
        if size[0] >= 0.0 and np.all(np.diag(state.Q) > VANISHED):
            return y
        X = np.hstack([state.R, along * np.sqrt(np.maximum(size, 0.0))])
        X[(X**2).sum(axis=1) <= VANISHED] = 0.0
        X = self._constrained(X)
        y = packed(State(X[:, : self.system.features], X @ X.T, state.v))
        kept = np.setdiff1d(np.arange(len(y)), self.free)
        y[kept] = self.start[kept]
        return y

    def _constrained(self, X: FloatArray) -> FloatArray:
        """Students, in rows, that the constraints take back to their lengths, or make orthonormal."""
        X, lengths = X.copy(), np.sqrt(np.diag(self.state(self.start).Q))
        for constraint, group in self.system.constraints:
            own = slice(group.start, group.stop)
            if constraint == "sphere":
                X[own] *= (lengths[own] / np.linalg.norm(X[own], axis=1))[:, None]
            elif constraint != "none":
                left, _, right = np.linalg.svd(X[own], full_matrices=False)
                X[own] = left @ right
        return X

    def inside(self, x: FloatArray) -> FloatArray:
        """The nearest free order parameters that vectors can have."""
        return self.embedded(x)[self.free]

    def room(self, x: FloatArray) -> float:
        """Least eigenvalue of Q - R R^T, 0 at the border."""
        state = self.state(self.embedded(x))
        return float(np.linalg.eigvalsh(state.Q - state.R @ state.R.T)[0])

    def __call__(self, x: FloatArray) -> FloatArray:
        """Velocity of the free order parameters; NaN where they count as infinite."""
        if not np.all(np.abs(x) <= LARGEST):
            return np.full(len(x), np.nan)
        return self._rate(self.embedded(x))[self.free]

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Its derivatives; NaN where they do not exist."""
        if not np.all(np.abs(x) <= LARGEST):
            return np.full((len(x), len(x)), np.nan)
        return jacobian_at(lambda _: self._rate, self.embedded(x), self.system)[np.ix_(self.free, self.free)]

    def values(self, x: FloatArray) -> FloatArray:
        """Velocity in units of its size."""
        return self(x) / self.size

    def equations(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Velocity in units of its size, and derivatives that are good enough for Newton's method."""
        values = self.values(x)
        if not np.isfinite(values).all():
            return values, np.full((len(x), len(x)), np.nan)
        room = self.room(x)
        if room < LEAST_ROOM:
            return values, self.jacobian(x) / self.size
        return values, rough_differences(self.values, x, values, min(1e-7, 0.1 * room))

    def random(self, rng: np.random.Generator, spread: float = 0.0) -> FloatArray:
        """Free order parameters of students with random directions.

        Parameters
        ----------
        spread : float
            Standard deviation of the logarithms of their lengths, where these are free, and of side variables in units
            of 1 plus their size at the start.
        """
        K, M = self.system.students, self.system.features
        start = self.state(self.start)
        W = rng.standard_normal((K, M + K))
        W *= (np.sqrt(np.diag(start.Q)) * np.exp(spread * rng.standard_normal(K)) / np.linalg.norm(W, axis=1))[:, None]
        W = self._constrained(W)
        v = start.v + spread * (1.0 + np.abs(start.v)) * rng.standard_normal(len(start.v))
        return packed(State(W[:, :M], W @ W.T, v))[self.free]

    def arrangements(self) -> Iterator[FloatArray]:
        """Free order parameters of students each of which has most of one feature, or nothing of any."""
        K, M = self.system.students, self.system.features
        start = self.state(self.start)
        lengths = np.sqrt(np.diag(start.Q))
        chosen = list(product(range(-1, M), repeat=K))
        if len(chosen) > MOST_ARRANGEMENTS:  # a part of them, by a fixed seed
            kept = np.random.default_rng(0).choice(len(chosen), MOST_ARRANGEMENTS, replace=False)
            chosen = [chosen[i] for i in np.sort(kept)]
        for features in chosen:
            W = np.hstack([np.zeros((K, M)), np.eye(K)])
            for k, feature in enumerate(features):
                if feature >= 0:
                    W[k, feature], W[k, M + k] = MOST_OF_IT, math.sqrt(1.0 - MOST_OF_IT**2)
            yield self.inside(
                packed(State(lengths[:, None] * W[:, :M], lengths * (W @ W.T) * lengths[:, None], start.v))[self.free]
            )
