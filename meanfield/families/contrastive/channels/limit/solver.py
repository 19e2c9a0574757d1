"""The limit of several channels by interacting particles, as many and with as many steps as an accuracy needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.channels.limit.particles import Runs, Size, march
from meanfield.families.contrastive.channels.limit.start import RUNS
from meanfield.families.contrastive.channels.trajectory import DEVIATIONS, averages_along
from meanfield.families.contrastive.initial_state import with_errors_of_start
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.density.settings import PARTICLE_TOLERANCE
from meanfield.numerics.refinement import missed
from meanfield.problems.problem_keys import with_values
from meanfield.results.solved import Solved
from meanfield.typing import FloatArray

PILOT = Size(particles=2000, steps=4)
"""Size at which the search begins: a few hundredths of a second."""

MOST_STEPS = 2**14
"""Largest number of steps between two output times."""

MOST_NUMBERS = 2**22
"""Largest number of numbers that the particles of a run hold: 32 MB, and as much again three times."""


@dataclass(frozen=True)
class Errors:
    """Errors of the moments at the output times, shape (outputs, moments).

    Parameters
    ----------
    chance : ndarray
        What chance exceeds once in 100 times: `DEVIATIONS` standard errors of the mean over runs.
    steps : ndarray
        What steps of twice the length change, at most up to a time.
    quadrature : ndarray
        What another quadrature over one sample changes in the first run.
    """

    chance: FloatArray
    steps: FloatArray
    quadrature: FloatArray

    def largest(self, moments: slice) -> tuple[float, float, float]:
        """Largest of each at any time, of some moments."""
        return (
            float(self.chance[:, moments].max()),
            float(self.steps[:, moments].max()),
            float(self.quadrature[:, moments].max()),
        )


def solve_particles(closure: ChannelsInTime, tolerance: float) -> Solved:
    """Overlaps q, M and prior work r of several channels by interacting particles, with their errors.

    Parameters
    ----------
    closure : ChannelsInTime
        Of a problem of several channels and a start that is not random, with any prior.
    tolerance : float
        Error allowed in q and M at every output time; the numbers of particles and steps follow from it.

    Returns
    -------
    Solved
        `q`, `M` and `r`, means over 8 independent runs; `q_error`, `M_error` and `r_error`; `P_gain`, `D` and `Lambda`
        at the mean overlaps; `w_sample` and `u_sample`, weights of all channels and features at one coordinate for
        some particles of all runs, at the times of `particles.snapshots`. The attribute `status` is `complete`,
        `interrupted` or `failed: ...`; output times that were not reached are NaN. A tolerance that was missed is a
        failure, with all output times and the errors there are.

    Notes
    -----
    Errors are 3.5 standard errors of the mean over runs, which chance exceeds once in 100 times, plus what steps of
    twice the length change: more than the error of the steps, which are of order 1.5 where the prior's force jumps and
    else of order 2. All quantities are dimensionless. Source: several_channels.md, section 5.
    """
    problem = closure.problem
    size, runs, errors, status = _search(problem, closure, tolerance)
    effort = {"particles": RUNS * size.particles, "steps": size.steps * (problem.time.outputs - 1)}
    arrays = with_errors_of_start(problem, _arrays(problem, closure, runs, errors))
    return Solved("limit_particles", arrays, status, effort=effort)


def _search(problem: Problem, closure: ChannelsInTime, tolerance: float) -> tuple[Size, Runs, Errors, str]:
    """Runs of more particles and steps until the errors of q and M are below the tolerance."""
    averages = runs_of(closure)
    d1, d2 = len(problem.features), problem.model.channels
    overlaps = _overlaps(problem)
    most = MOST_NUMBERS // (1 + d1 + 3 * d2)
    size = PILOT
    chance_before = np.inf
    while True:
        runs = march(problem, averages, size, f"{RUNS} runs of {size.particles:,} particles")
        longer = Size(size.particles, 2 * size.steps)
        if runs.status.startswith("failed") and longer.steps <= MOST_STEPS:
            size = longer
            continue
        errors = _errors(problem, averages, size, runs)
        if runs.status != "complete":
            return size, runs, errors, runs.status
        chance, steps, quadrature = errors.largest(overlaps)
        if chance + steps + quadrature <= tolerance:
            return size, runs, errors, "complete"
        wanted = _next_size(size, tolerance - quadrature, chance, steps)
        # More particles do not help where the errors by chance stay: the averages themselves are random.
        floor = wanted.particles > size.particles and chance > 0.8 * chance_before
        if wanted.particles > most or wanted.steps > MOST_STEPS or floor or quadrature >= tolerance:
            return size, runs, errors, _missed(tolerance, chance, steps, quadrature, most)
        chance_before = chance if wanted.particles > size.particles else np.inf
        size = wanted


def runs_of(closure: ChannelsInTime) -> list[ChannelsInTime]:
    """Averages of each of the independent runs."""
    return closure.runs if closure.at_random else [closure] * RUNS


def size_after_pilot(problem: Problem, averages: list[ChannelsInTime]) -> Size:
    """Numbers that the errors of a pilot to the first output time ask for at the last one; its own if it fails."""
    intervals = problem.time.outputs - 1
    short = with_values(problem, {"time.stop": problem.time.stop / intervals, "time.outputs": 2})
    runs = march(short, averages, PILOT, "pilot")
    if runs.status != "complete":
        return PILOT
    chance, steps, quadrature = _errors(short, averages, PILOT, runs).largest(_overlaps(problem))
    # Errors by chance grow like the root of time, those of steps like time, until trajectories come to rest.
    chance, steps = chance * min(math.sqrt(intervals), 3.0), steps * min(intervals, 30)
    return _next_size(PILOT, (problem.density.tolerance or PARTICLE_TOLERANCE) - quadrature, chance, steps)


def _overlaps(problem: Problem) -> slice:
    """Places of q and M among the moments."""
    return slice(0, (len(problem.features) + problem.model.channels) * problem.model.channels)


def _next_size(size: Size, tolerance: float, chance: float, steps: float) -> Size:
    """Numbers with which errors should be below what is left of the tolerance."""
    particles, count = size.particles, size.steps
    for_chance = 0.7 * tolerance  # the larger part: particles are dearer than steps
    for_steps = tolerance - for_chance
    if tolerance > 0 and chance > for_chance:
        # A spread of 8 runs is right to a quarter, hence 1.3 times the number of particles.
        particles = int(1.3 * particles * (chance / for_chance) ** 2)
    if tolerance > 0 and steps > for_steps:
        factor = min(max(steps / for_steps, 1.5), 8)  # as if of order 1
        count = 2 * int(np.ceil(0.5 * factor * count))
    return Size(particles, count)


def _missed(tolerance: float, chance: float, steps: float, quadrature: float, most: int) -> str:
    parts = f"{chance:.2g} by chance, {steps:.2g} by steps and {quadrature:.2g} by the quadrature over a batch"
    remedy = (
        f"it takes more than {most:,} particles of a run, {MOST_STEPS:,} steps between two output times, or better "
        "averages; raise it"
    )
    error = chance + steps + quadrature
    return f"failed: {missed(f'q and M ({parts})', error, 'density.tolerance', tolerance, remedy)}"


def _errors(problem: Problem, averages: list[ChannelsInTime], size: Size, runs: Runs) -> Errors:
    chance = DEVIATIONS * runs.fine.std(axis=0, ddof=1) / np.sqrt(len(runs.fine))
    steps = np.maximum.accumulate(np.abs((runs.coarse - runs.fine).mean(axis=0)), axis=0)
    quadrature = np.zeros_like(steps)
    if averages[0].compared is not None and runs.status == "complete":
        other = march(problem, [averages[0].compared], size, "particles, error")
        quadrature = np.abs(other.fine[0] - runs.fine[0])
    return Errors(chance, steps, quadrature)


def _arrays(problem: Problem, closure: ChannelsInTime, runs: Runs, errors: Errors) -> dict[str, Any]:
    """Variables of the Dataset."""
    d1, d2 = len(problem.features), problem.model.channels
    mean = _by_name(runs.fine.mean(axis=0), d1, d2)
    error = _by_name(errors.chance + errors.steps + errors.quadrature, d1, d2)
    weights = runs.weights.swapaxes(0, 1)
    return (
        {"time": problem.time.outputs_at}
        | mean
        | {f"{name}_error": values for name, values in error.items()}
        | averages_along(closure, mean["q"], mean["M"])
        | {
            "snapshot_time": problem.time.outputs_at[problem.particles.snapshot_index(problem.time)],
            "u_sample": runs.features.reshape(-1, d1),
            "w_sample": weights.reshape(len(weights), -1, d2),
        }
    )


def _by_name(moments: FloatArray, d1: int, d2: int) -> dict[str, FloatArray]:
    q, M, r = np.split(moments, [d1 * d2, (d1 + d2) * d2], axis=-1)
    return {"q": q.reshape(-1, d1, d2), "M": M.reshape(-1, d2, d2), "r": r}
