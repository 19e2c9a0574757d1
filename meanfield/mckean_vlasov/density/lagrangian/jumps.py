"""Where X jumps from one well of the drift to another, found by trial runs.

Two wells, as a quartic prior with little noise has them, tear the weights of a node apart at a quantile that hardly
moves; the slope there grows exponentially. A map zeta -> zeta + amplitude asinh((zeta - centre)/width) of the points
resolves it. The position must be known to the width of the jump: each trial narrows it down by a factor of ten or so.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import griddata

from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.typing import FloatArray

AMPLITUDE = 0.6
"""Points per factor e of the distance from a jump."""

ROUGH = 0.35
"""Rise of asinh(X) between neighbours, weighted with the square root of the density relative to its largest value,
above which points are too far apart."""

SHARP, FAR = 0.5, 5.5
"""The same rise without a weight, and the quantile up to which it counts, where other nodes have jumps: beyond the
quantile lie 4e-8 of the probability."""

NARROWEST = 1e-8
"""Least width of a jump that is resolved."""

STEEPER = 1.7
"""Factor by which a slope must have grown for another trial run to pay."""


def jumps_of(level: Level, rough: float = ROUGH) -> tuple[FloatArray, ...]:
    """For every node the term of the steepest jump that is rough, or the one that the level has, or none.

    Where some nodes have jumps, others have theirs resolved however little probability lies beyond them: an error of
    points that begins from one node to the next looks like a kink in u.
    """
    rises = np.diff(np.arcsinh(level.X), axis=2)
    middle = 0.5 * (level.xi[:, :, 1:] + level.xi[:, :, :-1])
    known = np.isfinite(rises)
    weighted = np.where(known, rises * np.exp(-0.25 * middle**2), 0.0)
    torn = weighted.max(axis=(0, 2)) > rough
    near = np.where(known & (np.abs(middle) < FAR), rises, 0.0)
    jumpy = torn.any() or any(each.size for each in level.frames.jumps)
    found = []
    for k, of_node in enumerate(torn):
        if not of_node and (not jumpy or near[:, k].max() <= SHARP):
            found.append(level.frames.jumps[k])
            continue
        rise = weighted[:, k] if of_node else near[:, k]
        output, i = np.unravel_index(np.argmax(rise), rise.shape)
        slope = rises[output, k, i] / (level.xi[output, k, i + 1] - level.xi[output, k, i])
        width = max(0.5 / slope, NARROWEST)
        place = _peak(rise[output], middle[output, k], int(i))
        found.append(np.array([[AMPLITUDE], [place], [1 / width]]))
    return tuple(found)


def _peak(rise: FloatArray, middle: FloatArray, i: int) -> float:
    """Where a parabola through the largest rise and its neighbours has its top: it moves steadily from node to node."""
    if not 0 < i < len(rise) - 1:
        return float(middle[i])
    below, top, above = rise[i - 1 : i + 2]
    shift = 0.5 * (below - above) / (below - 2 * top + above) if max(below, above) < top else 0.0
    return float(np.interp(i + shift, [i - 1, i, i + 1], middle[i - 1 : i + 2]))


def equally_narrow(jumps: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
    """The same jumps, all of the least width.

    Errors of points then change steadily from node to node. Widths as they were found would make them jump, so that
    sums over nodes seemed to need more nodes.
    """
    narrowest = max((each[2, 0] for each in jumps if each.size), default=1.0)
    narrowest = 2.0 ** np.ceil(np.log2(narrowest))  # mostly the same for other nodes, too
    return tuple(np.array([each[0], each[1], [narrowest]]) if each.size else each for each in jumps)


def between(u: FloatArray, jumps: tuple[FloatArray, ...], at: FloatArray) -> tuple[FloatArray, ...]:
    """Jumps at other nodes, by linear interpolation of their places; none where the nearest node has none.

    Parameters
    ----------
    u : ndarray, shape (nodes, d1)
    jumps : tuple of ndarray
        For every node, of one width.
    at : ndarray, shape (others, d1)
    """
    torn = np.array([each.size > 0 for each in jumps])
    places = np.array([each[1, 0] for each in jumps if each.size])
    found = griddata(u[torn], places, at, "nearest")
    if u.shape[1] == 1:
        order = np.argsort(u[torn, 0])
        found = np.interp(at[:, 0], u[torn, 0][order], places[order])
    elif torn.sum() > u.shape[1] + 1:
        linear = griddata(u[torn], places, at, "linear")
        found = np.where(np.isfinite(linear), linear, found)
    has = griddata(u, torn.astype(float), at, "nearest") > 0.5
    (example, *_) = (each for each in jumps if each.size)
    return tuple(
        np.array([example[0], [place], example[2]]) if one else np.zeros((3, 0))
        for place, one in zip(found, has, strict=True)
    )


def pays(before: tuple[FloatArray, ...], after: tuple[FloatArray, ...]) -> bool:
    """Whether a jump of any node is so much steeper, or so far off, that another trial run is worth its time."""
    return any(
        new.size > 0 and (old.size == 0 or new[2, 0] > STEEPER * old[2, 0] or _apart(old, new) > 1.0)
        for old, new in zip(before, after, strict=True)
    )


def _apart(old: FloatArray, new: FloatArray) -> float:
    """Distance of two places of a jump in units of the width of the first."""
    return float(abs(new[1, 0] - old[1, 0]) * old[2, 0])
