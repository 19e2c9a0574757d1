"""Closures that change smoothly in time: those of some times, between which g and Lambda are interpolated.

What a rate or a strength changes are factors (`meanfield.mckean_vlasov.drive`). Other numbers, such as a variance of
noise, change g(q) and Lambda(q) as functions. Between corners these are analytic in time, and few Chebyshev nodes do:

    g(t, q) = sum_j l_j(t) g_j(q),    l_j the Lagrange polynomials of the nodes.

The time is on a clock that a closure shares with its drive, which sets it wherever it fills in the numbers of a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.mckean_vlasov.closures import NO_TABLE, ClosureFunction, called_values, register_closure, tabulated_rows
from meanfield.numerics.piecewise import Table, interpolate, panel_of
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

RESOLVED = 1e-9
"""Largest error of g and Lambda between nodes, relative to their largest values: a tenth of that of overlaps."""

DIFFERENCE = 1e-6
"""Step of the differences that give slopes in time, relative to the stretch."""


def nodes_in_time(
    values: Callable[[float], FloatArray], low: float, high: float, most: int
) -> list[tuple[float, FloatArray]]:
    """Stretches of time by their starts, with the nodes of each; a single node where nothing changes.

    Parameters
    ----------
    values : callable
        Function of time, smooth from `low` to `high`, to values in rows that are each resolved to its largest one.
    most : int
        Largest number of stretches.

    Raises
    ------
    InputError
        If these do not resolve the function.
    """
    found: list[tuple[float, FloatArray]] = []
    left = [(low, high)]
    while left:
        start, stop = left.pop()
        nodes = _nodes_between(values, start, stop)
        if nodes is not None:
            found.append((start, nodes))
        elif len(found) + len(left) + 2 > most:
            raise InputError(
                f"numbers that change between t = {start:.6g} and {stop:.6g}: g and Lambda are not smooth there; name "
                "the times at which a schedule jumps or bends, or begin with a value above 0"
            )
        else:
            middle = 0.5 * (start + stop)
            left += [(middle, stop), (start, middle)]
    return found


def _nodes_between(values: Callable[[float], FloatArray], low: float, high: float) -> FloatArray | None:
    """Nodes that resolve a function, or None where these would be too many."""
    known: dict[float, FloatArray] = {}

    def at(times: FloatArray) -> FloatArray:
        for t in times.tolist():
            if t not in known:
                known[t] = values(t)
        return np.array([known[t] for t in times.tolist()])

    for intervals in (2, 4, 8, 16):  # numbers of intervals that are tried before the stretch is halved
        nodes, finer = _chebyshev(intervals, low, high), _chebyshev(2 * intervals, low, high)
        given, right = at(nodes), at(finer)
        if np.all(right == right[0]):
            return nodes[:1]
        guessed = np.array([np.tensordot(lagrange(nodes, t), given, axes=1) for t in finer])
        errors = np.abs(guessed - right).max(axis=(0, 2))
        if np.all(errors <= RESOLVED * np.abs(right).max(axis=(0, 2))):
            return nodes
    return None


def _chebyshev(intervals: int, low: float, high: float) -> FloatArray:
    """Extrema of a Chebyshev polynomial, both ends included; those of half as many intervals are among them."""
    half = np.cos(np.pi * np.arange(intervals // 2 + 1) / intervals)
    x = np.concatenate([-half[:-1], [0.0], half[-2::-1]])
    nodes = 0.5 * (low + high) + 0.5 * (high - low) * x
    nodes[[0, -1]] = low, high
    return nodes


@numba.njit(cache=True, nogil=True, error_model="numpy")
def weights_at(nodes, time):  # type: ignore[no-untyped-def]
    """Lagrange polynomials of some nodes at a time, which is put back between the first and the last."""
    t = min(max(time, nodes[0]), nodes[-1])
    weights = np.ones(nodes.size)
    for j in range(nodes.size):
        for i in range(nodes.size):
            if i != j:
                weights[j] *= (t - nodes[i]) / (nodes[j] - nodes[i])
    return weights


def lagrange(nodes: FloatArray, time: float) -> FloatArray:
    """See `weights_at`."""
    return np.asarray(weights_at.py_func(nodes, time))  # type: ignore[no-untyped-call]


class MixedClosure(NamedTuple):
    """Closure of one feature for compiled code: a table of g and Lambda of all nodes, the nodes, and the clock."""

    table: Table
    nodes: FloatArray
    clock: FloatArray


@register_closure(MixedClosure)
@numba.njit(cache=True, nogil=True, error_model="numpy")
def mixed_values(closure, q):  # type: ignore[no-untyped-def]
    """Values of g and Lambda at the time of the clock; see `closure_values`."""
    rows, result = np.empty(2 * closure.nodes.size), np.zeros(2)
    angle = math.asin(min(max(q[0], -1.0), 1.0))
    interpolate(closure.table, panel_of(closure.table, angle), angle, rows)
    weights = weights_at(closure.nodes, closure.clock[0])
    for j in range(weights.size):
        result[0] += weights[j] * rows[2 * j]
        result[1] += weights[j] * rows[2 * j + 1]
    result[1] = max(result[1], 0.0)
    return result


class ClosureInTime:
    """g(q) and Lambda(q) at the time of a clock.

    Parameters
    ----------
    closures : sequence of callable
        Those of the nodes.
    nodes : ndarray, shape (nodes,)
        Their times, increasing.
    features : int
        d1.

    Attributes
    ----------
    clock : ndarray, shape (2,)
        The time, and the step of differences in time.
    """

    def __init__(self, closures: Sequence[ClosureFunction], nodes: FloatArray, features: int) -> None:
        self.closures, self.nodes, self._features = tuple(closures), nodes, features
        self.clock = np.array([nodes[0], DIFFERENCE * (nodes[-1] - nodes[0])])

    def __call__(self, q: FloatArray) -> tuple[FloatArray, float]:
        """Evaluate the closure."""
        weights = lagrange(self.nodes, float(self.clock[0]))
        values = weights @ np.array([called_values(closure, q) for closure in self.closures])
        return values[:-1], max(float(values[-1]), 0.0)

    @cached_property
    def compiled(self) -> tuple[Any, float]:
        """Closure for compiled code, and the largest |q| at which it holds; of several features it is called."""
        if self._features > 1:
            return NO_TABLE
        table, reach = tabulated_rows(self.closures)
        return MixedClosure(table, self.nodes, self.clock), reach
