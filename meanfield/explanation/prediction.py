"""Prediction of the cost of a method: whether it applies, its time and memory, and the size of its file.

Times are those of parts of the work, measured in processor time once their compiled code is loaded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from meanfield.errors import InputError
from meanfield.numerics.remembering import remembered
from meanfield.problems.base import Problem
from meanfield.problems.family import Method, resolve
from meanfield.problems.known_families import family_of
from meanfield.problems.phases import Piece, pieces_of
from meanfield.process.cores import one_thread
from meanfield.process.progress import counted

START = 3.0
"""Seconds in which a fresh process imports its packages and loads its compiled code."""

HEADER = 25_000
"""Number of bytes of a file besides its numbers: 16,000 with 6 variables, 33,000 with 30."""

P = TypeVar("P", bound=Problem)
T = TypeVar("T")

Maker = Callable[[Callable[[Any], Any]], Any]

_SHARED: ContextVar[tuple[Problem | None, Maker | None]] = ContextVar("_SHARED", default=(None, None))
"""The problem that is predicted, and what has each of its functions make something of it once."""


@dataclass(frozen=True)
class Prediction:
    """Predicted cost and result of one method.

    Parameters
    ----------
    method : str
        Name of the method in words.
    reason : str
        Reason why the method does not apply, with the remedy; empty where it does.
    seconds : float
        Time of the command in a fresh process on idle cores: start, method, and result. The first run of an
        installation compiles besides.
    memory : float
        Bytes at the peak, besides what Python and its packages take.
    file : float
        Bytes of the result.
    contents : str
        Variables and sizes of the result.
    warning : str
        Warning that the run fails, or will miss its accuracy, with a remedy.
    """

    method: str
    reason: str = ""
    seconds: float = math.nan
    memory: float = math.nan
    file: float = math.nan
    contents: str = ""
    warning: str = ""

    @property
    def applies(self) -> bool:
        """Whether the method applies to the problem."""
        return not self.reason


def prediction_of(method: str, seconds: float, kept: float, saved: float, contents: str) -> Prediction:
    """Prediction from the doubles that are kept in memory at once, and from those that are saved."""
    return Prediction(method, "", seconds, 8.0 * kept, 8.0 * saved + HEADER, contents)


def predictions(problem: Problem) -> list[Prediction]:
    """Predictions for all methods that can be predicted, each from its work and the rate of its kernels."""
    methods = [method for method in family_of(problem).methods.values() if method.cost]
    pieces = [(piece, _maker(piece.problem)) for piece in pieces_of(problem)]
    # Threads of linear algebra that wait for one another take processor time, which is what trials measure.
    with one_thread():
        return [_prediction(method, problem, pieces) for method in counted(methods, "predicted costs", "method")]


def _maker(problem: Problem) -> Maker:
    """What has each of its functions make something of a problem once."""

    @remembered(16)
    def made(make: Callable[[Any], Any]) -> Any:
        return make(problem)

    return made


def shared(make: Callable[[P], T], problem: P) -> T:
    """What several predictions of one explanation need, made once for all of them.

    Parameters
    ----------
    make : callable
        Function of the problem.
    problem : Problem
        The one that is explained.

    Raises
    ------
    InputError
        If `make` does, or did.
    """
    explained, made = _SHARED.get()
    found: T = made(make) if made is not None and problem is explained else make(problem)
    return found


def _prediction(method: Method, problem: Problem, pieces: Sequence[tuple[Piece[Problem], Maker]]) -> Prediction:
    """Prediction of a method, which takes of the time of each phase alone the share that the phase has of the run."""
    try:
        method.check_schedules(problem)
        if method.check:
            resolve(method.check)(problem)
        found = [_of_a_phase(method, piece.problem, made) for piece, made in pieces]
    except InputError as error:
        return Prediction(method.title, reason=str(error))
    stop = pieces[-1][0].stop
    shares = [(piece.stop - piece.start) / stop for piece, _ in pieces] if len(pieces) > 1 else [1.0]
    # a megabyte besides the arrays of a method
    return replace(
        found[0],
        seconds=sum(share * each.seconds for share, each in zip(shares, found, strict=True)) + START,
        memory=max(each.memory for each in found) + 1e6,
        file=max(each.file for each in found),
        warning=next((each.warning for each in found if each.warning), ""),
    )


def _of_a_phase(method: Method, problem: Problem, made: Maker) -> Prediction:
    """Prediction of a method for a problem without phases, which shares what is made of it with other methods."""
    token = _SHARED.set((problem, made))
    try:
        found: Prediction = resolve(method.cost)(problem)
        return found
    finally:
        _SHARED.reset(token)


ROUND, LONG = 0.005, 0.03
"""Processor seconds that a measurement takes about, and those of a call that is measured once."""


def seconds_of(work: Callable[[], object]) -> float:
    """Processor seconds of one call; the first is not timed, because it may compile or load."""
    work()
    first = _mean(work)
    return first if first > LONG else min(first, _mean(work))  # what disturbs a short one is seldom there twice


def _mean(work: Callable[[], object]) -> float:
    started, count = time.process_time(), 0
    while (spent := time.process_time() - started) < ROUND:
        work()
        count += 1
    return spent / count
