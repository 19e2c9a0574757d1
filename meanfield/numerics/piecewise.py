"""Functions of one real variable as Legendre series on panels, as fine as each function needs.

A table holds several functions ("rows") at once. Panels end at breaks, where a function may jump, and are halved until
every row is resolved; a panel that never is betrays a kink that nobody declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

ORDER = 16
"""Number of Gauss-Legendre nodes per panel: polynomials of degree 15 are exact."""

WIDTH = 1.5
"""Largest width of a panel near the origin, narrow enough for most Gaussian weights to use its nodes as they are."""

RESOLVED = 1e-12
"""Largest size of the last Legendre coefficients of a resolved row, relative to the row's largest value on the
panel."""

THIN = 1e-2
"""Half-width of panels below which they may miss RESOLVED."""

MOST_PANELS = 6000
"""Largest number of panels; more make a closure take milliseconds, as an oscillating activation does under a law with
heavy tails."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(ORDER)
_VANDERMONDE = np.polynomial.legendre.legvander(NODES, ORDER - 1)
TO_COEFFICIENTS = (_VANDERMONDE * WEIGHTS[:, None]).T * (np.arange(ORDER)[:, None] + 0.5)
"""Matrix that takes values at the nodes to Legendre coefficients."""
_DEGREES = np.maximum(np.arange(ORDER), 1)
ASCENT, DESCENT = (2 * _DEGREES - 1) / _DEGREES, (_DEGREES - 1) / _DEGREES
"""Coefficients of the recurrence of Legendre polynomials: P_j(t) = ASCENT[j] t P_(j-1)(t) - DESCENT[j] P_(j-2)(t)."""
_SLOPES = np.array(
    [np.polynomial.legendre.legval(NODES, np.polynomial.legendre.legder(np.eye(ORDER)[j])) for j in range(ORDER)]
).T
DIFFERENTIATE = _SLOPES @ TO_COEFFICIENTS
"""Matrix that takes values at the nodes to the derivative at the nodes, on a panel of half-width 1."""


class Table(NamedTuple):
    """Table of functions ("rows") on panels, as plain arrays for compiled code.

    Parameters
    ----------
    edges : ndarray, shape (panels + 1,)
    nodes, weights : ndarray, shape (panels * ORDER,)
        Gauss-Legendre nodes and weights of all panels.
    values : ndarray, shape (rows, panels * ORDER)
    coefficients : ndarray, shape (panels, ORDER, rows)
        Legendre coefficients.
    breaks : ndarray, shape (breaks,)
        Where rows may jump; edges are among them.
    jumps : ndarray, shape (breaks, rows)
        Right minus left limit of each row.
    """

    edges: FloatArray
    nodes: FloatArray
    weights: FloatArray
    values: FloatArray
    coefficients: FloatArray
    breaks: FloatArray
    jumps: FloatArray


NAME_THE_KINK = "name the point among the kinks of the activation, or use a smooth one"

Rows = Callable[[FloatArray], FloatArray]
"""Function from points, shape (n,), to the values of all rows, shape (rows, n)."""


