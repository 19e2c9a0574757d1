"""Predicted time of SGD: the number of steps, times the processor time of one step of a trial."""

from __future__ import annotations

import math
from itertools import count

from meanfield.ensembles.simulation import blocks_of
from meanfield.explanation.rates import seconds_of
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.simulation import MOST_TOGETHER
from meanfield.families.contrastive.sgd.steppers import prepare_steppers
from meanfield.problems.problem_keys import with_value
from meanfield.process.cores import available_cores

LARGEST_TRIAL = 1 << 18
"""Largest dimension N of a trial run; with more weights, and samples of them, each step costs in proportion."""

STEPS = {"chain": 256, "projected": 4, "plain": 1}
"""Steps of one call in a trial, so that the call itself takes little of them."""


def particle_seconds(problem: Problem, method: str) -> float:
    """Predict the time of `simulate_sgd`.

    Parameters
    ----------
    problem : Problem
    method : str
        How steps are taken: `plain`, `projected` or `chain`.
    """
    N, trial = problem.particles.dimension, _trial_dimension(problem, method)
    blocks = blocks_of(problem.particles.replicas, MOST_TOGETHER if method == "chain" else 1)
    rounds = math.ceil(len(blocks) / available_cores())
    # Each of fewer than four chains would take longer than one of many.
    together = blocks[0][: max(4, LARGEST_TRIAL // problem.model.batch_size)]
    stepper = prepare_steppers(with_value(problem, "particles.dimension", trial), method)(together)
    steps, calls = max(1, min(STEPS[method], LARGEST_TRIAL // problem.model.batch_size)), count()
    per_step = seconds_of(lambda: stepper.advance(steps * next(calls), steps)) / steps
    whole = len(blocks[0]) / len(together) * (N / trial if method != "chain" else 1.0)
    return rounds * problem.time.stop * N * per_step * whole


def _trial_dimension(problem: Problem, method: str) -> int:
    """Dimension N of the trial run: that of the whole run where steps are quick enough."""
    N = problem.particles.dimension
    if method == "chain":
        return N
    samples = problem.model.batch_size if method == "plain" else 1
    return min(N, max(LARGEST_TRIAL // samples, 64 + 2 * (len(problem.features) + problem.model.channels)))
