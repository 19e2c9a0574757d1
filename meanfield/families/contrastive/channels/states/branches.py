"""Branches of states of several channels as one number of the problem varies.

Each grouping of channels that coincide is a subspace with branches of its own: where collapsed channels part, their
branch goes on and loses its stability, and one of tilted states ends, at the border of what overlaps channels can have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from meanfield.families.contrastive.channels.states.analysis import state_variables
from meanfield.families.contrastive.channels.states.coincidence import Coincidence, coincidences
from meanfield.families.contrastive.channels.states.field import COINCIDING, SmoothField
from meanfield.families.contrastive.channels.states.search import ChannelStates
from meanfield.families.contrastive.channels.states.symmetry import Symmetries
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.continuation import CachedEquations
from meanfield.numerics.continuation.diagram import MOST_KEPT
from meanfield.problems.problem_keys import with_value
from meanfield.typing import FloatArray


class ChannelBranches(CachedEquations[Coincidence]):
    """Velocity of the overlaps of channels in one grouping, for every value of a number of the problem.

    Parameters
    ----------
    fields : callable
        Value of the number -> `SmoothField`.
    limits : tuple of float
        The range of the number, increasing.
    number : int
        Number of the grouping in `coincidences`.
    """

    def __init__(self, fields: Callable[[float], SmoothField], limits: tuple[float, float], number: int) -> None:
        super().__init__(limits)
        self._fields, self._number = fields, number
        # A position within the range that is not special misses symmetries that hold at single values.
        self._symmetries = Symmetries(fields(limits[0] + 0.37 * (limits[1] - limits[0])))

    def make(self, p: float, latest: Coincidence | None) -> Coincidence:
        """The grouping of channels at a value of the number."""
        return list(coincidences(self._fields(p)))[self._number]

    def values(self, x: FloatArray, p: float) -> FloatArray:
        """Velocity alone."""
        return self.at(p).values(x)

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Velocity and its Jacobian."""
        return self.at(p).equations(x)

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All states that are isolated in the subspace, one of each set of images under symmetries."""
        found = ChannelStates(self._fields(p))
        found.search(self.at(p))
        isolated = [state.orbit for state in found.states() if state.copies < np.inf]
        return [self.at(p).restricted(found.x[number]) for number in isolated]

    def images(self, x: FloatArray) -> list[FloatArray]:
        """Images of a state under symmetries that lie in the subspace."""
        space = self.at(self.limits[0])
        whole = self._symmetries.images(space.embedded(x))
        parts = [space.restricted(image) for image in whole]
        kept = [z for z, image in zip(parts, whole, strict=True) if np.abs(space.embedded(z) - image).max() < 1e-9]
        return list(np.unique(np.round(kept, 9), axis=0))

    def variables(self, x: FloatArray, p: float) -> dict[str, Any] | None:
        """The variables of the state at a root; None at the border, where channels coincide after all."""
        space = self.at(p)
        found = ChannelStates(self._fields(p), self._symmetries)
        if not space.room(x) > 1.0 - COINCIDING:
            return None
        found.add(space.embedded(x))
        return state_variables(found.field, found.states()[0])


def branches_of_channels(problem: Problem, key: str, limits: tuple[float, float]) -> list[ChannelBranches]:
    """Equations of all groupings of channels, which share the velocities."""
    size = max(SmoothField(with_value(problem, key, end)).size for end in limits)

    @lru_cache(MOST_KEPT)
    def fields(p: float) -> SmoothField:
        return SmoothField(with_value(problem, key, p), size)

    groupings = len(list(coincidences(fields(limits[0]))))
    return [ChannelBranches(fields, limits, number) for number in range(groupings)]
