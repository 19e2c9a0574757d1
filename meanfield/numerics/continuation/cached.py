"""Cache of equations F(x, p) = 0 that are expensive to make: those for the latest values of the parameter are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from meanfield.numerics.continuation.diagram import by_difference
from meanfield.typing import FloatArray

MOST_KEPT = 200
"""Largest number of values of the parameter whose equations are kept."""

Made = TypeVar("Made")


class CachedEquations(ABC, Generic[Made]):
    """Base of equations F(x, p) = 0 with a cache of the data for values of p; see `ParametricEquations`.

    Parameters
    ----------
    limits : tuple of float
        The range of p, increasing.
    """

    def __init__(self, limits: tuple[float, float]) -> None:
        self.limits = limits
        self._kept: dict[float, Made] = {}

    @abstractmethod
    def make(self, p: float, latest: Made | None) -> Made:
        """Data that evaluate F at one value of p; `latest` are those made last, which may serve as a hint."""

    @abstractmethod
    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Residual F and Jacobian dF/dx, shapes (n,) and (n, n)."""

    def values(self, x: FloatArray, p: float) -> FloatArray:
        """Residual F alone, shape (n,)."""
        return self.equations(x, p)[0]

    def by_parameter(self, x: FloatArray, p: float, values: FloatArray) -> FloatArray:
        """Derivative dF/dp, shape (n,), by a difference."""
        return by_difference(lambda p: self.values(x, p), p, values, self.limits)

    def images(self, x: FloatArray) -> Sequence[FloatArray]:
        """Images of a root under the symmetries of the equations, itself among them."""
        return (x,)

    def at(self, p: float) -> Made:
        """Data for a value of p, from the cache if they are there."""
        if p not in self._kept:
            latest = self._kept[next(reversed(self._kept))] if self._kept else None
            made = self.make(p, latest)
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[p] = made
        return self._kept[p]

    def forget(self) -> None:
        """Empty the cache."""
        self._kept.clear()