def tabulate(
    rows: Rows,
    breaks: Iterable[float],
    reach: float,
    what: str,
    remedy: str = NAME_THE_KINK,
    layers: Iterable[float] = (),
    groups: Sequence[int] | None = None,
    most_panels: int = MOST_PANELS,
) -> Table:
    """Tabulate `rows` on [-reach, reach], on panels that resolve them.

    Parameters
    ----------
    rows : callable
        The functions.
    breaks : iterable of float
        Points where they, or their derivatives, may jump.
    reach : float
        Half-width of the range.
    what : str
        Name for messages.
    remedy : str
        What to do about a function that is not smooth.
    layers : iterable of float
        Edges of narrow ranges in which the functions change, and which the nodes of wide panels would miss.
    groups : sequence of int, optional
        One number per row: rows with the same number are resolved relative to the largest of them. Each has its own
        by default.
    most_panels : int
        Replaces MOST_PANELS.

    Raises
    ------
    InputError
        If a row is not finite, or not resolved by the narrowest panels or by `most_panels` of them.
    """
    breaks = np.array(sorted(b for b in set(breaks) if abs(b) < reach))
    edges = np.unique([*_first_edges(breaks, reach), *(x for x in layers if abs(x) < reach)])
    left, right = edges[:-1], edges[1:]
    core = np.empty(0)
    done: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    kept = 0
    while left.size:
        centre, half = 0.5 * (left + right), 0.5 * (right - left)
        points = centre[:, None] + half[:, None] * NODES
        values = rows(points.ravel()).reshape(-1, left.size, ORDER)
        _check_finite(values, points, what)
        if not core.size:
            core = _by_group(np.abs(values[:, np.abs(centre) <= 1 + half]).max(axis=(1, 2)), groups)
        coefficients = values @ TO_COEFFICIENTS.T
        tail = np.abs(coefficients[:, :, -3:]).max(axis=2)
        local = _by_group(np.abs(values).max(axis=2), groups)
        # Largest factor `slack` by which panels of half-width THIN / slack may miss RESOLVED: they weigh little, and
        # lie where functions are made of others that have been resolved no better.
        slack = np.clip(THIN / half, 1.0, 30.0)
        # Largest size of the last Legendre coefficients of a resolved row, relative to the row's largest value within
        # one unit of the origin: exponential tails need no digits.
        fine = np.all(tail <= slack * np.maximum(RESOLVED * local, 1e-14 * core[:, None]), axis=0)
        done.append((left[fine], right[fine], values[:, fine]))
        kept += int(fine.sum())
        coarse = ~fine
        panels = kept + 2 * int(coarse.sum())
        _check_effort(centre[coarse], half[coarse], panels, most_panels, what, remedy)
        left, right = (
            np.concatenate([left[coarse], centre[coarse]]),
            np.concatenate([centre[coarse], right[coarse]]),
        )
    return _assemble(done, breaks, groups, core, what, remedy)


def _by_group(sizes: FloatArray, groups: Sequence[int] | None) -> FloatArray:
    """Largest size in the group of each row, along the first axis."""
    if groups is None:
        return sizes
    of = np.array(groups)
    return np.array([sizes[of == group].max(axis=0) for group in groups])


def some_rows(table: Table, rows: Sequence[int]) -> Table:
    """Table of a selection of rows."""
    rows = list(rows)
    return table._replace(
        values=np.ascontiguousarray(table.values[rows]),
        coefficients=np.ascontiguousarray(table.coefficients[:, :, rows]),
        jumps=np.ascontiguousarray(table.jumps[:, rows]),
    )


def with_values(table: Table, values: FloatArray) -> Table:
    """Table of other rows, given by their values at the nodes, on panels that resolve them; they must not jump."""
    values = np.ascontiguousarray(values)
    return table._replace(
        values=values, coefficients=_coefficients(values), jumps=np.zeros((table.breaks.size, len(values)))
    )


def with_derivatives(table: Table, count: int) -> Table:
    """Table with the derivatives of its first `count` rows inserted behind them.

    Jumps of the first `count` rows become jumps (point masses) of the derivative rows, and only those are kept.
    """
    half = 0.5 * np.diff(table.edges)
    first = table.values[:count].reshape(count, half.size, ORDER)
    slopes = (first @ DIFFERENTIATE.T / half[:, None]).reshape(count, -1)
    values = np.concatenate([table.values[:count], slopes, table.values[count:]])
    size = np.abs(table.values[:count]).reshape(count, -1).max(axis=1)
    jumps = np.zeros((table.breaks.size, len(values)))
    first_jumps = table.jumps[:, :count]
    jumps[:, count : 2 * count] = np.where(np.abs(first_jumps) > 1e-11 * size, first_jumps, 0.0)
    return with_values(table, values)._replace(jumps=jumps)


def _first_edges(breaks: FloatArray, reach: float) -> FloatArray:
    """Edges of panels of the largest width, before any function is evaluated."""
    core = min(reach, 12.0)  # further out, panels grow by a quarter of the distance
    positive = list(np.linspace(0.0, core, math.ceil(core / WIDTH) + 1))
    while positive[-1] < reach:
        positive.append(min(1.25 * positive[-1], reach))
    grid = np.array([*(-x for x in reversed(positive[1:])), *positive])
    # An edge next to a break would make a needlessly narrow panel.
    for b in breaks:
        near = np.abs(grid - b) < 0.2 * WIDTH
        near[[0, -1]] = False
        grid = grid[~near]
    return np.unique(np.concatenate([grid, breaks]))


