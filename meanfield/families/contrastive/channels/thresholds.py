"""Strengths of the penalty at which channels stop being alike, features mix in them, and nothing is learnt.

Two channels with w_1 = w_2 stay alike. They part if noise or a feature pushes them away from each other: at the rates

    d(1 - M12)/dt = kappa (1 - M12),   d(q_f1 - q_f2)/dt = omega_f (q_f1 - q_f2)

about the state in which both have learnt one feature. The state in which each has a feature of its own turns into
mixtures where its largest growth rate passes 0. Rates are differences of the vector field of q and M.
Source: several_channels.md, section 6.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, root

from meanfield.arguments import as_whole
from meanfield.errors import InputError
from meanfield.families.contrastive.channels.states.field import SmoothField, differences
from meanfield.families.contrastive.problem import Problem
from meanfield.problems.base import check_problem
from meanfield.problems.problem_keys import with_value
from meanfield.process.progress import counted_calls
from meanfield.typing import FloatArray

GRID = np.concatenate([1.0 - np.geomspace(1e-7, 1e-4, 7), np.sin(np.linspace(0.5 * np.pi, 0.05, 60))[1:]])
"""Overlaps, from large to small, between which a collapsed state is looked for; with large batches it is close to 1."""

DIFFERENCE_STEP = 1e-4
"""Length of differences relative to what is left of a channel beside its feature; their error is its square."""

AT_REST = 1e-9
"""Largest rate of a stationary state, in units of the learning rate."""


class CollapsedState(NamedTuple):
    """State of two channels that have learnt the same feature.

    Parameters
    ----------
    overlap : float
        Overlap of both with the feature.
    noise_rate : float
        kappa.
    feature_rates : ndarray, shape (d1,)
        omega_f; NaN for the feature that they have learnt.
    """

    overlap: float
    noise_rate: float
    feature_rates: FloatArray

    @property
    def fastest(self) -> float:
        """The largest rate, positive where the channels part."""
        return float(np.nanmax([self.noise_rate, *self.feature_rates]))


def uninformed_rates(problem: Problem) -> FloatArray:
    """Growth rates of small overlaps of orthogonal channels that have learnt nothing, shape (d1, d2).

    Parameters
    ----------
    problem : Problem
        With several channels and hidden variables of mean 0 that are independent.

    Raises
    ------
    InputError
        If there is no closure of the problem, or its averages take random batches.
    """
    check_problem(problem, Problem)
    field = SmoothField(problem)
    at = np.zeros(field.unknowns)
    return np.array([_own_rate(field, at, i) for i in range(field.features * field.channels)]).reshape(
        field.features, field.channels
    )


def conditional_rates(problem: Problem) -> FloatArray:
    """Growth rates of small overlaps of a channel that has learnt nothing while another one has learnt a feature.

    Parameters
    ----------
    problem : Problem
        With several channels and hidden variables of mean 0 that are independent.

    Returns
    -------
    ndarray, shape (d1, d1)
        Of the feature of the row, while the other channel rests on the feature of the column. NaN on the diagonal,
        where the overlap of the two channels grows along with it, and in columns of features on which no channel rests.

    Raises
    ------
    InputError
        If there is no closure of the problem, or its averages take random batches.
    """
    check_problem(problem, Problem)
    field = SmoothField(problem)
    rates = np.full((field.features, field.features), np.nan)
    for learnt in range(field.features):
        alone = np.eye(field.unknowns)[learnt * field.channels]
        x = _largest_rest(partial(_rate_along, field, alone))
        if x is not None:
            others = [f for f in range(field.features) if f != learnt]
            rates[others, learnt] = [_own_rate(field, x * alone, f * field.channels + 1) for f in others]
    return rates


def _rate_along(field: SmoothField, direction: FloatArray, x: float) -> float:
    """Velocity along a direction at a distance x from nothing learnt."""
    return float(direction @ field(x * direction))


def _own_rate(field: SmoothField, at: FloatArray, i: int) -> float:
    """Growth rate of one overlap by itself."""
    unit = np.eye(len(at))[i]
    rate = differences(lambda s: field(at + s * unit)[i : i + 1], np.zeros(1), field.room(at))
    return float(rate[0, 0])


def _largest_rest(rate: Callable[[float], float]) -> float | None:
    """The largest overlap at which a rate passes 0 from above; None if there is none."""
    speeds = np.array([rate(x) for x in GRID])
    stable = np.flatnonzero((speeds[:-1] < 0) & (speeds[1:] >= 0))
    return float(brentq(rate, GRID[stable[0] + 1], GRID[stable[0]], xtol=1e-15)) if len(stable) else None


def collapsed_state(problem: Problem, feature: int = 0) -> CollapsedState | None:
    """State in which two channels have learnt the same feature and nothing else; None if there is none.

    Parameters
    ----------
    problem : Problem
        With two channels.
    feature : int
        Its number, from 0.

    Raises
    ------
    InputError
        If there are not two channels, no such feature, or averages take random batches.
    """
    field = _field_of_two(problem)
    d1 = len(problem.features)
    as_whole(feature, "feature", f"must be 0 to {d1 - 1}", least=0, most=d1 - 1)

    def state(x: float) -> FloatArray:
        q = np.zeros((d1, 2))
        q[feature] = x
        return field.packed(q, np.ones((2, 2)))

    def rate(x: float) -> float:
        return float(field(state(x))[2 * feature])

    x = _largest_rest(rate)
    if x is None:
        return None
    at = state(x)
    rest = 1.0 - x * x
    apart = np.zeros(len(at))
    apart[-1] = -1.0
    near, far = (-field(at + h * apart)[-1] / h for h in (DIFFERENCE_STEP * rest, 2 * DIFFERENCE_STEP * rest))
    rates = np.full(d1, np.nan)
    for f in range(d1):
        if f != feature:
            h = DIFFERENCE_STEP * rest
            split = np.zeros(len(at))
            split[2 * f], split[2 * f + 1] = h, -h
            velocity = field(at + split) - field(at - split)
            rates[f] = (velocity[2 * f] - velocity[2 * f + 1]) / (4 * h)
    return CollapsedState(x, 2 * near - far, rates)


def collapse_threshold(problem: Problem, feature: int = 0) -> float:
    """Least strength lambda of the penalty at which two channels on one feature part; 0 if they do without a penalty.

    Parameters
    ----------
    problem : Problem
        With two channels and a penalty, whose strength does not matter.
    feature : int
        Number of the feature, from 0.

    Raises
    ------
    InputError
        If there is no penalty, no such state, averages take random batches, or no strength parts the channels.
    """

    def fastest(strength: float) -> float:
        found = collapsed_state(_with_strength(problem, strength), feature)
        return np.nan if found is None else found.fastest

    return _crossing(fastest, "the state in which both channels have learnt the feature")


def mixing_threshold(problem: Problem) -> float:
    """Least strength lambda of the penalty at which the state of a feature for each channel turns into mixtures.

    Parameters
    ----------
    problem : Problem
        With two channels, two features or more, and a penalty, whose strength does not matter.

    Raises
    ------
    InputError
        If there is no penalty, no such state, averages take random batches, or no strength mixes the features.
    """
    check_problem(problem, Problem)
    if len(problem.features) < 2:
        raise InputError("features: a single one, but each of two channels needs one of its own; add a feature")

    def fastest(strength: float) -> float:
        field = _field_of_two(_with_strength(problem, strength))
        q = np.zeros((len(problem.features), 2))
        q[0, 0] = q[1, 1] = 0.97
        found = root(field, field.packed(q, np.eye(2)), tol=1e-12)
        if not np.abs(field(found.x)).max() < AT_REST * problem.model.rate or abs(found.x[0]) < 0.5:
            return np.nan
        return float(np.linalg.eigvals(field.jacobian(found.x)).real.max())

    return _crossing(fastest, "the state in which each channel has learnt a feature of its own")


def learning_threshold(problem: Problem, feature: int = 0) -> float:
    """Least strength lambda of the penalty at which nothing drives channels towards a feature that none has learnt.

    The gain of small overlaps, their growth rate but for the noise, changes its sign there.

    Parameters
    ----------
    problem : Problem
        With several channels and a penalty, whose strength does not matter.
    feature : int
        Number of the feature, from 0.

    Raises
    ------
    InputError
        If there is no penalty, no such feature, averages take random batches, or no strength stops the gain.
    """

    def lack(strength: float) -> float:
        field = SmoothField(_with_strength(problem, strength))
        last = field.features - 1
        as_whole(feature, "feature", f"must be 0 to {last}", least=0, most=last)
        at = np.zeros(field.unknowns)
        noise = field.closure(*field.unpacked(at)).Lambda[0, 0]
        gain = _own_rate(field, at, feature * field.channels) + 0.5 * float(noise)
        return np.nan if strength == 0.0 and abs(gain) <= AT_REST * problem.model.rate else -gain

    return _crossing(lack, "a gain of small overlaps with the feature")


def _crossing(fastest: Callable[[float], float], what: str) -> float:
    """Strength at which the largest growth rate passes 0."""
    with counted_calls("threshold") as counting:
        return _searched(counting(fastest), what)


def _searched(fastest: Callable[[float], float], what: str) -> float:
    low = 0.0
    below = fastest(0.0)
    if np.isnan(below):
        raise InputError(
            f"decorrelation.strength: {what} does not exist without a penalty; raise the moments of features"
        )
    if below >= 0:
        return 0.0
    high = 1e-3  # strengths up to 1e3 are tried
    while high <= 1e3:
        above = fastest(high)
        if above > 0:
            return float(brentq(fastest, low, high, xtol=1e-14, rtol=1e-12))
        if np.isnan(above):
            break
        low, high = high, 2 * high
    raise InputError(
        f"decorrelation.strength: {what} lasts up to {low:.4g}, where the search ended; there is no threshold below"
    )


def _with_strength(problem: Problem, strength: float) -> Problem:
    check_problem(problem, Problem)
    if problem.decorrelation is None:
        raise InputError(
            "decorrelation: there is no penalty, whose strength could be varied; add a [decorrelation] table"
        )
    return with_value(problem, "decorrelation.strength", strength)


def _field_of_two(problem: Problem) -> SmoothField:
    check_problem(problem, Problem)
    if problem.model.channels != 2:
        raise InputError(
            f"model.channels = {problem.model.channels}: states of pairs of channels are known for 2; set it to 2"
        )
    return SmoothField(problem)
