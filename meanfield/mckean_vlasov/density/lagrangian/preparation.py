"""Trial runs that show where points are needed, before any level counts: in layers, at jumps, and between wells."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.closures import called_values
from meanfield.mckean_vlasov.density.lagrangian.budget import Budget
from meanfield.mckean_vlasov.density.lagrangian.grading import CONDENSED_REACH, Grading, grading_of
from meanfield.mckean_vlasov.density.lagrangian.jumps import NARROWEST, at_all_nodes, jumps_of, moved, steeper
from meanfield.mckean_vlasov.density.lagrangian.level import ExpensiveError, Level
from meanfield.mckean_vlasov.density.lagrangian.points import Frames
from meanfield.mckean_vlasov.density.plan import check_memory
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.quantile_frame.frame import LOGARITHMIC
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

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
    noise = 0.5 * float(called_values(limit.closure, limit.initial_overlap)[-1])
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
        except ExpensiveError:
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
        if frames.grading.terms.size and (helps or level.least_noise < 0.7 * noise):
            before = missing
            noise, deficit = min(noise, level.least_noise), deficit + 1.1 * missing
            wider = wells.reaching(deficit) if wells else grading_of(limit, noise, deficit)
            frames = Frames.plain(nodes, wider, frames.spacing)
        elif frames.spacing == SPACING:
            # Points come closer where a weighted rise is steeper than 0.6, which is less than twice that of a linear X.
            if not failed and not any(each.size for each in jumps_of(level, 0.6)):
                break
            wells = None if failed else between_wells(limit, level)
            if wells is not None:
                frames, noise = Frames.plain(nodes, wells, GRADED_SPACING), min(noise, level.least_noise)
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

AMPLITUDE, WIDTH = 2.0, 0.3
"""Points per factor e of the distance from the middle of the barrier, and the distance within which they are equally
spaced, in units of half the distance of the wells."""


def between_wells(limit: Limit, level: Level) -> Grading | None:
    """Grading between two wells of the drift without tilt at the end of a level; None if no barrier is crossed."""
    reach = float(np.nanmax(np.abs(level.X[-1])))
    w = np.linspace(-reach, reach, 4001)
    potential, noise = _potential(limit, level.moments[-1], w)
    left, right = np.minimum.accumulate(potential), np.minimum.accumulate(potential[::-1])[::-1]
    top = int(np.argmax(potential - np.maximum(left, right)))
    height = float((potential - np.maximum(left, right))[top])
    if not 0.0 < height < CROSSED * noise:
        return None
    low, high = w[np.argmin(potential[:top])], w[top + np.argmin(potential[top:])]
    term = [[AMPLITUDE], [w[top]], [2.0 / (WIDTH * (high - low))], [LOGARITHMIC]]
    return Grading(np.array(term), CONDENSED_REACH)


def _potential(limit: Limit, moments: FloatArray, w: FloatArray) -> tuple[FloatArray, float]:
    """Potential of the drift without tilt at increasing w, and the noise D."""
    q, r, square = moments[:-3], moments[-3], moments[-2]
    values = called_values(limit.closure, q)
    noise = 0.5 * float(values[-1])
    growth = (q @ values[:-1] + limit.learning_rate * r - noise) / square
    steps = limit.learning_rate * limit.prior.potential_steps(w)
    return np.concatenate([[0.0], np.cumsum(steps)]) - 0.5 * growth * w * w, noise
