"""Averages over a batch of several channels as they are at each time of a run with phases and schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.problem import FACTORS, Problem
from meanfield.ingredients.laws import CoordinateLaw
from meanfield.ingredients.priors import PriorSettings
from meanfield.mckean_vlasov.drive import reference_of
from meanfield.problems import in_time
from meanfield.problems.in_time import pieces_in_steps
from meanfield.problems.phases import Piece
from meanfield.typing import FloatArray


class ChannelStretch(NamedTuple):
    """Time between two corners, in which nothing jumps or bends.

    Parameters
    ----------
    start : float
        Its first time; an output time that is the same but for rounding.
    closure : ChannelClosure
        At the largest learning rate and strengths of its phase.
    problem : in_time.Stretch
        Its ends, and the problem at each of its times.
    """

    start: float
    closure: ChannelClosure
    problem: in_time.Stretch[Problem]

    def at(self, time: float) -> ChannelClosure:
        """Averages at a time, at both ends as they are inside."""
        return self.closure.at(self.problem.at(time))

    def pull_at(self, time: float) -> float:
        """Factor tau of the force of the prior of `closure` at a time, with its strength relative to that."""
        now, largest = self.problem.at(time), self.closure.problem.prior.strength
        return now.model.rate * (now.prior.strength / largest if largest else 1.0)

    def outputs(self, times: FloatArray) -> FloatArray:
        """Both ends, and those of some times that are in between."""
        return self.problem.outputs(times)


class ChannelsInTime:
    """Averages over a batch at each time of a run; those of a problem without phases and schedules are one closure.

    Parameters
    ----------
    problem : Problem
        Of several channels.

    Attributes
    ----------
    closures : list of ChannelClosure
        Of each phase, and from one jump of other numbers to the next, at its largest learning rate and strengths.

    Raises
    ------
    InputError
        If a phase has no closure; see `ChannelClosure`.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._in_time = in_time.InTime(problem)
        pieces = pieces_in_steps(problem, besides=FACTORS)
        self._begins = [piece.start for piece in pieces]
        self.closures = [_closure_of(piece) for piece in pieces]

    def at(self, time: float) -> ChannelClosure:
        """Averages at a time, from a corner on at corners."""
        return self.largest_at(time).at(self._in_time(time))

    def largest_at(self, time: float) -> ChannelClosure:
        """That of `closures` which is of a time."""
        return self.closures[bisect_right(self._begins, time) - 1]

    @property
    def coordinates(self) -> tuple[CoordinateLaw, ...]:
        """Laws of the feature coordinates."""
        return self.problem.coordinates

    @property
    def priors(self) -> tuple[PriorSettings, ...]:
        """Priors of all phases, at their largest strengths."""
        return tuple(closure.problem.prior for closure in self.closures)

    @property
    def corners(self) -> tuple[float, ...]:
        """Times within the run at which something jumps or bends, those of outputs where these differ by rounding."""
        corners, times = np.array(self._in_time.corners), self.problem.time.outputs_at
        outputs = self.problem.time.output_of(corners)
        return tuple(np.where(outputs < 0, corners, times[outputs]).tolist())

    @property
    def starts(self) -> tuple[float, ...]:
        """Times at which later ones of `closures` begin."""
        return tuple(stretch.start for stretch in self.stretches if stretch.problem.start in self._begins[1:])

    @property
    def stretches(self) -> list[ChannelStretch]:
        """Stretches from one corner to the next."""
        found = self._in_time.stretches(self.problem.time.stop)
        starts = (0.0, *self.corners)
        return [ChannelStretch(at, self.largest_at(each.start), each) for at, each in zip(starts, found, strict=True)]

    @property
    def at_random(self) -> bool:
        """Whether averages of a phase take random batches."""
        return any(closure.at_random for closure in self.closures)

    @property
    def runs(self) -> list[ChannelsInTime]:
        """The same averages by independent random batches; these averages alone where there is no chance."""
        count = max(len(closure.randomisations) for closure in self.closures)
        return [self._with(partial(_randomised, number)) for number in range(count)] or [self]

    @property
    def compared(self) -> ChannelsInTime | None:
        """Averages of the first run by other quadratures; None where all are accurate to rounding."""
        first = self.runs[0]
        others = any(closure.compared for closure in first.closures)
        return first._with(lambda closure: closure.compared or closure) if others else None

    def _with(self, chosen: Callable[[ChannelClosure], ChannelClosure]) -> ChannelsInTime:
        """Copy with other averages in each phase."""
        other = copy(self)
        other.closures = [chosen(closure) for closure in self.closures]
        return other


def _closure_of(piece: Piece[Problem]) -> ChannelClosure:
    """Averages of a stretch of time by what its extremes need: random batches, or the finest of quadratures."""
    frozen = reference_of(piece.problem, FACTORS)
    extremes = list({id(each): each for each in in_time.InTime(frozen).extremes(piece.stop).values()}.values())
    noisy = len({each.noise_covariance.tobytes() for each in extremes}) > 1
    closures = [ChannelClosure(each, noisy) for each in extremes]
    return max(closures, key=lambda closure: (closure.at_random, closure.nodes))


def _randomised(number: int, closure: ChannelClosure) -> ChannelClosure:
    """Randomisation of some averages; they themselves where there is no chance."""
    return closure.randomisations[number] if closure.randomisations else closure
