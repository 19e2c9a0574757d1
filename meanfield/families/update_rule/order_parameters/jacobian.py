"""Jacobian of the rates of change of the order parameters, by central differences.

These are of rates with averages to first order in the change (`Expansion`), which are averages with other weights, or
of rates whose averages are taken anew by the same rules of quadrature. At rules that are chosen for 1e-8 these are off
by about 2e-10, and the first, which leave out nodes, by up to 4e-8 of the largest entry. They take a sum over nodes
where the second take two for each order parameter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.families.update_rule.rates import State, packed, unpacked
from meanfield.families.update_rule.system import System
from meanfield.typing import FloatArray

STEP = 1e-5
"""Length of a difference in units of the sizes of vectors: truncation and rounding are about 1e-10."""

EXPANDED = 0.03
"""Factor of these lengths for expanded averages, which have no errors of quadrature that differ from place to place."""

LEAST_ROOM = 1e-6
"""Shortest such way, in the same units, along which differences keep six digits."""

INWARD = 1e-3
"""Growth of |w|^2/N to the first of three places from which derivatives are continued to dependent vectors."""

SMOOTH = 1e-4
"""Largest second difference of these derivatives, relative to the largest of them, with which they are continued."""


def jacobian_at(
    near: Callable[[FloatArray], Callable[[FloatArray], FloatArray]],
    y: FloatArray,
    system: System,
    shorter: float = 1.0,
) -> FloatArray:
    """Derivatives of the rates of order parameters, or of other averages, by the order parameters.

    Parameters
    ----------
    near : callable
        Gives for a place what has its values there and close by: a function of packed order parameters at one time,
        shape (values,), such as their rates (`Equations.velocity`).
    y : ndarray, shape (numbers,)
        See `meanfield.families.update_rule.rates.packed`.
    system : System
    shorter : float, optional
        Factor of the lengths of differences; see `EXPANDED`.

    Returns
    -------
    ndarray, shape (values, numbers)
        Row i has the derivatives of value i. NaN where vectors depend on each other and averages are not smooth there.

    Notes
    -----
    Where vectors depend on each other, such as equal students, derivatives are those of the smooth continuation beyond
    the overlaps that vectors can have, taken from three places inside; they are off by less than 1e-3 of the largest.
    Source: update_rules.md, section 6.
    """
    state = unpacked(y, system.students, system.features)
    lengths = np.sqrt(np.diag(state.Q))
    lengths[lengths == 0.0] = 1.0  # a student that has vanished has no size of its own
    size = packed(
        State(np.repeat(lengths[:, None], system.features, 1), np.outer(lengths, lengths), 1.0 + np.abs(state.v))
    )
    room = _room(y, system)
    if (room >= LEAST_ROOM * size).all():
        # Largest share of the way to the next overlaps that no vectors have, where averages may have square roots.
        return _differences(near(y), y, shorter * np.minimum(STEP * size, 3e-3 * room))
    inward = INWARD * packed(State(0.0 * state.R, np.diag(lengths**2), 0.0 * state.v))
    first, second, third = (
        _differences(near(place), place, shorter * STEP * size) for place in (y + k * inward for k in (1, 2, 3))
    )
    if np.abs(first - 2.0 * second + third).max() > SMOOTH * np.abs(first).max():
        return np.full_like(first, np.nan)
    return np.asarray(3.0 * (first - second) + third)


def _differences(function: Callable[[FloatArray], FloatArray], y: FloatArray, steps: FloatArray) -> FloatArray:
    columns = [(function(y + step) - function(y - step)) / (2.0 * step.sum()) for step in np.diag(steps)]
    return np.stack(columns, axis=1)


def _room(y: FloatArray, system: System) -> FloatArray:
    """How far each number may move either way until G is singular; infinite for side variables."""

    def gram(vector: FloatArray) -> FloatArray:
        state = unpacked(vector, system.students, system.features)
        return system.gram(state.R, state.Q)

    size, along = np.linalg.eigh(gram(y))
    if size[0] <= 0.0:
        return np.zeros(len(y))
    root = along / np.sqrt(size)
    turned = [root.T @ (gram(y + unit) - gram(y)) @ root for unit in np.eye(len(y))]
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.abs(np.linalg.eigvalsh(turned)).max(axis=1))
