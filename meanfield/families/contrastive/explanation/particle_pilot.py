"""Predicted time of SGD: the first steps of the first replicas, on all cores at once as in the whole run."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor

from meanfield.ensembles.simulation import blocks_of
from meanfield.ensembles.stepper import Stepper
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.simulation import MOST_TOGETHER
from meanfield.families.contrastive.sgd.steppers import prepare_steppers
from meanfield.process.cores import available_cores

BUDGET = 0.25
"""Seconds of steps, about, that a trial run takes."""

LARGEST_TRIAL = 1 << 18
"""Largest dimension N of a trial run; with more weights, and samples of them, each step costs in proportion."""


def particle_seconds(problem: Problem, method: str) -> float:
    """Predict the time of `simulate_sgd` by a short run of it.

    Parameters
    ----------
    problem : Problem
    method : str
        How steps are taken: `plain`, `projected` or `chain`.
    """
    N, replicas = problem.particles.dimension, problem.particles.replicas
    trial = _trial_dimension(problem, method)
    blocks = blocks_of(replicas, MOST_TOGETHER if method == "chain" else 1)
    workers = min(available_cores(), len(blocks))
    small = problem.model_copy(
        update={"particles": problem.particles.model_copy(update={"dimension": trial, "replicas": replicas})}
    )
    make_stepper = prepare_steppers(small, method)
    started = time.perf_counter()
    steppers = [make_stepper(block) for block in blocks[:workers]]
    start = (time.perf_counter() - started) / workers
    rounds = math.ceil(len(blocks) / workers)
    steps = round(problem.time.stop * N)
    longest = round(problem.time.stop * trial)
    with ThreadPoolExecutor(workers) as pool:
        per_step = _seconds_per_step(pool, steppers, longest)
    scale = N / trial if method != "chain" else 1.0
    return rounds * scale * (start + steps * per_step)


def _trial_dimension(problem: Problem, method: str) -> int:
    """Dimension N of the trial run: that of the whole run where steps are quick enough."""
    N = problem.particles.dimension
    if method == "chain":
        return N
    samples = problem.model.batch_size if method == "plain" else 1
    return min(N, max(LARGEST_TRIAL // samples, 64 + 2 * len(problem.features)))


def _seconds_per_step(pool: ThreadPoolExecutor, steppers: list[Stepper], longest: int) -> float:
    """Wall time of one step of all blocks at once, by ever longer calls."""

    def take(first: int, steps: int) -> float:
        started = time.perf_counter()
        list(pool.map(lambda stepper: stepper.advance(first, steps), steppers))
        return time.perf_counter() - started

    take(0, 1)  # not timed: it may compile
    first, steps, seconds, since = 1, 1, 0.0, time.perf_counter()
    while time.perf_counter() - since < BUDGET / 2 and first + 2 * steps <= max(longest, 3):
        first, steps = first + steps, 2 * steps
        seconds = take(first, steps)
    return seconds / steps
