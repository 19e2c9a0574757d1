"""All branches of roots over a range of the parameter, and a cache of equations that are expensive to make."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Generic, Protocol, TypeVar

import numpy as np

from meanfield.numerics.continuation.branches import Branch, ParametricEquations, follow
from meanfield.numerics.continuation.roots import TOLERANCE, newton
from meanfield.process.progress import counted
from meanfield.typing import FloatArray

SAME_BRANCH = 1e-5
"""Distance below which two roots belong to one branch."""


def by_difference(
    function: Callable[[float], FloatArray], p: float, values: FloatArray, limits: tuple[float, float]
) -> FloatArray:
    """Derivative dF/dp where F(p) = values, by a difference in the range; for `ParametricEquations.by_parameter`."""
    low, high = limits
    step = 1e-5 * (high - low) * (1.0 if p < 0.5 * (low + high) else -1.0)  # one-sided, into the range
    return (function(p + step) - values) / step


class SearchableEquations(ParametricEquations, Protocol):
    """Equations with a parameter whose roots at one value of it can all be found."""

    limits: tuple[float, float]
    """Range of the parameter p, increasing."""

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> Sequence[FloatArray]:
        """All roots at p; those that are known may be left out."""

    def images(self, x: FloatArray) -> Sequence[FloatArray]:
        """Images of a root under symmetries, itself among them: of branches that are images only one is followed."""


def all_branches(
    equations: SearchableEquations, ends: tuple[float, float], longest: float, tolerance: float = TOLERANCE
) -> list[Branch]:
    """Branches from the roots at both ends, then from those in between that none of them leads to.

    Parameters
    ----------
    ends : tuple of float
        Limits of the range, in the order in which branches begin.
    longest : float
        Longest step of (x, p/range).
    tolerance : float
        Largest component of F at a root.
    """
    searched = {p: equations.search(p) for p in counted(ends, "states at both ends", "end")}
    begins = [(p, x) for p in ends for x in searched[p]]
    branches = _from_ends(equations, begins, longest, tolerance)
    for _ in range(6):  # times that steps are halved: where two branches do meet at a limit, they still will
        if not _have_ends_in_common(branches):
            break
        longest *= 0.5
        branches = _from_ends(equations, begins, longest, tolerance)
    # No branch from the ends need lead to roots at these shares of the range.
    for share in counted((0.5, 0.25, 0.75), "states in between", "place"):
        p = ends[0] + share * (ends[1] - ends[0])
        crossings = [_polished(equations, x, p, tolerance) for branch in branches for x in branch.crossings(p)]
        known = [x for x in crossings if x is not None]
        for x in equations.search(p, known):
            if not any(_is_among(known, image) or _is_on(branches, image, p) for image in equations.images(x)):
                branches.append(follow(equations, x, p, equations.limits, longest, tolerance))
    return branches


def _from_ends(
    equations: SearchableEquations, begins: Sequence[tuple[float, FloatArray]], longest: float, tolerance: float
) -> list[Branch]:
    """Branches from roots at both ends of the range, each followed once."""
    branches: list[Branch] = []
    for p, x in counted(begins, "branches from both ends", "state"):
        root = _polished(equations, x, p, tolerance)
        if root is not None and not any(_is_on(branches, image, p) for image in equations.images(root)):
            branches.append(follow(equations, root, p, equations.limits, longest, tolerance))
    return branches


def _have_ends_in_common(branches: list[Branch]) -> bool:
    """Whether two branches lead to one root at a limit: near a point where others cross, a step changed to another."""
    sides = [
        (branch.x[at], branch.p[at])
        for branch in branches
        for at, end in zip((0, -1), branch.ends, strict=True)
        if end == "limit"
    ]
    return any(p == q and np.linalg.norm(x - y) < SAME_BRANCH for (x, p), (y, q) in combinations(sides, 2))


def _polished(equations: ParametricEquations, x: FloatArray, p: float, tolerance: float) -> FloatArray | None:
    return newton(lambda x: equations.equations(x, p), x, tolerance=tolerance)


def _is_on(branches: list[Branch], root: FloatArray, p: float) -> bool:
    return any(_is_among(branch.crossings(p), root) for branch in branches)


def _is_among(roots: Sequence[FloatArray], root: FloatArray) -> bool:
    return any(np.linalg.norm(root - x) < SAME_BRANCH for x in roots)


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
