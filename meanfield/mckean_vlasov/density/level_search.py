"""Search for an accuracy on cells: levels of finer cells and shorter steps, and attempts with wider cells.

Nodes in u have an error of their own, which more of them on a coarse level show.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.numerics.refinement import missed
from meanfield.typing import FloatArray

MORE_NODES = 1.35
"""Factor on the number of nodes from one trial to the next, a third more."""


class NarrowCellsError(BlowUpError):
    """Error of a solution whose mass has reached the outermost cells."""


class LongStepsError(BlowUpError):
    """Error of time steps that are too long for the dynamics."""


class Factors(NamedTuple):
    """Factors on the default half-width of the cells and on the default number of steps."""

    widening: float = 1.0
    refinement: float = 1.0


class Attempt(Protocol):
    """Solution on cells and steps of some factors."""

    def solve(self) -> str:
        """Solve, and return the status; a `BlowUpError` and Ctrl-C leave what was computed before."""


A = TypeVar("A", bound=Attempt)


def solved(attempt_with: Callable[[Factors], A], wider: float, allowed: Callable[[A, Factors], bool]) -> tuple[A, str]:
    """The first attempt whose cells reach far enough and whose steps are short enough, and its status.

    Parameters
    ----------
    attempt_with : callable
        factors -> attempt
    wider : float
        Factor on the half-width from an attempt to the next, if its cells were too narrow.
    allowed : callable
        (the last attempt, factors) -> whether there may be one with these.
    """
    factors = Factors()
    while True:
        attempt = attempt_with(factors)
        try:
            return attempt, attempt.solve()
        except KeyboardInterrupt:
            return attempt, "interrupted"
        except NarrowCellsError as error:
            status, factors = error.status, factors._replace(widening=wider * factors.widening)
        except LongStepsError as error:
            status, factors = error.status, factors._replace(refinement=4.0 * factors.refinement)
        except BlowUpError as error:
            return attempt, error.status
        if not allowed(attempt, factors):
            return attempt, status


class AnyLevel(Protocol):
    """Solution with some times the cells and steps of a plan."""

    @property
    def judged(self) -> FloatArray:
        """Moments at the output times that the tolerance is for, shape (outputs, moments)."""

    def run(self) -> None:
        """Advance to all output times."""

    def forget_densities(self) -> None:
        """Free the memory of all densities."""


P = TypeVar("P")
L = TypeVar("L", bound=AnyLevel)


class LevelSearch(ABC, Generic[P, L]):
    """Levels above one plan until the estimated error is small enough.

    Parameters
    ----------
    plan : object
        To begin with; later with as many nodes in u as it takes.
    tolerance : float
    nodes_given : bool
        Whether the user chose the nodes in u.

    Attributes
    ----------
    what : str
        Of what the error is.
    factors, node_factors : tuple of int
        Factors on the numbers of cells and steps of the levels, in the order in which they are solved; and of those on
        which numbers of nodes are compared.
    forgiven : int
        Factor below which levels may fail as long as none has succeeded.
    most_work : float
        Largest work of a level.
    node_share : float
        Share of the tolerance that more nodes may change; the rest is for cells and steps.
    node_fall : float
        Largest ratio of a change by more nodes to the one before; if it is larger, cells are too wide to tell.
    needs_pilot : bool
        Whether a pilot is solved though no more nodes are to be compared with it.
    levels : list
        From coarse to fine.
    unfinished : object or None
        The last level that was begun, unless its nodes were compared with fewer.
    pilot : object or None
        The last level that was solved to compare nodes.
    node_error : ndarray or float
        Error of the moments by the nodes.
    error : float
        Largest estimated error; infinite as long as there are too few levels for an estimate.
    """

    what: str
    factors: ClassVar[tuple[int, ...]]
    node_factors: ClassVar[tuple[int, ...]]
    forgiven: ClassVar[int]
    most_work: ClassVar[float]
    node_share: ClassVar[float]
    node_fall: ClassVar[float]
    needs_pilot: ClassVar[bool] = False

    def __init__(self, plan: P, tolerance: float, nodes_given: bool) -> None:
        self.plan, self.tolerance, self.nodes_given = plan, tolerance, nodes_given
        self.levels: list[L] = []
        self.unfinished: L | None = None
        self.pilot: L | None = None
        self.node_error: FloatArray | float = 0.0
        self.error = math.inf
        self._error_of_nodes = 0.0

    @abstractmethod
    def new_level(self, plan: P, factor: int) -> L:
        """A level that fits into the free memory, at the start."""

    @abstractmethod
    def work(self, plan: P, factor: int) -> float:
        """Cells times nodes times steps of a level."""

    @abstractmethod
    def with_more_nodes(self, plan: P) -> P | None:
        """Plan with `MORE_NODES` times the nodes of each feature, or None where they are the same."""

    @abstractmethod
    def size(self, errors: FloatArray, judged: FloatArray) -> float:
        """Largest error of moments that the tolerance is for, as it counts them."""

    @abstractmethod
    def estimate(self) -> float:
        """Largest error of the extrapolation over all levels; infinite if they are too few."""

    def solve(self) -> str:
        """Choose nodes, and add levels until the estimated error is small enough; the status."""
        self.choose_nodes()
        for factor in self.factors:
            if self.work(self.plan, factor) > self.most_work and self.error < math.inf:
                break
            if not self.added(factor):
                continue
            self.error = self.estimate()
            if self.error <= self.tolerance:
                return "complete"
            if self.tolerance < self._error_of_nodes >= 0.5 * self.error:
                break  # no level makes up for too few nodes
        remedy = "raise it, or give density.cells and density.steps"
        if self.nodes_given and self.error <= 2.0 * self._error_of_nodes:
            remedy = "raise density.feature_nodes, or leave it out"
        return f"failed: {missed(self.what, self.error, 'density.tolerance', self.tolerance, remedy)}"

    def added(self, factor: int) -> bool:
        """Add a level; False if it failed and coarse ones may."""
        level = self.unfinished = self.new_level(self.plan, factor)
        try:
            level.run()
        except NarrowCellsError:
            raise
        except BlowUpError:
            if self.levels or factor >= self.forgiven:
                raise
            return False
        self.levels.append(level)
        return True

    def choose_nodes(self) -> None:
        """Take more nodes in u until still more of them change little."""
        for factor in self.node_factors:
            if self.work(self.plan, factor) > self.most_work and not self._lacks_pilot:
                return
            try:
                if self._nodes_suffice(factor):
                    return
            except NarrowCellsError:
                raise
            except BlowUpError:
                if factor == self.node_factors[-1]:
                    raise

    def _nodes_suffice(self, factor: int) -> bool:
        """Take more nodes while they pay on this level, and return whether the last change was small."""
        before, few = math.inf, None
        while True:
            more = self.with_more_nodes(self.plan)
            if few is None and (more is not None or self._lacks_pilot):
                few = self.pilot = self.piloted(self.plan, factor)
            if more is None or few is None:
                return True  # laws of the coordinates with finitely many values
            many = self.piloted(more, factor)
            changed = np.abs(few.judged - many.judged)
            self.node_error = 2.0 * changed  # the many are not exact
            change = self.size(changed, many.judged)
            self._error_of_nodes = 2.0 * change
            if change <= self.node_share * self.tolerance or self.nodes_given:
                return True
            if change > self.node_fall * before:
                return False
            if self.work(more, self.factors[2]) > self.most_work:
                return True
            self.plan, self.pilot, few, before = more, many, many, change

    @property
    def _lacks_pilot(self) -> bool:
        return self.needs_pilot and self.pilot is None

    def piloted(self, plan: P, factor: int) -> L:
        """Level whose densities are not needed."""
        level = self.new_level(plan, factor)
        if plan is self.plan:
            self.unfinished = level
        level.run()
        self.unfinished = None
        level.forget_densities()
        return level
