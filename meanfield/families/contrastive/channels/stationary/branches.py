"""Equations of the branches of stationary states of several channels.

Under linear priors they are those of the overlaps alone. Under others states of two channels are followed on the cells
and nodes of the search; each point is then refined like a state that is found by itself, but for its rates, which take
the nodes of the search. Channels that coincide have equations of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.states.symmetry import Symmetries
from meanfield.families.contrastive.channels.stationary.cells import Cells
from meanfield.families.contrastive.channels.stationary.equations import PlaneEquations
from meanfield.families.contrastive.channels.stationary.gaussian import gaussian_variables
from meanfield.families.contrastive.channels.stationary.plane import (
    LEVELS,
    SEARCH_SCALE,
    USUAL_WIDTH,
    GaussianField,
    refined,
    roots_of,
    state_variables,
)
from meanfield.families.contrastive.fixed_points.branches import ChannelBranches, branches_of_channels
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.numerics.continuation import CachedEquations
from meanfield.problems.problem_keys import with_value
from meanfield.several_vectors.densities import NODE_SCALE
from meanfield.typing import FloatArray


def branches_of_states(
    problem: Problem, key: str, limits: tuple[float, float]
) -> Sequence[ChannelBranches | PlaneBranches]:
    """Equations of all kinds of states, for every value of a number of the problem."""
    if problem.prior.functions.linear:
        return branches_of_channels(problem, key, limits, gaussian_variables)

    @lru_cache(None)
    def found(p: float) -> AtAValue:
        return AtAValue(with_value(problem, key, p))

    # A value that is not special misses symmetries that hold at single ones.
    symmetries = found(limits[0] + 0.37 * (limits[1] - limits[0])).symmetries
    return [PlaneBranches(found, symmetries, limits, merged) for merged in (False, True)]


class AtAValue:
    """States of two channels at one value of the number that is varied."""

    def __init__(self, problem: Problem) -> None:
        self._problem, closure = problem, ChannelClosure(problem)
        nodes = (Nodes.of(problem, problem.density.feature_nodes, scale) for scale in (SEARCH_SCALE, NODE_SCALE))
        self.search, self.fine = (PlaneEquations(closure, each, Cells(LEVELS[0], USUAL_WIDTH)) for each in nodes)

    @cached_property
    def field(self) -> GaussianField:
        """Velocity of overlaps of Gaussian weights."""
        return GaussianField(self._problem, self.search.closure)

    @cached_property
    def symmetries(self) -> Symmetries:
        """Symmetries at this value."""
        return Symmetries(self.field)

    @cached_property
    def roots(self) -> list[FloatArray]:
        """Unknowns of all states on the cells of the search."""
        return roots_of(self.search, self.field, self.symmetries)


class PlaneBranches(CachedEquations[PlaneEquations]):
    """Equations of two channels under any prior; of channels that coincide if `merged`.

    Parameters
    ----------
    found : callable
        Value of the number -> `AtAValue`.
    symmetries : Symmetries
        Those that hold for all values.
    """

    def __init__(
        self, found: Callable[[float], AtAValue], symmetries: Symmetries, limits: tuple[float, float], merged: bool
    ) -> None:
        super().__init__(limits)
        self._found, self._symmetries, self._merged = found, symmetries, merged

    def make(self, p: float, latest: PlaneEquations | None) -> PlaneEquations:
        """Equations at a value of the number, on the cells of the search."""
        return self._found(p).search

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Residual and Jacobian."""
        return self.at(p).merged(x) if self._merged else self.at(p)(x)

    def values(self, x: FloatArray, p: float) -> FloatArray:
        """Residual alone."""
        return self.equations(x, p)[0] if self._merged else self.at(p).values_alone(x)

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All states of this kind that a search finds, one of each set of images."""
        at = self.at(p)
        kept = (y for y in self._found(p).roots if at.coincide(y) == self._merged)
        return [at.restricted(y) if self._merged else y for y in kept]

    def images(self, x: FloatArray) -> list[FloatArray]:
        """Images under symmetries; multipliers change places with the channels."""
        at = self.at(self.limits[0])
        y = at.embedded(x) if self._merged else x
        whole = self._symmetries.images(y[:-2])
        images = [np.concatenate([image, n]) for image in whole for n in (y[-2:], y[:-3:-1])]
        if not self._merged:
            return images
        return [at.restricted(image) for image in images if at.coincide(image)]

    def variables(self, x: FloatArray, p: float) -> dict[str, Any] | None:
        """The variables of the state at a root; None where its tails reach beyond all cells."""
        found = self._found(p)
        y = found.search.embedded(x) if self._merged else x
        state = refined(found.fine, found.field, y, found.search)
        return None if state is None else state_variables(found.fine, found.symmetries, state)
