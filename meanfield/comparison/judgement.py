"""Judgement of a pair of results as data: the verdict, what decides it, and what chance allows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from meanfield.problems.variable import AGREES, CANNOT_TELL, DIFFERS
from meanfield.typing import FloatArray, IntArray

FALSE_ALARMS = 0.05
"""Share of comparisons of true pairs whose verdict is that they differ."""

FEWEST_RUNS = 4
"""Least number of runs that can agree: three scatter so little by chance that they hide differences of ten errors."""

MOST_PLACES = 4096
"""Largest number of times and components of a quantity that are rotated; of more, evenly spread ones are."""

EXACT_START_SCATTER = 1e-6
"""Largest scatter of runs and difference at the first time, relative to values above 1, of starts that are given
exactly: they are rounded where own loops run in single precision, and there is nothing to compare."""

SOLVER_ROUNDING = 1e-9
"""Largest difference, relative to the largest value, that needs no stated error to explain it."""

Why = Literal[
    "chance",
    "errors",
    "beyond",
    "start",
    "few",
    "few weights",
    "no scatter",
    "coarse",
    "imprecise",
    "unstated",
    "nothing",
]
"""What decides: `chance` or stated `errors` explain the difference; it is `beyond` them, or it would be if the two did
not `start` differently; there are too `few` runs, or too `few weights` in all of them; they have `no scatter` to judge
by, or one that hides everything (`coarse`); stated errors are as large as the difference that chance leaves
(`imprecise`); no error is stated where it would decide (`unstated`); `nothing` is held by both."""

WORDS = {"chance": AGREES, "errors": AGREES, "beyond": DIFFERS}
"""Verdicts by what decides; `CANNOT TELL` for the others."""


class Place(NamedTuple):
    """Where two results differ most, in units of what is allowed there.

    Parameters
    ----------
    name : str
        The compared quantity or distance.
    position : tuple of int
    deviation, allowed : float
        In standard errors of runs; differences as they are of predictions.
    """

    name: str
    position: tuple[int, ...]
    deviation: float
    allowed: float


@dataclass(frozen=True)
class Judgement:
    """Judgement of a pair of results.

    Parameters
    ----------
    why : str
    p_value : float
        NaN where there is no chance to compare with.
    worst : Place, optional
    scatters : float
        Largest difference from a prediction in units of the scatter of single runs.
    levels : dict of str to float
        Largest difference of each compared quantity that chance allows, in standard errors.
    resolution : dict of str to float
        Difference of each compared quantity that the test would have detected at any time.
    places : dict of str to tuple of ndarray
        Positions in each compared quantity that are judged.
    distances : dict of str to (tuple of ndarray, ndarray)
        Positions in each distance, and how many times as large chance and stated errors allow it to be there.
    scarce : tuple of str
        Distances that are not judged at all places, because there are too few weights.
    by_steps : Place, optional
        Where half a step explains most of a difference, if more than a standard error, which is `allowed`; see
        `meanfield.comparison.sides.within_half_a_step`.
    test : str
        What judges; see `meanfield.problems.variable.TESTS`.
    starts : str
        Why the two start differently, and what to change, in sentences, where that decides.
    """

    why: Why
    p_value: float = float("nan")
    worst: Place | None = None
    scatters: float = 0.0
    levels: dict[str, float] = field(default_factory=dict)
    resolution: dict[str, float] = field(default_factory=dict)
    places: dict[str, tuple[IntArray, ...]] = field(default_factory=dict)
    distances: dict[str, tuple[tuple[IntArray, ...], FloatArray]] = field(default_factory=dict)
    scarce: tuple[str, ...] = ()
    by_steps: Place | None = None
    test: str = "nothing"
    starts: str = ""

    @property
    def verdict(self) -> str:
        """AGREES, DIFFERS or CANNOT TELL."""
        return WORDS.get(self.why, CANNOT_TELL)


def decide(p_value: float, p_without_errors: float, runs: float, hidden: bool, few_weights: bool = False) -> Why:
    """What decides a comparison with runs.

    Parameters
    ----------
    p_value, p_without_errors : float
        Of the difference beyond the stated errors of predictions, and of all of it.
    runs : float
        Number of runs that the scatter is known from.
    hidden : bool
        Whether chance allows differences as large as the quantities themselves.
    few_weights : bool
        Whether averages over the weights of all runs are no Gaussian numbers.
    """
    if p_value <= FALSE_ALARMS:
        return "few weights" if few_weights else "beyond"
    if runs < FEWEST_RUNS:
        return "few"
    if hidden:
        return "coarse"
    return "imprecise" if p_without_errors <= FALSE_ALARMS else "chance"
