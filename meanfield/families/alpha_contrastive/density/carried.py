"""Filters on the sphere that a flow carries, across walls and along those that hold them (alpha_contrastive.md, 4).

Heun's method between walls. A step that meets a wall ends there: behind it the filter goes on with the field of the
other side, or, where both sides push to the wall, it slides along it (Filippov's rule), as the field without what
crosses the wall moves it. Two walls hold a filter still. So steps keep the second order that kinks would take away. The
circle is the equator of a sphere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from meanfield.typing import BoolArray, FloatArray, IntArray

NO_WALL = -1
"""Number of no wall."""

BEHIND_WALL = 1e-12
"""Distance behind a wall that is rounding."""


class Carrier(Protocol):
    """Forces on filters; L is what they depend on besides, such as the importance."""

    normal: FloatArray
    """Normals of walls, shape (walls, 3)."""
    offset: FloatArray

    def forces(
        self, w: FloatArray, side: FloatArray, L: tuple[Any, Any], share: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Field of filters, shape (filters, 3), and its jumps along normals, shape (filters, walls).

        Between the two L, of which `share` of the second is taken.
        """


@dataclass
class CarriedFilters:
    """Filters on the sphere, each with its sides of walls and the walls that hold it.

    Parameters
    ----------
    w : ndarray, shape (filters, 3)
    side : ndarray, shape (filters, walls)
        +1 or -1.
    held : ndarray, shape (filters, 2)
        Numbers of walls, NO_WALL where there is none; the second only with the first.
    """

    w: FloatArray
    side: FloatArray
    held: IntArray


def advance(filters: CarriedFilters, carrier: Carrier, L: tuple[Any, Any], duration: float) -> CarriedFilters:
    """Filters after a step, in which L goes linearly from the first to the second.

    Parameters
    ----------
    filters : CarriedFilters
        Left as they are.
    carrier : Carrier
    L : (object, object)
    duration : float
    """
    w, side, held = filters.w.copy(), filters.side.copy(), filters.held.copy()
    left = np.full(len(w), duration)
    active = np.arange(len(w))
    for _ in range(60):  # walls that a filter meets in a step
        if not len(active):
            break
        one = CarriedFilters(w[active], side[active], held[active])
        share = 1.0 - left[active] / duration
        force, jump = carrier.forces(one.w, one.side, L, share)
        released = _release(one, carrier, force, jump)
        moves = np.flatnonzero(~released)
        part = CarriedFilters(one.w[moves], one.side[moves], one.held[moves])
        rest = left[active[moves]]
        spent = _moved(part, carrier, force[moves], jump[moves], L, share[moves], rest)
        one.w[moves], one.side[moves], one.held[moves] = part.w, part.side, part.held
        w[active], side[active], held[active] = one.w, one.side, one.held
        left[active[moves]] = rest - spent
        active = active[left[active] > 1e-12 * duration]
    return CarriedFilters(w, side, held)


def projected(w: FloatArray, held: IntArray, normal: FloatArray, force: FloatArray) -> FloatArray:
    """Velocity of filters: the part of a force along the sphere and the walls that hold them."""
    along = force - np.sum(force * w, axis=1, keepdims=True) * w
    slides = np.flatnonzero(held[:, 0] != NO_WALL)
    if len(slides):
        line = np.cross(w[slides], normal[held[slides, 0]])
        line /= np.maximum(np.linalg.norm(line, axis=1, keepdims=True), 1e-300)
        along[slides] = np.sum(force[slides] * line, axis=1, keepdims=True) * line
        along[held[:, 1] != NO_WALL] = 0.0
    return np.asarray(along)


def _moved(
    filters: CarriedFilters,
    carrier: Carrier,
    force: FloatArray,
    jump: FloatArray,
    L: tuple[Any, Any],
    share: FloatArray,
    left: FloatArray,
) -> FloatArray:
    """Time that filters moved until they met a wall, at most what is left; changes the filters."""
    w, normal = filters.w, carrier.normal
    v = projected(w, filters.held, normal, force)
    guess = on_walls(w + left[:, None] * v, filters.held, carrier)
    later, _ = carrier.forces(guess, filters.side, L, np.ones(len(w)))
    there = projected(guess, filters.held, normal, later)
    end = on_walls(w + 0.5 * left[:, None] * (v + there), filters.held, carrier)
    spent = left.copy()
    if not len(carrier.offset):
        filters.w = end
        return spent
    start, stop = (side * (x @ normal.T - carrier.offset) for x, side in ((w, filters.side), (end, filters.side)))
    for number in filters.held.T:
        has = number != NO_WALL
        stop[has, number[has]] = 1.0
    meets = stop < -BEHIND_WALL
    hit = np.flatnonzero(meets.any(axis=1))
    share_of_step = _first_roots(
        np.maximum(start[hit], 0.0), filters.side[hit] * (v[hit] @ normal.T) * left[hit, None], stop[hit]
    )
    share_of_step = np.where(meets[hit], share_of_step, np.inf)
    wall = share_of_step.argmin(axis=1)
    part = share_of_step.min(axis=1)[:, None]
    step = left[hit, None] * v[hit]
    met = w[hit] + part * step + part**2 * (end[hit] - w[hit] - step)
    spent[hit] = part[:, 0] * left[hit]
    filters.w = end
    filters.w[hit] = _meet(filters, carrier, hit, wall, met, force, jump)
    return spent