def _check_finite(values: FloatArray, points: FloatArray, what: str) -> None:
    wrong = ~np.all(np.isfinite(values), axis=0)
    if wrong.any():
        where = points[wrong]
        raise InputError(
            f"{what} is not finite at {where[np.abs(where).argmin()]:.6g}, a value that the pre-activations reach; "
            "use an activation that is finite there, or a hidden law with lighter tails"
        )


def _check_effort(centre: FloatArray, half: FloatArray, panels: int, most: int, what: str, remedy: str) -> None:
    if half.size and half.min() < 1e-8:  # a panel so narrow that is not resolved hides a kink
        raise InputError(f"{what} is not smooth near {centre[half.argmin()]:.6g}: {remedy}")
    if panels > most:
        raise InputError(
            f"{what} needs more than {most} panels to be integrated over all pre-activations; use one that oscillates "
            "less, a hidden law with lighter tails, or less noise of views (augmentation.variance)"
        )


def _assemble(
    done: list[tuple[FloatArray, FloatArray, FloatArray]],
    breaks: FloatArray,
    groups: Sequence[int] | None,
    core: FloatArray,
    what: str,
    remedy: str,
) -> Table:
    left = np.concatenate([piece[0] for piece in done])
    order = np.argsort(left)
    left = left[order]
    right = np.concatenate([piece[1] for piece in done])[order]
    values = np.concatenate([piece[2] for piece in done], axis=1)[:, order]
    edges = np.append(left, right[-1])
    centre, half = 0.5 * (left + right), 0.5 * (right - left)
    values = np.ascontiguousarray(values.reshape(len(values), -1))
    coefficients = _coefficients(values)
    # Limits at the inner edges, from both sides.
    from_right = np.einsum("j,ejr->er", (-1.0) ** np.arange(ORDER), coefficients[1:])
    jumps = from_right - coefficients[:-1].sum(axis=1)
    inner = edges[1:-1]
    local = _by_group(np.abs(values).reshape(len(values), -1, ORDER).max(axis=2), groups)
    # Panels on both sides of an edge that is no break are resolved, and would hide its jump; resolution explains 1e-8.
    explained = 1e-8 * (np.maximum(local.T[1:], local.T[:-1]) + 1e-4 * core)
    hidden = inner[np.any(np.abs(jumps) > explained, axis=1) & ~np.isin(inner, breaks)]
    if len(hidden):
        raise InputError(f"{what} is not smooth near {hidden[0]:.6g}: {remedy}")
    return Table(
        edges,
        (centre[:, None] + half[:, None] * NODES).ravel(),
        (half[:, None] * WEIGHTS).ravel(),
        values,
        coefficients,
        breaks,
        jumps[np.searchsorted(inner, breaks)],
    )


def _coefficients(values: FloatArray) -> FloatArray:
    """Legendre coefficients, shape (panels, ORDER, rows)."""
    blocks = values.reshape(len(values), -1, ORDER)
    return np.ascontiguousarray(np.einsum("jn,rpn->pjr", TO_COEFFICIENTS, blocks))


def values_at(table: Table, x: float) -> FloatArray:
    """Values of the rows at x, shape (rows,); see `interpolate`."""
    panel = min(max(int(np.searchsorted(table.edges, x, side="right")) - 1, 0), table.edges.size - 2)
    low, high = table.edges[panel], table.edges[panel + 1]
    return np.asarray(np.polynomial.legendre.legval((2.0 * x - low - high) / (high - low), table.coefficients[panel]))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def interpolate(table, panel, x, out):  # type: ignore[no-untyped-def]
    """Write the values of the rows at x, which lies in `panel`, to `out`."""
    low, high = table.edges[panel], table.edges[panel + 1]
    t = (2.0 * x - low - high) / (high - low)
    coefficients = table.coefficients[panel]
    rows = out.size
    for r in range(rows):
        out[r] = coefficients[0, r] + t * coefficients[1, r]
    before, now = 1.0, t
    for j in range(2, ORDER):
        before, now = now, ASCENT[j] * t * now - DESCENT[j] * before
        for r in range(rows):
            out[r] += now * coefficients[j, r]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def panel_of(table, x):  # type: ignore[no-untyped-def]
    """Index of the panel that holds x; the outermost ones hold everything beyond."""
    low, high = 0, table.edges.size - 2
    while low < high:
        middle = (low + high + 1) // 2
        if x < table.edges[middle]:
            high = middle - 1
        else:
            low = middle
    return low
