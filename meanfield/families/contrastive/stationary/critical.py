"""Critical values of a number of the problem, at which learnability from no information changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from meanfield.arguments import as_number, wrong
from meanfield.errors import InputError
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.stationary.branches import OF_THE_LIMIT
from meanfield.families.contrastive.stationary.uninformed import learning_margin
from meanfield.ingredients.part import with_unchecked
from meanfield.problems.base import check_problem
from meanfield.problems.problem_keys import value_of, with_value
from meanfield.process.progress import counted_calls
from meanfield.typing import FloatArray

BATCH_SIZE = "model.batch_size"
"""Key of the one whole number on which the limit depends; it enters through tau/m and 1/m, which make sense for any m
>= 1."""

CROSSING_MARGIN = 1e-9
"""Relative distance from a crossing below which a whole number counts as lying on it."""


@dataclass(frozen=True)
class CriticalValues:
    """Values of a number of the problem at which learnability changes.

    Parameters
    ----------
    values : ndarray, shape (crossings,)
        Where the largest growth rate at q = 0 changes sign, increasing.
    learnable : tuple of (float, float)
        The parts of the range in which it is positive.
    """

    values: FloatArray
    learnable: tuple[tuple[float, float], ...]

    @property
    def whole_numbers(self) -> tuple[tuple[int, int], ...]:
        """First and last whole number in each of these parts, for instance batch sizes; on a crossing nothing grows."""
        pairs = []
        for low, high in self.learnable:
            inside_low = low * (1 + CROSSING_MARGIN) if low in self.values else low
            inside_high = high * (1 - CROSSING_MARGIN) if high in self.values else high
            pairs.append((math.ceil(inside_low), math.floor(inside_high)))
        return tuple((first, last) for first, last in pairs if first <= last)


def critical_values(problem: Problem, key: str | Sequence[str], low: float, high: float) -> CriticalValues:
    """All values of a number between `low` and `high` at which q = 0 gains or loses its stability.

    Parameters
    ----------
    problem : Problem
        With any prior; with one to three features if it is not linear. The start does not matter.
    key : str or sequence of str
        What is varied, such as `model.learning_rate` or `features[0].hidden.second_moment`; several keys take the same
        value, such as `augmentation.variance[0]` and `augmentation.variance[1]`. `model.batch_size` counts as a real
        number.
    low, high : float
        The range.

    Raises
    ------
    InputError
        If there is no such key, it takes whole numbers only or does not matter to the limit, a value is not allowed, or
        q = 0 is not stationary at a value.

    Notes
    -----
    Source: theory.md, section 7, and `meanfield.families.contrastive.stationary.uninformed`. The growth rate of
    `learning_margin` is looked at in 33 places; crossings that are closer than that and do not even bend the rate are
    missed.
    """
    check_problem(problem, Problem)
    keys = (key,) if isinstance(key, str) or not isinstance(key, Sequence) else tuple(key)
    _check(problem, keys, low, high)

    def margin(value: float) -> float:
        changed = problem
        for one in keys:
            changed = _with_real_value(changed, one, value)
        return learning_margin(changed)

    spread = np.geomspace if low > 0 and high > 10.0 * low else np.linspace
    with counted_calls("critical values") as counting:
        # Between neighbouring ones of 33 values two crossings show as a dip towards 0.
        values = _crossings(counting(margin), spread(low, high, 33))
    ends = [low, *values.tolist(), high]
    grows = [margin(0.5 * (a + b)) > 0 for a, b in pairwise(ends)]
    return CriticalValues(values, tuple(part for part, grown in zip(pairwise(ends), grows, strict=True) if grown))


def _check(problem: Problem, keys: Sequence[str], low: float, high: float) -> None:
    if not keys:
        raise wrong("key", keys, "give a key, such as 'model.learning_rate', or several")
    for key in keys:
        value = value_of(problem, key)
        part = key.replace("[", ".").split(".")[0]
        if part not in OF_THE_LIMIT or key.endswith("initial_overlap"):
            raise InputError(f"'{key}': learnability does not depend on it; vary a number of {', '.join(OF_THE_LIMIT)}")
        if isinstance(value, int) and key != BATCH_SIZE:
            raise InputError(f"'{key}' = {value} takes whole numbers only; give a key of a real number")
    for name, end in (("low", low), ("high", high)):
        as_number(end, name, "give a number, one end of the range")
    if not low < high:
        raise InputError(f"from {low:g} to {high:g}: give a range that increases")
    for end in (low, high):
        for key in keys:
            _with_real_value(problem, key, end)


def _with_real_value(problem: Problem, key: str, value: float) -> Problem:
    """Copy of the problem with another value, which may be any real number for the batch size."""
    if key != BATCH_SIZE:
        return with_value(problem, key, value)
    with_value(problem, key, math.floor(value))  # refuses sizes that no batch has
    return with_unchecked(problem, model=with_unchecked(problem.model, batch_size=value))


def _crossings(margin: Callable[[float], float], looks: FloatArray) -> FloatArray:
    """Roots of the margin, from its values at increasing places and its dips towards 0 between them."""
    values = np.array([margin(x) for x in looks])
    sign = np.where(values > 0, 1.0, -1.0)
    cuts = list(zip(looks.tolist(), values.tolist(), strict=True))
    for i in range(1, len(looks) - 1):
        sides = sign[i] * values[[i - 1, i + 1]]
        if sign[i - 1] == sign[i] == sign[i + 1] and abs(values[i]) <= sides.min():
            dip = minimize_scalar(
                lambda x, s=sign[i]: s * margin(x), bounds=(looks[i - 1], looks[i + 1]), method="bounded"
            )
            if dip.fun < 0:
                cuts.append((float(dip.x), float(sign[i] * dip.fun)))
    cuts.sort()
    return np.array(
        [brentq(margin, a, b, rtol=1e-12) for (a, at_a), (b, at_b) in pairwise(cuts) if (at_a > 0) != (at_b > 0)]
    )
