"""What a list of stationary states lacks, as the indices of states show it, and in words.

The index of a state is the sign of det(-dF/dx). Where the norm is kept F points inwards on the sphere (see `search`),
so that by Poincare and Hopf the indices add up to 1; along a line they alternate, from +1 to +1. Where some overlaps
have no density of the norm, it condenses, and what attracts there is no density that could be listed. The indices of
states with a free norm need not add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.search import index_of, probes
from meanfield.mckean_vlasov.stationary.states import StationaryBranches, StationaryState
from meanfield.mckean_vlasov.stationary.unknowns import closure_at, overlap_at, starts
from meanfield.typing import FloatArray

PLACES = 15
"""Number of places at which a density with a free norm is looked for: five overlaps of each norm."""


class Missing(NamedTuple):
    """Gap in a list of states, as their indices show it.

    Parameters
    ----------
    where : str
        The states between which it is missing, in words.
    attracts : bool
        Whether it attracts, as between two unstable states; else it is a border, as between two that attract.
    empty : ndarray, shape (d1,), optional
        The overlap there nearest to 0 that has no density of the norm, of some that are tried.
    """

    where: str
    attracts: bool
    empty: FloatArray | None


def missing_states(
    equations: StationaryEquations, overlaps: Sequence[FloatArray], indices: Sequence[float]
) -> list[Missing]:
    """Gaps among states of a norm that is kept, in the order of their overlaps; none where an index is not known.

    Where variances differ there are other unknowns besides overlaps, and no gaps are known.

    Parameters
    ----------
    overlaps : sequence of ndarray, shape (d1,)
        Those of all states in units of sqrt E[w^2], in order.
    indices : sequence of float
        Their indices.
    """
    limit = equations.limit
    if limit.free_norm or limit.spectrum is not None or not overlaps or not all(abs(index) == 1 for index in indices):
        return []
    if len(overlaps[0]) > 1:
        total = sum(indices)
        where = f"among the states, whose indices add up to {total:.0f}, not to 1"
        overlaps_tried = np.array(probes(len(limit.coordinates)))
        return [] if total == 1 else [Missing(where, total < 1, _empty(equations, overlaps_tried))]
    places = [-1.0, *(float(x[0]) for x in overlaps), 1.0]
    ends = pairwise(zip(places, [-1.0, *indices, -1.0], strict=True))  # F points inwards
    return [_between(equations, one[0], other[0], one[1]) for one, other in ends if one[1] == other[1]]


def warning_of_branches(
    branches: StationaryBranches,
    key: str,
    ends: tuple[float, float],
    parameter: FloatArray,
    overlaps: FloatArray,
    why_none: Callable[[float], str],
) -> str:
    """Sentences about what branches may lack, and what they lack at both ends of the range of a number.

    Parameters
    ----------
    key : str
        Key of the number.
    parameter, overlaps : ndarray, shapes (points,) and (points, d1)
        Points of all branches.
    why_none : callable
        As for `what_is_missing`, at a value of the number.
    """
    said = []
    for end in ends:
        there = branches.at(end)
        missing = _missing_at(there, overlaps[parameter == end])
        lacking = what_is_missing(there, missing, partial(why_none, end))
        said.append(f"at {key} = {end:g} {lacking}" if lacking else "")
    return "; ".join(filter(None, [branches.effort.warning, *said]))


def _missing_at(equations: StationaryEquations, points: FloatArray) -> list[Missing]:
    """Gaps among states of branches at one value of the parameter, by their overlaps, shape (points, d1)."""
    if equations.limit.free_norm or equations.limit.spectrum is not None:
        return []
    places = points / math.sqrt(equations.limit.initial_norm)
    # Two branches come to one state where five digits of the overlaps agree.
    found = list(places[np.unique(np.round(places, 5), axis=0, return_index=True)[1]])
    return missing_states(equations, found, [index_of(equations, x) for x in found])


def _between(equations: StationaryEquations, start: float, stop: float, index: float) -> Missing:
    """Gaps on a line, between neighbours with one index."""
    inside = np.linspace(start, stop, 11)[1:-1]  # nine overlaps between two states
    inside[np.argmin(np.abs(inside))] *= abs(inside).min() > 1e-9  # exactly 0, of which more can be said
    low, high = (overlap_at(equations.limit, np.array([x]))[0] for x in (start, stop))
    return Missing(f"between q = {low:.4g} and {high:.4g}", index < 0, _empty(equations, inside[:, None]))


def _empty(equations: StationaryEquations, overlaps: FloatArray) -> FloatArray | None:
    """The first of some overlaps, from 0 outwards, that has no density of the norm."""
    outwards = overlaps[np.argsort(np.linalg.norm(overlaps, axis=1))]
    return next((overlap_at(equations.limit, x) for x in outwards if equations.state(x) is None), None)


def what_is_missing(equations: StationaryEquations, missing: Sequence[Missing], why_none: Callable[[], str]) -> str:
    """Sentences about what a list of states lacks; empty if that is nothing.

    Parameters
    ----------
    why_none : callable
        Gives a clause that says why there is no density of the norm at q = 0.
    """
    return "; ".join(_sentence(each, f"{equations.limit.initial_norm:g}", why_none) for each in missing)


def _sentence(missing: Missing, norm: str, why_none: Callable[[], str]) -> str:
    what = "a state that attracts" if missing.attracts else "a border between states that attract"
    start = f"{what} is missing {missing.where}"
    if missing.empty is None:
        return f"{start}: the search did not find it; see where a long run of the density that starts there goes"
    if missing.empty.any():
        place = ", ".join(f"{x:.3g}" for x in missing.empty)
        return f"{start}: at q = {place} no density has the norm {norm}; there the norm condenses, which is no state"
    return f"{start}: no density has the norm {norm} at q = 0, where {why_none()}"


def frozen_words(states: Sequence[StationaryState]) -> str:
    """Sentence about weights that hardly cross between wells, empty where they do.

    A density of the norm that is log-concave relaxes at a rate of order Lambda/(2 E[w^2]) or faster; wells make it
    slower.
    """
    numbers = [(float(each.variables["relaxation_rate"]), each.coefficients.diffusion / each.norm) for each in states]
    # A density whose rate is below 1e-3 of Lambda/2 rests between wells for longer than any run.
    slow = [rate for rate, diffusion in numbers if rate < 1e-3 * 0.5 * diffusion]
    if not slow:
        return ""
    return (
        f"weights take up to {1.0 / max(min(slow), 1e-300):.1g} units of time (1/relaxation_rate) to cross between "
        "wells: until then densities and SGD rest frozen, with other shares of the weights in the wells and at other "
        "overlaps, which are no stationary states and not in the list"
    )


def why_no_density(equations: StationaryEquations) -> str:
    """Clause that says why no density was found, by some places where one was looked for."""
    limit = equations.limit
    tried = [x for x, _ in zip(starts(limit), range(PLACES), strict=False)]
    if any(equations.state(x) is not None for x in tried):
        own = "overlaps and norm" if limit.free_norm else "overlaps"
        return f"densities can be normalised, but none of them has its own {own}; look where a long run goes"
    if not any(closure_at(limit, x)[limit.overlaps] > 0.0 for x in tried):
        return "there is no noise, Lambda = 0"
    if not limit.free_norm:
        return (
            f"no density has the norm {limit.initial_norm:g} at any of {PLACES} overlaps that were tried: the prior "
            "outweighs the noise, and the norm escapes to ever fewer and larger weights; lower prior.strength"
        )
    return (
        f"no density can be normalised at any of {PLACES} overlaps and norms that were tried: the rule lets weights "
        "grow, or pushes them, more than the prior holds them far out, and E[w^2] grows for ever; take a prior that "
        "holds all weights, such as l2, or a constraint that keeps the norm"
    )
