"""Kinks that the author of a prior forgot to name: jumps and corners of the force, found by bisection.

Intervals are halved, and of both halves the one is kept in which the force, or its slope, changes more. Where the
change shrinks with the interval the function is smooth, however steep. Found are jumps and corners between -6 and 6, of
more than `LEAST_JUMP` or `LEAST_CORNER` of the largest force and slope there, one in each interval of length 0.01.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from meanfield.ingredients.priors import Prior
from meanfield.numerics.compiled.scalar_functions import ScalarFunction, evaluate
from meanfield.typing import FloatArray

INTERVAL_ENDS = np.linspace(-6.0, 6.0, 1201) + 0.00123
"""Ends of the intervals, at which people put no kinks."""

JUMP_HALVINGS, CORNER_HALVINGS = 34, 20
"""Times that an interval is halved, to 6e-13 and 1e-8."""

COMPARED, SHRINKS = 7, 0.5
"""Last halvings over which changes are compared, and what is left of those of smooth functions, at most: 2^-7 if the
intervals are short enough."""

LEAST_JUMP, LEAST_CORNER = 1e-6, 1e-4
"""Changes that count, relative to the largest force, and slope or force; slopes are rounded to some 1e-7."""

KINK_DISTANCE = 1e-6
"""Distance of kinks below which they are one."""

MOST_LISTED = 3
"""Kinks that a message describes one by one."""


class Kink(NamedTuple):
    """Jump of a function at w, from one value to another."""

    place: float
    before: float
    after: float


def unnamed_kinks(prior: Prior) -> tuple[list[Kink], list[Kink]]:
    """Jumps of the force of a prior and of its slope, that are not among its kinks.

    Returns
    -------
    jumps, corners : list of Kink
        In ascending order; corners with the slopes on both sides.
    """
    with np.errstate(all="ignore"):  # what is not finite is none
        largest = np.abs(prior.forces(INTERVAL_ENDS)).max()
        jumps = _jumps(prior.forces, prior.kinks, JUMP_HALVINGS, LEAST_JUMP * largest)
        slope = partial(_slope, prior.unit_force)
        steepest = max(largest, np.abs(slope(INTERVAL_ENDS)).max())
        known = (*prior.kinks, *(jump.place for jump in jumps))
        return jumps, _jumps(slope, known, CORNER_HALVINGS, LEAST_CORNER * steepest)


def _slope(function: ScalarFunction, w: FloatArray) -> FloatArray:
    # Less than the last intervals, and far more than the rounding of w.
    low, high = w - 1e-9, w + 1e-9
    return (evaluate(function, high) - evaluate(function, low)) / (high - low)


def _jumps(
    function: Callable[[FloatArray], FloatArray], known: tuple[float, ...], halvings: int, least: float
) -> list[Kink]:
    """Jumps of more than `least`, away from those that are known."""
    ends = np.sort([*INTERVAL_ENDS, *(kink + side * KINK_DISTANCE for kink in known for side in (-1.0, 1.0))])
    low, high = ends[:-1], ends[1:]
    away = np.array([all(abs(middle - kink) > KINK_DISTANCE for kink in known) for middle in 0.5 * (low + high)])
    low, high = low[away], high[away]
    before, after = function(low), function(high)
    for halving in range(halvings):
        if halving == halvings - COMPARED:
            change = np.abs(after - before)
        middle = 0.5 * (low + high)
        value = function(middle)
        left = np.abs(value - before) >= np.abs(after - value)
        low, before = np.where(left, low, middle), np.where(left, before, value)
        high, after = np.where(left, middle, high), np.where(left, value, after)
    last = np.abs(after - before)
    found = np.flatnonzero((last > least) & (last > SHRINKS * change))
    return [Kink(*each) for each in zip(0.5 * (low + high)[found], before[found], after[found], strict=True)]


def kinks_to_name(name: str, prior: Prior) -> str:
    """Fault of a prior whose force has kinks that it does not name, with the remedy; empty without a fault.

    Parameters
    ----------
    name : str
        Address of the prior in the problem file.
    """
    jumps, corners = unnamed_kinks(prior)
    said = [f"jumps from {each.before:.4g} to {each.after:.4g} at w = {_number(each.place)}" for each in jumps]
    said += [f"bends at w = {_number(each.place)}" for each in corners]
    if not said:
        return ""
    others = f", and has {len(said) - MOST_LISTED} more kinks" if len(said) > MOST_LISTED else ""
    places = sorted([*prior.kinks, *(each.place for each in (*jumps, *corners))])
    kinks = ", ".join(map(_number, places)) + "," * (len(places) == 1)
    return (
        f"prior.name = '{name}': its force {', '.join(said[:MOST_LISTED])}{others}, which it does not name; make it "
        f"meanfield.Prior(force, kinks=({kinks}))"
    )


def _number(place: float) -> str:
    """Place of a kink, up to the length of the last intervals."""
    return f"{round(place, 7) + 0.0:.8g}"
