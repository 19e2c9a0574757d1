"""Where X jumps from one well of the drift to another, found by trial runs.

Two wells, as a quartic prior with little noise has them, tear the weights of a node apart at a quantile that hardly
moves; the slope there grows exponentially. A map zeta -> zeta + amplitude asinh((zeta - centre)/width) of the points
resolves it. The position must be known to the width of the jump: each trial narrows it down by a factor of ten or so.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.interpolate import RBFInterpolator

from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.numerics.quantile_frame.frame import LOGARITHMIC
from meanfield.typing import FloatArray

AMPLITUDE = 0.6
"""Points per factor e of the distance from a jump. Jumps move with errors of points, and the error that is left where
they are next is that of the distance of points there."""

NARROW_AMPLITUDE, NARROW = 1.2, 1e-5
"""Points per factor e of the distance from a narrow jump, and the width up to which a jump is narrow."""

ROUGH = 0.35
"""Rise of asinh(X) between neighbours, weighted with the square root of the density relative to its largest value,
above which points are too far apart."""

SHARP_RISE, LAST_QUANTILE = 0.5, 5.5
"""Rise of asinh(X) between neighbours above which points are too far apart where other nodes have jumps, and the
quantile up to which it counts: beyond it lie 4e-8 of the probability."""

NARROWEST = 1e-8
"""Least width of a jump for which points can be told apart."""

UNRESOLVED, WIDEST_UNRESOLVED = 1e-9, 0.1
"""Probability, in units of the largest density of the normal law, within the width of a jump that is left alone, and
the largest such width."""

LARGEST_PLACE = 100.0
"""Largest quantile of a jump; one that is far from all points leaves them where they are."""


def jumps_of(level: Level, rough: float = ROUGH, narrowest: float = NARROWEST) -> tuple[FloatArray, ...]:
    """Terms of the steepest rough jump of every node, or of the one that the level has, or none.

    Where some nodes have jumps, others have theirs resolved however little probability lies beyond them: an error of
    points that begins from one node to the next looks like a kink in u.
    """
    _, weight = level.frames.nodes.solved
    rises = np.diff(np.arcsinh(level.X), axis=2)
    xi = np.array([level.xi(output) for output in range(len(level.X))])
    middle = 0.5 * (xi[:, :, 1:] + xi[:, :, :-1])
    known = np.isfinite(rises)
    weighted = np.where(known, rises * np.exp(-0.25 * middle**2), 0.0)
    torn = weighted.max(axis=(0, 2)) > rough
    near = np.where(known & (np.abs(middle) < LAST_QUANTILE), rises, 0.0)
    jumpy = torn.any() or any(each.size for each in level.frames.jumps)
    found = []
    for k, of_node in enumerate(torn):
        if not of_node and (not jumpy or near[:, k].max() <= SHARP_RISE):
            found.append(level.frames.jumps[k])
            continue
        rise = weighted[:, k] if of_node else near[:, k]
        output, i = np.unravel_index(np.argmax(rise), rise.shape)
        slope = rises[output, k, i] / (xi[output, k, i + 1] - xi[output, k, i])
        place = _peak(rise[output], middle[output, k], int(i))
        least = max(narrowest, _least_width(place, weight[k]))
        found.append(_jump(place, min(2.0 * slope, 1.0 / least)))
    return tuple(found)


def _peak(rise: FloatArray, middle: FloatArray, i: int) -> float:
    """Top of a parabola through the largest rise and its neighbours, which moves steadily from node to node."""
    if not 0 < i < len(rise) - 1:
        return float(middle[i])
    below, top, above = rise[i - 1 : i + 2]
    shift = 0.5 * (below - above) / (below - 2 * top + above) if max(below, above) < top else 0.0
    return float(np.interp(i + shift, [i - 1, i, i + 1], middle[i - 1 : i + 2]))


def at_all_nodes(
    jumps: tuple[FloatArray, ...], u: FloatArray, weight: FloatArray, known: FloatArray | None = None
) -> tuple[FloatArray, ...]:
    """Jumps of the least width at all nodes, those that have none included, but where hardly any probability lies.

    Errors of points then change steadily from node to node. Jumps of some nodes, and widths as they were found, would
    make errors that look like kinks in u, so that sums over nodes seemed to need more of them.

    Parameters
    ----------
    jumps : tuple of ndarray
        For every known node; some of them may be empty, but not all.
    u : ndarray, shape (nodes, d1)
    weight : ndarray, shape (nodes,)
    known : ndarray, shape (known nodes, d1), optional
        Nodes of the jumps where they are others than those of the result.
    """
    torn = np.array([each.size > 0 for each in jumps])
    narrowest = 2.0 ** np.ceil(np.log2(max(each[2, 0] for each in jumps if each.size)))  # mostly the same for others
    found = np.array([each[1, 0] for each in jumps if each.size])
    if known is None:
        places = np.empty(len(u))
        places[torn] = found
        if not torn.all():
            places[~torn] = _continued(u[torn], found, u[~torn])
    else:
        places = _continued(known[torn], found, u)
    amplitude = AMPLITUDE if narrowest < 1.0 / NARROW else NARROW_AMPLITUDE
    both = zip(places.tolist(), weight.tolist(), strict=True)
    return tuple(_jump(place, min(narrowest, 1.0 / _least_width(place, of_node)), amplitude) for place, of_node in both)


def _jump(place: float, inverse_width: float, amplitude: float = AMPLITUDE) -> FloatArray:
    """Term that gathers points at a jump."""
    return np.array([[amplitude], [place], [inverse_width], [LOGARITHMIC]])


def _least_width(place: float, weight: float) -> float:
    """Width of a jump of a node within which hardly any probability lies.

    Points that are gathered more closely leave their order long before any average notices, so that only short steps
    would keep it.
    """
    return min(WIDEST_UNRESOLVED, UNRESOLVED / (weight * math.exp(-0.5 * place * place) + UNRESOLVED))


def _continued(u: FloatArray, places: FloatArray, at: FloatArray) -> FloatArray:
    """Places of jumps at other nodes: with one feature by linear interpolation, beyond the last ones by a plane."""
    some = np.unique(np.linspace(0, len(u) - 1, 400).astype(int))  # 400 places tell enough
    plane = np.column_stack([np.ones(len(some)), u[some]])
    degree = 1 if np.linalg.matrix_rank(plane) == plane.shape[1] else 0
    surface = RBFInterpolator(u[some], places[some], kernel="linear", degree=degree)
    return np.clip(surface(at), -LARGEST_PLACE, LARGEST_PLACE)


def steeper(before: tuple[FloatArray, ...], after: tuple[FloatArray, ...]) -> bool:
    """Whether a jump of any node is new, or so much steeper that another trial run is worth its time."""
    return any(
        new.size > 0 and (old.size == 0 or new[2, 0] > 1.7 * old[2, 0])  # another trial run pays
        for old, new in zip(before, after, strict=True)
    )


def moved(before: tuple[FloatArray, ...], after: tuple[FloatArray, ...], weight: FloatArray) -> bool:
    """Whether a jump of any node is further off than its width, with probability in between."""
    return any(
        new.size > 0 and abs(new[1, 0] - old[1, 0]) > max(1.0 / old[2, 0], _least_width(new[1, 0], of_node))
        for old, new, of_node in zip(before, after, weight, strict=True)
    )
