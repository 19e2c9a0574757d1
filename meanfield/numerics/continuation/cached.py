"""Equations for every value of a parameter that are expensive to make: each is made once, and the latest are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from meanfield.numerics.continuation.diagram import by_difference
from meanfield.typing import FloatArray

MOST_KEPT = 200
"""Largest number of values of the parameter whose equations are kept."""

Made = TypeVar("Made")


class CachedEquations(ABC, Generic[Made]):
    """Base of equations F(x, p) = 0 with a cache of what is made for a value of p; see `ParametricEquations`.

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
        """What evaluates F at one value of p; `latest` is what was made last, which may serve as a hint."""

    @abstractmethod
    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """F and dF/dx, shapes (n,) and (n, n)."""

    def values(self, x: FloatArray, p: float) -> FloatArray:
        """F alone, shape (n,)."""
        return self.equations(x, p)[0]

    def by_parameter(self, x: FloatArray, p: float, values: FloatArray) -> FloatArray:
        """dF/dp, shape (n,), by a difference."""
        return by_difference(lambda p: self.values(x, p), p, values, self.limits)

    def at(self, p: float) -> Made:
        """What was made for a value of p."""
        if p not in self._kept:
            latest = self._kept[next(reversed(self._kept))] if self._kept else None
            made = self.make(p, latest)
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[p] = made
        return self._kept[p]

    def forget(self) -> None:
        """Make everything anew from now on."""
        self._kept.clear()
