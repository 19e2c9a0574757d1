"""Trial runs that show where points are needed, before any level counts."""

from __future__ import annotations

import math

from meanfield.errors import BlowUpError
from meanfield.mckean_vlasov.closures import called_values
from meanfield.mckean_vlasov.density.lagrangian.budget import Budget
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
FINER = 1.3
"""Factor on the number of points after a trial run that failed."""

NEEDED_REACH = 7.5
"""Quantile that the last points must not cross on their way inwards."""

QUIETER = 0.7
"""Ratio of the least noise of a trial run to that of its grading below which it is graded anew."""


def first_points(limit: Limit, frames: Frames) -> int:
    """Number of points of the coarsest level."""
    spacing = SPACING if frames.grading.terms.size else PLAIN_SPACING
    return math.ceil(frames.length(limit) / spacing)


def prepare(limit: Limit, nodes: Nodes, budget: Budget) -> Frames:
    """Frames of the nodes, from trial runs.

    Raises
    ------
    BlowUpError
        If no trial run succeeds, or the budget is spent.
    """
    noise, deficit = 0.5 * float(called_values(limit.closure, limit.initial_overlap)[-1]), 0.0
    frames, finer = Frames.plain(nodes, grading_of(limit, noise)), 1.0
    for trial in range(MOST_TRIALS):
        points = math.ceil(finer * first_points(limit, frames))
        level = Level(limit, frames, points, TRIAL_TOLERANCE, budget)
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
        if frames.grading.terms.size and (level.least_noise < QUIETER * noise or missing > 0.0):
            noise, deficit = min(noise, level.least_noise), deficit + 1.1 * missing
            frames = Frames.plain(nodes, grading_of(limit, noise, deficit))
        elif failed:
            finer *= FINER
        else:
            jumps = jumps_of(level)
            better = pays(frames.jumps, jumps)
            frames = frames.with_jumps(jumps)
            if not better:
                break
    return frames


def run(level: Level, label: str) -> None:
    """Advance a level to all output times."""
    with progress_bar(len(level.moments) - 1, label) as bar:
        for index in range(len(level.moments)):
            level.reach(index)
            bar.update(index > 0)
