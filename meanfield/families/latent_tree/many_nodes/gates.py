"""Gates of nodes with any number of weights, and what a node does where it meets some of them.

The selectivity s(w) of a ReLU node is continuous, and linear in cones between gates, planes through 0 on which an input
turns active. Nodes climb it. Across a gate its gradient jumps along the normal of the gate: where it jumps back, the
node stays on the gate, and climbs along it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import lsq_linear

from meanfield.typing import BoolArray, FloatArray, IntArray

Sides = npt.NDArray[np.signedinteger[Any]]
"""Sides of gates on which nodes are, in few bytes."""

SAME_NORMAL = 1e-10
"""Largest sine of the angle between two normals that are the same but for rounding."""

NO_JUMP = 1e-12
"""Size of a sum of jumps that is 0 but for rounding, relative to the largest slope."""

NO_SLOPE = 1e-9
"""Size of slopes that are 0 but for rounding, relative to the largest one."""


@dataclass(frozen=True)
class Gates:
    """Gates of the nodes of several latents or kinds, and the slopes between them.

    Parameters
    ----------
    inputs : ndarray, shape (configurations, weights)
        Inputs of a node, with a 1 for the bias.
    factor : ndarray, shape (rows, configurations)
        What a node climbs is the sum of these times the activations.
    """

    inputs: FloatArray
    factor: FloatArray

    @cached_property
    def _merged(self) -> tuple[FloatArray, IntArray, FloatArray]:
        """Normals of gates; those of the inputs, NONE for inputs that are 0; and lengths of inputs along them."""
        length = np.linalg.norm(self.inputs, axis=1)
        normals: list[FloatArray] = []
        number = np.full(len(length), -1)
        for i in np.flatnonzero(length > 0.0):
            unit = self.inputs[i] / length[i]
            alike = [
                k for k, other in enumerate(normals) if np.linalg.norm(unit - (unit @ other) * other) < SAME_NORMAL
            ]
            number[i] = alike[0] if len(alike) else len(normals)
            if not len(alike):
                normals.append(unit)
        normal = np.array(normals).reshape(-1, self.inputs.shape[1])
        along = np.where(number >= 0, np.sum(self.inputs * normal[number], axis=1), 0.0)
        return normal, number, along

    def with_factor(self, factor: FloatArray) -> Gates:
        """The same gates between other slopes."""
        found = Gates(self.inputs, factor)
        found.__dict__["_merged"] = self._merged
        return found

    @property
    def normal(self) -> FloatArray:
        """Unit normals, on the side to which + refers, shape (gates, weights)."""
        return self._merged[0]

    @cached_property
    def jump(self) -> FloatArray:
        """Jump of the gradient along each normal, from the side - to the side +, shape (rows, gates)."""
        _, number, along = self._merged
        return self._by_gate(number, np.abs(along))

    @cached_property
    def base(self) -> FloatArray:
        """Gradient on the side - of all gates, shape (rows, weights)."""
        _, number, along = self._merged
        return self._by_gate(number, np.minimum(along, 0.0)) @ self.normal

    def _by_gate(self, number: IntArray, length: FloatArray) -> FloatArray:
        found = np.zeros((len(self.factor), len(self.normal)))
        for i in np.flatnonzero(number >= 0):
            found[:, number[i]] += self.factor[:, i] * length[i]
        return found

    @cached_property
    def scale(self) -> float:
        """Largest possible slope."""
        return float(np.abs(self.jump).sum(axis=1).max() + np.abs(self.base).max(initial=0.0))

    def slope(self, row: IntArray, side: Sides) -> FloatArray:
        """Gradient of nodes between gates, shape (nodes, weights).

        Parameters
        ----------
        row : ndarray of int, shape (nodes,)
        side : ndarray of int, shape (nodes, gates)
            +1 or -1.
        """
        found = self.base[row] + ((side > 0) * self.jump[row]) @ self.normal
        found[np.linalg.norm(found, axis=1) <= NO_JUMP * self.scale] = 0.0
        return found

    def idle(self, side: Sides) -> BoolArray:
        """Whether no input is active, shape (nodes,)."""
        _, number, along = self._merged
        seen = number >= 0
        return np.asarray((side[:, number[seen]] * np.sign(along[seen]) <= 0).all(axis=1))

    def onward(self, row: int, side: Sides, meets: BoolArray) -> tuple[Sides, FloatArray]:
        """Sides and slope of a node that meets gates, besides those on which it stays already.

        Parameters
        ----------
        side : ndarray of int, shape (gates,)
            From where it comes: +1 or -1, and 0 where it stays.
        meets : ndarray of bool, shape (gates,)

        Returns
        -------
        side : ndarray of int, shape (gates,)
        slope : ndarray, shape (weights,)
            Along the gates of side 0.

        Notes
        -----
        The slope is the y that makes g.y + sum_k J_k max(n_k.y, 0) - |y|^2/2 largest, with jumps J_k at the gates: the
        steepest way. For J < 0 it is the shortest vector of the convex hull of gradients, Filippov's rule. Where
        J > 0 a node is on one side: straight on, unless that side leads back, or the other is steeper from a gate.
        """
        at = np.flatnonzero(meets | (side == 0))
        away = np.where(np.isin(np.arange(len(side)), at), -1, side)[None]
        g = self.base[row] + ((away[0] > 0) * self.jump[row]) @ self.normal
        normal, jump = self.normal[at], self.jump[row, at]
        small = NO_SLOPE * self.scale
        on = (jump > 0.0) & (side[at] < 0)
        y = _shortest(g, normal, jump, on)
        for _ in range(4 << min(len(at), 8)):
            across = normal @ y
            turned = (jump > 0.0) & (np.abs(across) > small) & ((across > 0.0) != on)
            if turned.any():
                on = on ^ turned
                y = _shortest(g, normal, jump, on)
                continue
            better = _steeper(g, normal, jump, on, y, small)
            if better is None:
                break
            on, y = better
        across = normal @ y
        found = side.copy()
        found[at] = np.where(np.abs(across) > small, np.sign(across), 0)
        held = self.normal[found == 0]
        if len(held):
            y = y - np.linalg.pinv(held, rcond=SAME_NORMAL) @ (held @ y)
        return found, y if np.linalg.norm(y) > small else np.zeros_like(y)


def _steeper(
    g: FloatArray, normal: FloatArray, jump: FloatArray, on: BoolArray, y: FloatArray, small: float
) -> tuple[BoolArray, FloatArray] | None:
    """Side of a gate beyond the node, if it is steeper than the node's own."""
    for k in np.flatnonzero((jump > 0.0) & (np.abs(normal @ y) <= small)):
        other = on.copy()
        other[k] = not on[k]
        found = _shortest(g, normal, jump, other)
        if np.linalg.norm(found) > np.linalg.norm(y) + small:
            return other, found
    return None


def _shortest(g: FloatArray, normal: FloatArray, jump: FloatArray, on: BoolArray) -> FloatArray:
    """Shortest of the vectors g + sum_on J n + sum_k x_k J_k n_k over gates with J < 0, 0 <= x <= 1."""
    start = g + (on * jump) @ normal
    back = jump < 0.0
    if not back.any():
        return start
    A = (jump[back, None] * normal[back]).T
    x = lsq_linear(A, -start, bounds=(0.0, 1.0), method="bvls", tol=1e-15).x
    free = (x > NO_SLOPE) & (x < 1.0 - NO_SLOPE)
    ends = start + A[:, ~free] @ np.round(x[~free])
    if free.any():
        ends = ends - A[:, free] @ np.linalg.lstsq(A[:, free], ends, rcond=SAME_NORMAL)[0]
    return ends
