"""The limit of several vectors by interacting particles, as many and with as many steps as an accuracy needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from meanfield.numerics.refinement import missed
from meanfield.several_vectors.limit import JointLimit
from meanfield.several_vectors.particles import Runs, Size, march
from meanfield.several_vectors.sample import RUNS
from meanfield.typing import FloatArray

DEVIATIONS = 3.5
"""Standard errors of a mean over 8 runs that chance exceeds once in 100 times."""

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


class Found(NamedTuple):
    """Runs that are accurate enough, or the last ones, with their size, errors and status."""

    size: Size
    runs: Runs
    errors: Errors
    status: str


def search_particles(limits: Sequence[JointLimit], tolerance: float, compared: JointLimit | None = None) -> Found:
    """Runs of more particles and steps until the errors of q and M are below a tolerance.

    Parameters
    ----------
    limits : sequence of JointLimit
        Those of each run.
    tolerance : float
        Error allowed in q and M at every output time.
    compared : JointLimit, optional
        That of the first run by another quadrature, where coefficients have errors.

    Notes
    -----
    Errors are 3.5 standard errors of the mean over runs, which chance exceeds once in 100 times, plus what steps of
    twice the length change: more than the error of the steps, which are of order 1.5 where the prior's force jumps and
    else of order 2. Source: several_channels.md, section 5.
    """
    d1, d2 = limits[0].initial_q.shape
    overlaps = _overlaps(limits[0])
    most = MOST_NUMBERS // (1 + d1 + 3 * d2)
    size = PILOT
    chance_before = np.inf
    while True:
        runs = march(limits, size, f"{RUNS} runs of {size.particles:,} particles")
        longer = Size(size.particles, 2 * size.steps)
        if runs.status.startswith("failed") and longer.steps <= MOST_STEPS:
            size = longer
            continue
        errors = _errors(runs, size, compared)
        if runs.status != "complete":
            return Found(size, runs, errors, runs.status)
        chance, steps, quadrature = errors.largest(overlaps)
        if chance + steps + quadrature <= tolerance:
            return Found(size, runs, errors, "complete")
        wanted = _next_size(size, tolerance - quadrature, chance, steps)
        # More particles do not help where the errors by chance stay: the averages themselves are random.
        floor = wanted.particles > size.particles and chance > 0.8 * chance_before
        if wanted.particles > most or wanted.steps > MOST_STEPS or floor or quadrature >= tolerance:
            return Found(size, runs, errors, _missed(limits[0], tolerance, (chance, steps, quadrature), most))
        chance_before = chance if wanted.particles > size.particles else np.inf
        size = wanted


def size_after_pilot(limits: Sequence[JointLimit], tolerance: float, compared: JointLimit | None = None) -> Size:
    """Numbers that the errors of a pilot to the first output time ask for at the last one; its own if it fails."""
    times = limits[0].times
    intervals = len(times) - 1
    first = np.array([0.0, times[-1] / intervals])
    short = [replace(each, times=first, snapshots=()) for each in limits]
    runs = march(short, PILOT, "pilot")
    if runs.status != "complete":
        return PILOT
    other = None if compared is None else replace(compared, times=first, snapshots=())
    chance, steps, quadrature = _errors(runs, PILOT, other).largest(_overlaps(limits[0]))
    # Errors by chance grow like the root of time, those of steps like time, until trajectories come to rest.
    chance, steps = chance * min(math.sqrt(intervals), 3.0), steps * min(intervals, 30)
    return _next_size(PILOT, tolerance - quadrature, chance, steps)


def _overlaps(limit: JointLimit) -> slice:
    """Places of q and M among the moments."""
    features, weights = limit.initial_q.shape
    return slice(0, (features + weights) * weights)


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


def _missed(limit: JointLimit, tolerance: float, errors: tuple[float, float, float], most: int) -> str:
    chance, steps, quadrature = errors
    parts = f"{chance:.2g} by chance, {steps:.2g} by steps and {quadrature:.2g} by the quadrature over a batch"
    remedy = (
        f"it takes more than {most:,} particles of a run, {MOST_STEPS:,} steps between two output times, or better "
        "averages; raise it"
    )
    what = f"{' and '.join(limit.words.overlaps)} ({parts})"
    return f"failed: {missed(what, sum(errors), 'density.tolerance', tolerance, remedy)}"


def _errors(runs: Runs, size: Size, compared: JointLimit | None) -> Errors:
    chance = DEVIATIONS * runs.fine.std(axis=0, ddof=1) / np.sqrt(len(runs.fine))
    steps = np.maximum.accumulate(np.abs((runs.coarse - runs.fine).mean(axis=0)), axis=0)
    quadrature = np.zeros_like(steps)
    if compared is not None and runs.status == "complete":
        other = march([compared], size, "particles, error")
        quadrature = np.abs(other.fine[0] - runs.fine[0])
    return Errors(chance, steps, quadrature)


def particle_arrays(limit: JointLimit, found: Found) -> dict[str, FloatArray]:
    """Overlaps q, M and work r of the prior, means over runs, with their errors, and some of the particles."""
    (d1, d2), runs, errors = limit.initial_q.shape, found.runs, found.errors
    weights = runs.weights.swapaxes(0, 1)
    mean = _by_name(runs.fine.mean(axis=0), d1, d2)
    error = _by_name(errors.chance + errors.steps + errors.quadrature, d1, d2)
    return (
        {"time": limit.times}
        | mean
        | {f"{name}_error": values for name, values in error.items()}
        | {
            "snapshot_time": limit.times[list(limit.snapshots)],
            "u_sample": runs.features.reshape(-1, d1),
            "w_sample": weights.reshape(len(weights), -1, d2),
        }
    )


def effort_of(limit: JointLimit, found: Found) -> dict[str, int]:
    """Particles and steps, for the provenance."""
    return {"particles": RUNS * found.size.particles, "steps": found.size.steps * (len(limit.times) - 1)}


def _by_name(moments: FloatArray, d1: int, d2: int) -> dict[str, FloatArray]:
    q, M, r = np.split(moments, [d1 * d2, (d1 + d2) * d2], axis=-1)
    return {"q": q.reshape(-1, d1, d2), "M": M.reshape(-1, d2, d2), "r": r}
