"""Trial runs that show where points are needed, before any level counts: in layers, at jumps, and between wells.

Two wells, as a quartic prior with little noise has them, tear the weights of a node apart at a quantile that hardly
moves; the slope there grows exponentially. A map zeta -> zeta + amplitude asinh((zeta - centre)/width) of the points
resolves it. The position must be known to the width of the jump: each trial narrows it down by a factor of ten or so.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.interpolate import RBFInterpolator

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.closures import coefficients_at, values_at_time
from meanfield.mckean_vlasov.density.lagrangian.budget import Budget
from meanfield.mckean_vlasov.density.lagrangian.level import DivergedError, ExpensiveError, Level
from meanfield.mckean_vlasov.density.lagrangian.points import CONDENSED_REACH, Frames, Grading, grading_of
from meanfield.mckean_vlasov.density.plan import check_memory
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.quantile_frame.frame import LOGARITHMIC
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

JUMP_AMPLITUDE = 0.6
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
    amplitude = JUMP_AMPLITUDE if narrowest < 1.0 / NARROW else NARROW_AMPLITUDE
    both = zip(places.tolist(), weight.tolist(), strict=True)
    return tuple(_jump(place, min(narrowest, 1.0 / _least_width(place, of_node)), amplitude) for place, of_node in both)


def _jump(place: float, inverse_width: float, amplitude: float = JUMP_AMPLITUDE) -> FloatArray:
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


GRADED_SPACING = 0.2
"""Distance of points along graded curves in the first level."""

SPACING, CLOSER_SPACING = 0.3, 0.12
"""Distance of points without grading, and where they show jumps or do not stay in order."""

TRIAL_TOLERANCE = 1e-5
"""Error of a step that is small enough to find jumps."""

MOST_TRIALS = 12

NEEDED_REACH, REACH_SLACK = 7.5, 0.05
"""Quantile that the last points must not cross on their way inwards, and what is too little for another trial run."""

LEAST_FACTOR = 2.0
"""Factor on the number of points of the third level, without which no error is estimated."""


def prepare(
    limit: Limit, nodes: Nodes, budget: Budget, tolerance: float = TRIAL_TOLERANCE, known: Frames | None = None
) -> tuple[Frames, Level]:
    """Frames of the nodes, and the last trial run that led to them.

    Parameters
    ----------
    tolerance : float
        Error of a step where there is no jump.
    known : Frames, optional
        Frames without grading of fewer nodes, whose jumps are a start.

    Raises
    ------
    BlowUpError
        If no trial run succeeds, or the budget is spent.
    InputError
        If the levels that an estimate takes at least do not fit into the free memory.
    """
    start, of_noise, least = limit.initial_arguments, limit.overlaps, float(limit.factors(nodes.u)[1].min())
    noise = 0.5 * least * np.array([values_at_time(phase, phase.start, start)[of_noise] for phase in limit.phases])
    grading, wells = grading_of(limit, noise), None
    finer, moves = 1.0, 0
    deficit, before = 0.0, math.inf
    frames = Frames.plain(nodes, grading, GRADED_SPACING if grading.terms.size else SPACING)
    narrowest = max(NARROWEST, 0.5 * tolerance)  # a jump narrower than half the error of a step is not resolved
    if known is not None:
        frames, tolerance = continued(known, nodes), max(tolerance, TRIAL_TOLERANCE)
    for trial in range(MOST_TRIALS):
        points = math.ceil(finer * frames.first_points(limit))
        check_level(limit, frames, LEAST_FACTOR * frames.first_points(limit))  # later ones have more points
        level = Level(limit, frames, points, tolerance, budget)
        failed = False
        try:
            run(level, "density, trial run")
        except (ExpensiveError, DivergedError):
            raise
        except BlowUpError:
            if trial == MOST_TRIALS - 1:
                raise
            failed = True
        missing = max(0.0, NEEDED_REACH - level.nearest_end)
        # Where more than half of what was missing still is, reaching further does not help: ends that have come to rest
        # in a core stay at their quantile.
        helps = REACH_SLACK < missing < 0.5 * before
        # A much quieter trial is graded anew.
        met = least * level.least_noise
        if frames.grading.terms.size and (helps or np.any(met < 0.7 * noise)):
            before = missing
            noise, deficit = np.minimum(noise, met), deficit + 1.1 * missing
            wider = wells.reaching(deficit) if wells else grading_of(limit, noise, deficit)
            frames = Frames.plain(nodes, wider, frames.spacing)
        elif frames.spacing == SPACING:
            # Points come closer where a weighted rise is steeper than 0.6, which is less than twice that of a linear X.
            if not failed and not any(each.size for each in jumps_of(level, 0.6)):
                break
            wells = None if failed else between_wells(limit, level)
            if wells is not None:
                frames, noise = Frames.plain(nodes, wells, GRADED_SPACING), np.minimum(noise, met)
            else:
                frames, tolerance = replace(frames, spacing=CLOSER_SPACING), max(tolerance, TRIAL_TOLERANCE)
        elif failed:
            finer *= 1.3  # more points after a trial run that failed
        else:
            jumps = jumps_of(level, narrowest=narrowest)
            if not any(each.size for each in jumps):
                break
            moves = 0 if steeper(frames.jumps, jumps) else moves + 1
            # Places of some jumps that are as steep as before wander for ever.
            enough = moves > 2 or (moves > 0 and not moved(frames.jumps, jumps, nodes.solved[1]))
            frames = frames.with_jumps(at_all_nodes(jumps, *nodes.solved))
            if enough:
                break
    return frames, level


def check_level(limit: Limit, frames: Frames, points: float) -> None:
    """Refuse a level that does not fit into the free memory with those before it."""
    outputs, shape = len(limit.times), (len(frames.nodes.solved[1]), math.ceil(points))
    # All levels that are kept take as much as four of the finest.
    check_memory(outputs, shape, 4 * outputs + 40, "points")


def continued(known: Frames, nodes: Nodes) -> Frames:
    """Frames at other nodes, with jumps where those of the known ones lead to."""
    frames = Frames.plain(nodes, known.grading, known.spacing)
    if not any(each.size for each in known.jumps):
        return frames
    return frames.with_jumps(at_all_nodes(known.jumps, *nodes.solved, known.nodes.solved[0]))


def run(level: Level, label: str) -> None:
    """Advance a level to all output times, or as far as it comes."""
    try:
        with progress_bar(len(level.moments) - 1, label) as bar:
            for index in range(len(level.moments)):
                level.reach(index)
                bar.update(index > 0)
    finally:
        level.release()


CROSSED = 16.0
"""Height of a barrier in units of the noise D = Lambda/2 below which it is crossed. Beyond some 30 units quantiles next
to the top cannot be told apart; from 20 on wells are so narrow that points between them cost more than a jump does."""

BARRIER_AMPLITUDE, BARRIER_WIDTH = 2.0, 0.3
"""Points per factor e of the distance from the middle of the barrier, and the distance within which they are equally
spaced, in units of half the distance of the wells."""


def between_wells(limit: Limit, level: Level) -> Grading | None:
    """Grading between two wells of the drift without tilt at the end of a level; None if no barrier is crossed."""
    reach = float(np.nanmax(np.abs(level.X[-1])))
    w = np.linspace(-reach, reach, 4001)
    potential, noise = _potential(limit, level.moments[-1], w)  # at the last output time
    left, right = np.minimum.accumulate(potential), np.minimum.accumulate(potential[::-1])[::-1]
    top = int(np.argmax(potential - np.maximum(left, right)))
    height = float((potential - np.maximum(left, right))[top])
    if not 0.0 < height < CROSSED * noise:
        return None
    low, high = w[np.argmin(potential[:top])], w[top + np.argmin(potential[top:])]
    term = [[BARRIER_AMPLITUDE], [w[top]], [2.0 / (BARRIER_WIDTH * (high - low))], [LOGARITHMIC]]
    return Grading(np.array(term), CONDENSED_REACH)


def _potential(limit: Limit, moments: FloatArray, w: FloatArray) -> tuple[FloatArray, float]:
    """Potential of the drift without tilt at increasing w, and the noise D, of the mean variance."""
    q, r, square = moments[:-3], moments[-3], moments[-2]
    last, rate, mean = limit.phases[-1], float(limit.learning_rates[-1]), limit.mean_variance
    values = coefficients_at(last, float(limit.times[-1]), limit.arguments_of(moments))
    noise = 0.5 * mean * float(values[q.size])
    growth = values[-1] if limit.free_norm else (q @ values[:-1] + rate * r - noise) / square
    growth -= mean * values[len(limit.coordinates) * 2] if limit.spectrum is not None else 0.0
    steps = rate * last.prior.potential_steps(w)
    return np.concatenate([[0.0], np.cumsum(steps)]) - 0.5 * growth * w * w, noise
