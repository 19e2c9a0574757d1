"""Averages over infinitely many nodes with any number of weights, from some that stand for all.

Each of them is followed exactly, so that averages have the error of the quadrature at the start alone.

Paths go exactly from gate to gate (latent_tree.md, section 3.4). In the time T nodes do not see each other. Those that
start with |w| = |v| keep that, and climb: w' = |w| g, with a gradient g that is constant between gates and along them.
With k = |g|, x = cos of the angle between w and g, and u = e^(-k T)

    w(T) u = u w_across + (g/k) ((x + 1) + (x - 1) u^2)/2        for |w(0)| = 1,

and the distance from a gate times u is a polynomial of the second degree in u: the gate that is met first, and when,
follow from its roots.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from meanfield.families.latent_tree.many_nodes.gates import NO_JUMP, Gates, Sides
from meanfield.families.latent_tree.many_nodes.latents import SIGNS, Latents
from meanfield.typing import BoolArray, FloatArray, IntArray

MET_TOGETHER = 1e-10
"""Difference of u between gates that are met at once, but for rounding."""


@dataclass(frozen=True)
class Nodes:
    """Nodes on their paths.

    Parameters
    ----------
    row : ndarray of int, shape (nodes,)
        Latent and sign of outgoing weights.
    w : ndarray, shape (nodes, weights)
        Direction of the weights.
    growth : ndarray, shape (nodes,)
        log|w| where lengths are trained.
    side : ndarray of int, shape (nodes, gates)
        Side of each gate, 0 where the node stays on it.
    slope : ndarray, shape (nodes, weights)
        The gradient that it follows until it meets the next gate.
    """

    row: IntArray
    w: FloatArray
    growth: FloatArray
    side: Sides
    slope: FloatArray

    @property
    def climb(self) -> FloatArray:
        """Selectivity that nodes climb, at |w| = 1, shape (nodes,)."""
        return np.asarray(np.sum(self.slope * self.w, axis=1))

    def copy(self) -> Nodes:
        """Copy of the nodes."""
        return Nodes(*(getattr(self, name).copy() for name in self.__dataclass_fields__))


class Paths:
    """Paths of nodes between gates."""

    def __init__(self, gates: Gates) -> None:
        self.gates = gates
        self._known: dict[bytes, tuple[Sides, FloatArray]] = {}

    def start(self, row: IntArray, w: FloatArray, inside: FloatArray | None = None) -> Nodes:
        """Nodes with given directions, which decide between gates; or points inside the same cones do."""
        side = np.where((w if inside is None else inside) @ self.gates.normal.T > 0.0, 1, -1).astype(np.int8)
        return Nodes(row, w, np.zeros(len(w)), side, self.gates.slope(row, side))

    def taken_up(self, nodes: Nodes) -> Nodes:
        """Nodes that come from other slopes between the same gates: they stay on theirs, or leave to a side."""
        found = nodes.copy()
        held = (found.side == 0).sum(axis=1)
        some = np.flatnonzero(held == 0)
        found.slope[some] = self.gates.slope(found.row[some], found.side[some])
        some = np.flatnonzero(held == 1)
        gate = (found.side[some] == 0).argmax(axis=1)
        found.side[some, gate] = -1
        self._decide(found, some, gate, self.gates.slope(found.row[some], found.side[some]))
        some = np.flatnonzero(held > 1)
        if len(some):
            self._decide_each(found, some, np.concatenate([found.row[some, None], found.side[some]], axis=1))
        return found

    def push(self, nodes: Nodes, duration: FloatArray) -> Nodes:
        """Nodes after some time, not negative, of each of them."""
        moved, left = nodes.copy(), duration.copy()
        active = np.flatnonzero((moved.slope != 0.0).any(axis=1) & (left > 0.0))
        while len(active):
            active = self._to_next_gates(moved, left, active)
        return moved

    def _to_next_gates(self, moved: Nodes, left: FloatArray, active: IntArray) -> IntArray:
        """Move nodes until they meet a gate, or to the end; returns the numbers of those that have time left."""
        w, slope = moved.w[active], moved.slope[active]
        k = np.linalg.norm(slope, axis=1)
        g = slope / k[:, None]
        x = np.sum(w * g, axis=1)
        across = w - x[:, None] * g
        rests = np.linalg.norm(across, axis=1) < 1e-9  # sine of the angle between weights and slope
        moved.growth[active[rests]] += (k * np.sign(x) * left[active])[rests]
        if rests.any():
            active, w, k, g, x, across = (a[~rests] for a in (active, w, k, g, x, across))
        spent, end = left[active], np.exp(-k * left[active])
        at = _at(across, g, x, end)
        # the distance from a gate grows or falls all the way, so that its sign at the end says whether it was met
        out = np.flatnonzero((moved.side[active] * (at @ self.gates.normal.T) < 0.0).any(axis=1))
        normal = self.gates.normal.T
        met = _roots(across[out] @ normal, g[out] @ normal, x[out, None], moved.side[active[out]])
        first = met.max(axis=1, initial=0.0)
        out, met, first = (a[first > 0.0] for a in (out, met, first))
        u = np.clip(first, end[out], 1.0)
        at[out] = _at(across[out], g[out], x[out], u)
        spent[out] = -np.log(u) / k[out]
        length = np.linalg.norm(at, axis=1)
        moved.w[active] = at / length[:, None]
        moved.growth[active] += k * spent + np.log(length)
        left[active] -= spent
        active = active[out]
        meets = met >= (first - MET_TOGETHER)[:, None]
        self._meet(moved, active, meets)
        return np.asarray(active[(left[active] > 0.0) & (moved.slope[active] != 0.0).any(axis=1)])

    def _meet(self, moved: Nodes, active: IntArray, meets: BoolArray) -> None:
        """Sides and slopes of nodes that meet gates."""
        side = moved.side[active]
        alone = (meets.sum(axis=1) == 1) & (side != 0).all(axis=1)
        some = np.flatnonzero(alone)
        self._meet_one(moved, active[some], meets[some].argmax(axis=1))
        some = np.flatnonzero(~alone)
        if not len(some):
            return
        code = np.concatenate([moved.row[active[some], None], side[some] * (1 + meets[some])], axis=1)
        self._decide_each(moved, active[some], code)

    def _decide_each(self, moved: Nodes, some: IntArray, code: IntArray) -> None:
        """Sides and slopes of nodes by `Gates.onward`, from rows and sides, twice the side for gates that are met."""
        keys, which = np.unique(code.astype(np.int16), axis=0, return_inverse=True)
        found = [self._onward(key) for key in keys]
        which = which.ravel()
        moved.side[some] = np.array([side for side, _ in found])[which]
        moved.slope[some] = np.array([slope for _, slope in found])[which]

    def _decide(self, moved: Nodes, some: IntArray, gate: IntArray, below: FloatArray) -> None:
        """Sides and slopes of nodes on one gate each, from the slopes on its side -."""
        normal, jump = self.gates.normal[gate], self.gates.jump[moved.row[some], gate]
        first = np.sum(below * normal, axis=1)
        second = first + jump
        stays = (first >= 0.0) & (second <= 0.0)
        up = (first >= 0.0) & ~stays  # where both sides lead away, `Gates.onward` takes the side -, too
        step = np.where(stays, -first, np.where(up, jump, 0.0))
        slope = below + step[:, None] * normal
        slope[np.linalg.norm(slope, axis=1) <= NO_JUMP * self.gates.scale] = 0.0
        moved.slope[some] = slope
        moved.side[some, gate] = np.where(stays, 0, np.where(up, 1, -1))

    def _onward(self, key: Sides) -> tuple[Sides, FloatArray]:
        """`Gates.onward`, which depends on a few numbers alone and is asked often."""
        name = key.tobytes()
        if name not in self._known:
            self._known[name] = self.gates.onward(int(key[0]), np.sign(key[1:]), np.abs(key[1:]) == 2)
        return self._known[name]

    def _meet_one(self, moved: Nodes, active: IntArray, gate: IntArray) -> None:
        """Sides and slopes of nodes that meet one gate: across it, or along."""
        normal = self.gates.normal[gate]
        jump = self.gates.jump[moved.row[active], gate]
        side, slope = moved.side[active, gate], moved.slope[active]
        beyond = slope - (side * jump)[:, None] * normal
        crosses = side * np.sum(beyond * normal, axis=1) < 0.0
        along = slope - np.sum(slope * normal, axis=1, keepdims=True) * normal
        found = np.where(crosses[:, None], beyond, along)
        small = np.linalg.norm(found, axis=1) <= NO_JUMP * self.gates.scale
        moved.slope[active] = np.where(small[:, None], 0.0, found)
        moved.side[active, gate] = np.where(crosses, -side, 0)


def _at(across: FloatArray, g: FloatArray, x: FloatArray, u: FloatArray) -> FloatArray:
    """Weights times u, shape (nodes, weights)."""
    along = 0.5 * ((x + 1.0) + (x - 1.0) * u * u)
    return u[:, None] * across + along[:, None] * g


def _roots(across: FloatArray, along: FloatArray, x: FloatArray, side: Sides) -> FloatArray:
    """U at which nodes leave their side of gates, at most 1; 0 where they do not, shape (nodes, gates).

    Parameters
    ----------
    across, along : ndarray, shape (nodes, gates)
        Normals times the part of w across the slope, and times its direction.
    x : ndarray, shape (nodes, 1)
    side : ndarray of int, shape (nodes, gates)
    """
    highest, lowest = along * (x - 1.0), along * (x + 1.0)
    root = side * np.sqrt(np.maximum(across * across - highest * lowest, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.where(side * across > 0.0, -lowest / (across + root), (root - across) / highest)
    return np.where((side != 0) & (u > 0.0) & (u <= 1.0 + MET_TOGETHER), u, 0.0)


@dataclass(frozen=True)
class Carried(Latents):
    """Nodes with given directions at the start, the same ones for every latent and sign.

    Parameters
    ----------
    w : ndarray, shape (nodes, weights)
        Directions at the start.
    weight : ndarray, shape (nodes,)
        Their shares, which add up to 1.
    linear_weight : ndarray, shape (nodes,)
        Their weights in averages of selectivities, which are linear in w between gates at the start.
    """

    w: FloatArray
    weight: FloatArray
    linear_weight: FloatArray
    _last: list[tuple[float, Nodes]] = field(default_factory=list, init=False, repr=False, compare=False)

    @cached_property
    def rows(self) -> IntArray:
        """Rows of latents and signs that have nodes, signs fastest."""
        return np.flatnonzero(np.tile(self.shares > 0.0, len(self.polarity)))

    @cached_property
    def sign(self) -> float:
        """Sign of Delta at the start, and so at all times: |Delta| grows."""
        first = np.maximum(self.w @ self.inputs.T, 0.0).T @ self.linear_weight
        s = np.repeat((self.difference @ first)[:, None], len(SIGNS), axis=1)
        return 1.0 if self.from_averages(s) >= 0.0 else -1.0

    @cached_property
    def _climbs(self) -> FloatArray:
        """+1 where nodes climb their selectivity, -1 where they descend, of each row."""
        return self.sign * np.where(self.pull < 0.0, -1.0, 1.0)

    @cached_property
    def paths(self) -> Paths:
        """Paths of the nodes of every row."""
        difference = np.repeat(self.difference, len(SIGNS), axis=0)
        return Paths(Gates(self.inputs, self._climbs[:, None] * difference))

    @cached_property
    def _start(self) -> Nodes:
        return self.starting(self.w)

    def starting(self, w: FloatArray, inside: FloatArray | None = None) -> Nodes:
        """Nodes of all rows with given directions at the start, on the side of gates where points inside are."""
        rows = len(self.rows)
        between = None if inside is None else np.tile(inside, (rows, 1))
        return self.paths.start(np.repeat(self.rows, len(w)), np.tile(w, (rows, 1)), between)

    def moved(self, nodes: Nodes, duration: float) -> Nodes:
        """Nodes after some time |T|."""
        return self.paths.push(nodes, duration * np.abs(self.pull)[nodes.row])

    @property
    def fastest(self) -> float:
        """Largest rate of a node in units of 1/T."""
        return float(np.max(np.abs(self.pull)[self._start.row] * np.linalg.norm(self._start.slope, axis=1)))

    def at(self, T: float) -> Nodes:
        """All nodes at a time, row by row; quickly so at times that grow."""
        since, nodes = self._last[0] if self._last and self._last[0][0] <= abs(T) else (0.0, self._start)
        found = self.moved(nodes, abs(T) - since)
        self._last[:] = [(abs(T), found)]
        return found

    def averages(self, T: float) -> tuple[FloatArray, FloatArray]:
        """See `Latents.averages`."""
        nodes = self.at(T)
        square = self.square(nodes)
        s = square * self._climbs[nodes.row] * nodes.climb
        return self.by_row(s, self.linear_weight), self.by_row(square, self.weight)

    def square(self, nodes: Nodes) -> FloatArray:
        """|w|^2 of nodes, which is |w v| too, shape (nodes,)."""
        return np.asarray(np.exp(2.0 * nodes.growth)) if self.grows else np.ones(len(nodes.w))

    def activity(self, nodes: Nodes) -> FloatArray:
        """Averages of v max(w.x, 0) over the nodes of each latent, for each input, shape (latents, configurations)."""
        each = self.square(nodes)[:, None] * np.maximum(nodes.w @ self.inputs.T, 0.0)
        by_row = self.linear_weight @ each.reshape(len(self.rows), len(self.weight), -1)
        found = np.zeros((len(self.polarity) * len(SIGNS), by_row.shape[-1]))
        found[self.rows] = by_row
        return np.asarray(SIGNS * self.shares @ found.reshape(-1, len(SIGNS), by_row.shape[-1]))

    def by_row(self, values: FloatArray, weight: FloatArray) -> FloatArray:
        """Averages of numbers of all nodes, shape (latents, signs); 0 for signs that no node has."""
        found = np.zeros(len(self.polarity) * len(SIGNS))
        found[self.rows] = values.reshape(len(self.rows), -1) @ weight
        return found.reshape(-1, len(SIGNS))
