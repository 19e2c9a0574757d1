"""All branches of roots over a range of the parameter, from searches at both ends and in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Protocol

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
    return np.asarray((function(p + step) - values) / step)


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
    equations : SearchableEquations
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
