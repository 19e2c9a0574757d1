"""All critical points of a flow on the circle, whose field is analytic between walls (alpha_contrastive.md, section 3).

Roots of the field are enumerated arc by arc. At a wall the field may jump: where it points to the wall from both sides
the wall holds an attractor, at which filters come to rest in finite time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from meanfield.errors import InputError
from meanfield.numerics.analytic_roots import roots_between
from meanfield.typing import BoolArray, FloatArray, IntArray

Field = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Tangential field at angles, and the size of the whole field there, by which rounding is told."""

SAME_ANGLE = 1e-11
"""Distance of angles that are one."""

TURN = 2.0 * np.pi


@dataclass(frozen=True)
class CirclePoint:
    """Critical point on the circle.

    Parameters
    ----------
    angle : float
        In (-pi, pi].
    wall : bool
        Whether it is on a wall.
    before, after : int
        Signs of the field on both sides; +1 before and -1 after attract.
    share : float
        Share of the circle from which filters come to it.
    """

    angle: float
    wall: bool
    before: int
    after: int
    share: float

    @property
    def attracts(self) -> bool:
        """Whether filters come to it from both sides."""
        return self.before > 0 > self.after


def circle_points(field: Field, walls: FloatArray, longest: float) -> list[CirclePoint]:
    """All critical points on the circle, in the order of their angles.

    Parameters
    ----------
    field : callable
        Tangential field and its size at angles, analytic between walls.
    walls : ndarray
        Angles at which it may jump.
    longest : float
        Longest interval on which it varies no more than once.

    Raises
    ------
    InputError
        If the field varies too fast to be resolved.

    Notes
    -----
    Source: alpha_contrastive.md, section 3. On arcs where the field is 0 every point is critical; none is returned.
    """
    walls = _distinct(np.mod(walls, TURN))
    start = float(walls[0]) if len(walls) else 0.0
    ends = np.append(walls, start + TURN) if len(walls) else np.array([0.0, TURN])
    try:
        roots = np.array(roots_between(field, _split(ends, longest)))
    except ArithmeticError as error:
        raise InputError(
            f"the field of a filter is not resolved on the circle ({error}); raise importance.temperature, or take "
            "smaller data"
        ) from error
    if len(roots):
        gap = np.abs(_turned(roots[:, None] - walls[None])).min(axis=1, initial=np.inf)
        roots = roots[gap > SAME_ANGLE]
    if len(roots) > 1 and roots[0] + TURN - roots[-1] <= SAME_ANGLE:
        roots = roots[:-1]
    events = np.sort(np.concatenate([walls, roots]))
    if not len(events):
        return []
    signs = _signs(field, events)
    return _points(events, signs, np.isin(events, walls))


def _split(ends: FloatArray, longest: float) -> FloatArray:
    parts = [
        np.linspace(low, high, max(2, int(np.ceil((high - low) / longest)) + 1))[:-1] for low, high in pairwise(ends)
    ]
    return np.append(np.concatenate(parts), ends[-1])


def _distinct(angles: FloatArray) -> FloatArray:
    angles = np.sort(angles)
    if not len(angles):
        return angles
    kept = angles[np.diff(angles, append=angles[0] + TURN) > SAME_ANGLE]
    return kept if len(kept) else angles[:1]


def _turned(angle: FloatArray) -> FloatArray:
    """Angles brought to (-pi, pi]."""
    return np.pi - np.mod(np.pi - angle, TURN)


def _signs(field: Field, events: FloatArray) -> IntArray:
    """Sign of the field behind each event, up to the next."""
    following = np.append(events[1:], events[0] + TURN)
    inner = events[:, None] + (following - events)[:, None] * np.array([0.25, 0.5, 0.75])
    values, sizes = (part.reshape(inner.shape) for part in field(inner.ravel()))
    known = np.where(np.abs(values) > 1e-13 * sizes, values, 0.0)  # 0 to rounding on an arc
    strongest = known[np.arange(len(known)), np.abs(known).argmax(axis=1)]
    return np.asarray(np.sign(strongest), dtype=np.int64)


def _points(events: FloatArray, signs: IntArray, at_wall: BoolArray) -> list[CirclePoint]:
    """Critical points among roots and walls, with the arcs that flow to attractors."""
    following = np.append(events[1:], events[0] + TURN)
    length = following - events
    count = len(events)
    found = []
    for k in range(count):
        before, after = int(signs[k - 1]), int(signs[k])
        if before == after and (at_wall[k] or before == 0):
            continue
        if before == 0 or after == 0:  # the edge of an arc on which every filter rests
            continue
        share = 0.0
        if before > 0 > after:
            share = _reach(signs, at_wall, length, k - 1, -1) + _reach(signs, at_wall, length, k, 1)
        angle = float(_turned(np.array(events[k])))
        found.append(CirclePoint(angle, bool(at_wall[k]), before, after, share / TURN))
    return sorted(found, key=lambda point: point.angle)


def _reach(signs: IntArray, at_wall: BoolArray, length: FloatArray, k: int, step: int) -> float:
    """Length of the arcs from arc `k` on, in direction `step`, on which the field points back to where they begin.

    Walls that filters cross do not end them, but roots do: at one between arcs of the same sign filters rest that come
    from beyond it.
    """
    total, count = 0.0, len(signs)
    for m in range(count):
        arc = (k + step * m) % count
        if signs[arc] != -step:
            break
        total += float(length[arc])
        if not at_wall[arc if step < 0 else (arc + 1) % count]:
            break
    return total
