"""Averages of a rule that are as accurate as a density needs them along its own path, and observables there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar, cast

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.order_parameters.equations import Choices, Equations, Place, Rules
from meanfield.families.update_rule.order_parameters.errors import chosen_rule
from meanfield.families.update_rule.order_parameters.trajectory import places_along
from meanfield.typing import FloatArray

E = TypeVar("E", bound=Equations)
T = TypeVar("T")

INSTEAD = "take particles, or order_parameters under a linear prior"


class By(NamedTuple, Generic[E]):
    """Equations, and rules of quadrature for their averages."""

    equations: E
    rules: Rules


def along_its_path(
    equations: E, share: float, solve: Callable[[By[E], By[E]], tuple[T, FloatArray]]
) -> tuple[By[E], T]:
    """Equations and rules of quadrature that a solution needs along its path, and the solution.

    Parameters
    ----------
    equations : Equations
        With as few nodes of hidden variables as there may be.
    share : float
        Error of averages, relative to their size.
    solve : callable
        From equations and rules, and from coarser ones, to a solution and its packed states at output times, shape
        (outputs, numbers).

    Raises
    ------
    InputError
        If averages do not exist, or take random points.
    """
    equations, choices = resolved(equations, [(0.0, equations.start)], share, {})
    while True:
        by = By(equations, equations.rules(choices, chosen_rule))
        fewer = cast(E, equations.with_fewer_hidden_nodes())
        found, path = solve(by, By(fewer, fewer.rules(choices, lambda choice: choice.coarser)))
        finer, choices = resolved(equations, list(places_along(equations, path)), share, choices)
        if finer is equations and equations.rules(choices, chosen_rule).levels == by.rules.levels:
            return by, found
        equations = finer


def resolved(equations: E, places: Sequence[Place], share: float, known: Choices) -> tuple[E, Choices]:
    """Nodes of hidden variables and rules of quadrature that averages need at some places, no coarser ones than known.

    Raises
    ------
    InputError
        If averages do not exist, or take random points.
    """
    choices = equations.choose(places, share, known)
    if any(choice.rule.kind == "random" for choice in choices.values()):
        raise InputError(
            "model.rule: its averages take random points, whose errors the density does not follow; let the rule read "
            f"fewer numbers, or {INSTEAD}"
        )
    finer = cast(E, equations.with_enough_hidden_nodes(places, choices, share))
    return (finer if finer.hidden_nodes > equations.hidden_nodes else equations), choices


def observed(
    by: By[E], overlaps: FloatArray, errors: FloatArray | None, packed: Callable[[FloatArray], FloatArray]
) -> dict[str, FloatArray]:
    """Observables, and what the errors of overlaps change in them; nothing where none are measured.

    Parameters
    ----------
    by : By
    overlaps, errors : ndarray, shape (outputs, numbers)
    packed : callable
        From overlaps at a time to a packed state.
    """
    equations, rules = by
    if not equations.problem.measured:
        return {}

    def at(overlaps: FloatArray) -> FloatArray:
        values = np.full((len(overlaps), len(equations.problem.measured)), np.nan)
        for row in np.flatnonzero(np.isfinite(overlaps).all(axis=1)):
            values[row] = equations.measured(rules, float(equations.times[row]), packed(overlaps[row]))
        return values

    values = at(overlaps)
    if errors is None:
        return {"observables": values}
    moved = [at(overlaps + np.where(np.arange(overlaps.shape[1]) == k, errors, 0.0)) for k in range(overlaps.shape[1])]
    return {"observables": values, "observables_error": np.abs(np.array(moved) - values).sum(axis=0)}
