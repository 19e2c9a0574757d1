"""Trial runs that show where points are needed, before any level counts."""

from __future__ import annotations

import math

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.closures import called_values
from meanfield.mckean_vlasov.density.lagrangian.grading import grading_of
from meanfield.mckean_vlasov.density.lagrangian.jumps import jumps_of, pays
from meanfield.mckean_vlasov.density.lagrangian.level import ExpensiveError, Level
from meanfield.mckean_vlasov.density.lagrangian.points import Frames, Nodes
from meanfield.mckean_vlasov.limit import Limit
from meanfield.process.progress import progress_bar

SPACING = 0.2
"""Distance of points along graded curves in the first level; three digits are enough in a trial run, too."""

PLAIN_SPACING = 0.12
"""Distance of points in the first level without grading."""

TRIAL_TOLERANCE = 1e-5
"""Error of a step in a trial run."""

MOST_TRIALS = 12
MOST_FINER = 3
"""Number of times that a trial run that failed is repeated with more points."""

FINER = 1.5

NEEDED_REACH = 7.5
"""Quantile that the last points must not cross on their way inwards."""

QUIETER = 0.7
"""Ratio of the least noise of a trial run to that of its grading below which it is graded anew."""

TRIAL_STEPS = 4000


def first_points(limit: Limit, frames: Frames) -> int:
    """Number of points of the coarsest level."""
    spacing = SPACING if frames.grading.terms.size else PLAIN_SPACING
    return math.ceil(frames.length(limit) / spacing)


def prepare(limit: Limit, nodes: Nodes) -> Frames:
    """Frames of the nodes, from trial runs.

    Raises
    ------
    BlowUpError
        If no trial run succeeds.
    """
    noise, deficit = 0.5 * float(called_values(limit.closure, limit.initial_overlap)[-1]), 0.0
    frames = Frames.plain(nodes, grading_of(limit, noise))
    for _ in range(MOST_TRIALS):
        level = _trial(limit, frames)
        if frames.grading.terms.size:
            missing = max(0.0, NEEDED_REACH - level.nearest_end)
            if level.least_noise >= QUIETER * noise and missing == 0.0:
                break
            noise, deficit = min(noise, level.least_noise), deficit + 1.1 * missing
            frames = Frames.plain(nodes, grading_of(limit, noise, deficit))
        else:
            jumps = jumps_of(level)
            better = pays(frames.jumps, jumps)
            frames = frames.with_jumps(jumps)
            if not better:
                break
    return frames


def _trial(limit: Limit, frames: Frames) -> Level:
    """A level of low accuracy, with more points if fewer fail."""
    points = first_points(limit, frames)
    for finer in range(MOST_FINER + 1):
        level = Level(limit, frames, math.ceil(points * FINER**finer), TRIAL_TOLERANCE, TRIAL_STEPS)
        try:
            run(level, "density, trial run")
        except ExpensiveError:
            raise
        except BlowUpError:
            if finer == MOST_FINER:
                raise
            continue
        break
    return level


def run(level: Level, label: str) -> None:
    """Advance a level to all output times."""
    with progress_bar(len(level.moments) - 1, label) as bar:
        for index in range(len(level.moments)):
            level.reach(index)
            bar.update(index > 0)