def _first_roots(z: FloatArray, change: FloatArray, end: FloatArray) -> FloatArray:
    """First s in [0, 1] at which z + change s + (end - z - change) s^2 is 0, where z >= 0 > end."""
    bend = end - z - change
    with np.errstate(divide="ignore", invalid="ignore"):
        root = 2.0 * z / (-change + np.sqrt(np.maximum(change * change - 4.0 * bend * z, 0.0)))
        late = -change / bend  # where it begins at 0, and rises first
    root = np.where((z <= BEHIND_WALL) & (change > 0.0), late, root)
    return np.clip(np.nan_to_num(root, nan=0.0, posinf=1.0), 0.0, 1.0)


def _meet(
    filters: CarriedFilters,
    carrier: Carrier,
    hit: IntArray,
    wall: IntArray,
    met: FloatArray,
    force: FloatArray,
    jump: FloatArray,
) -> FloatArray:
    """Filters at walls that they met: across, or held; changes sides and walls that hold them."""
    side, held = filters.side[hit, wall], filters.held[hit]
    beyond = force[hit] - (side * jump[hit, wall])[:, None] * carrier.normal[wall]
    v = projected(met, held, carrier.normal, beyond)
    crosses = side * np.sum(v * carrier.normal[wall], axis=1) < 0.0
    filters.side[hit, wall] = np.where(crosses, -side, side)
    both = np.where(held[:, :1] == NO_WALL, np.stack([wall, held[:, 1]], axis=1), np.stack([held[:, 0], wall], axis=1))
    at_wall = on_walls(met, both, carrier)
    filters.held[hit] = np.where(crosses[:, None], held, both)
    return at_wall


def on_walls(w: FloatArray, held: IntArray, carrier: Carrier) -> FloatArray:
    """Points of the sphere near some vectors, on the walls that hold them."""
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    first, second = (
        np.flatnonzero(chosen) for chosen in ((held[:, 0] != NO_WALL) & (held[:, 1] == NO_WALL), held[:, 1] != NO_WALL)
    )
    if len(first):
        u = carrier.normal[held[first, 0]]
        c = carrier.offset[held[first, 0], None]
        away = w[first] - np.sum(w[first] * u, axis=1, keepdims=True) * u
        away /= np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)
        w[first] = c * u + np.sqrt(1.0 - c * c) * away
    if len(second):
        a, b = (carrier.normal[held[second, k]] for k in (0, 1))
        c, d = (carrier.offset[held[second, k], None] for k in (0, 1))
        cosine = np.sum(a * b, axis=1, keepdims=True)
        line = np.cross(a, b)
        sine = np.maximum(1.0 - cosine**2, 1e-300)
        base = ((c - cosine * d) * a + (d - cosine * c) * b) / sine
        rest = np.sqrt(np.maximum(1.0 - np.sum(base * base, axis=1, keepdims=True), 0.0))
        line *= np.sign(np.sum(line * w[second], axis=1, keepdims=True)) / np.sqrt(sine)
        w[second] = base + rest * line
    return w


def _release(filters: CarriedFilters, carrier: Carrier, force: FloatArray, jump: FloatArray) -> BoolArray:
    """Filters that a wall no longer holds, which are set free on the side to which they are pushed.

    A wall holds with a share of both fields between 0 and 1, by which what crosses it vanishes.
    """
    held, count = filters.held, len(filters.w)
    released = np.zeros(count, dtype=bool)
    some = np.flatnonzero(held[:, 0] != NO_WALL)
    if not len(some):
        return released
    w, numbers = filters.w[some], held[some]
    two = numbers[:, 1] != NO_WALL
    first, second = numbers[:, 0], np.where(two, numbers[:, 1], 0)
    rows = np.arange(len(some))
    minus = force[some].copy()
    jumps = []
    units = []
    for number, exists in ((first, np.ones(len(some), dtype=bool)), (second, two)):
        u = carrier.normal[number] * exists[:, None]
        J = jump[some][rows, number] * exists
        minus -= ((filters.side[some][rows, number] > 0.0) * J)[:, None] * u
        jumps.append(J)
        units.append(u - np.sum(u * w, axis=1, keepdims=True) * w)
    pushes = [np.sum(unit * minus, axis=1) for unit in units]
    g = [[np.sum(a * b, axis=1) for b in units] for a in units]
    g[1][1] = np.where(two, g[1][1], 1.0)
    determinant = np.maximum(g[0][0] * g[1][1] - g[0][1] ** 2, 1e-300)
    balance = [
        -(g[1][1] * pushes[0] - g[0][1] * pushes[1]) / determinant,
        -(g[0][0] * pushes[1] - g[0][1] * pushes[0]) / determinant,
    ]
    outside = np.stack(
        [
            _outside(part, J) * exists
            for part, J, exists in zip(balance, jumps, (np.ones(len(some), dtype=bool), two), strict=True)
        ],
        axis=1,
    )
    worst = np.abs(outside).argmax(axis=1)
    free = np.flatnonzero(outside[rows, worst] != 0.0)
    at, which = some[free], worst[free]
    filters.side[at, numbers[free, which]] = np.sign(outside[free, which])
    kept = np.where(which == 0, numbers[free, 1], numbers[free, 0])
    held[at] = np.stack([kept, np.full(len(free), NO_WALL)], axis=1)
    released[at] = True
    return released


def _outside(balance: FloatArray, jump: FloatArray) -> FloatArray:
    """0 where a share of a jump balances a push; else how far it is from that, with the sign of the side it goes to."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = balance / jump
    attracts = (jump < 0.0) & (share >= 0.0) & (share <= 1.0)
    away = np.where(share > 1.0, share - 1.0, share)
    repelled = np.where(balance > 0.0, -1.0, 1.0)
    away = np.where(jump < 0.0, np.where(share > 1.0, np.maximum(away, 1e-300), away), repelled)
    return np.where(attracts, 0.0, np.nan_to_num(away, nan=1.0))
