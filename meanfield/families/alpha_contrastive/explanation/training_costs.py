"""Predicted cost of training: usual numbers of evaluations, times the processor time of one."""

from __future__ import annotations

import math
from functools import partial

from meanfield.explanation.prediction import Prediction, prediction_of
from meanfield.explanation.rates import seconds_of
from meanfield.explanation.replicas import cost_of_replicas
from meanfield.families.alpha_contrastive.filters import GivenStart
from meanfield.families.alpha_contrastive.particles.simulation import simulation_of
from meanfield.families.alpha_contrastive.particles.stepper import Replicas
from meanfield.families.alpha_contrastive.population.solver import Flow, drift_of
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.problem_keys import with_values

TRIAL, FEWEST = 1 << 18, 2
"""Largest number of pairs of samples, and of their activations, in all batches of a trial of SGD; least of a batch."""


def population(problem: Problem) -> Prediction:
    """Cost of the exact flow, from some rates of change."""
    filters, given = problem.filters.count, isinstance(problem.filters.start, GivenStart)
    fewer = filters if given else min(filters, 4096)  # more of them cost, and have weights, in proportion
    trial = with_values(problem, {"filters.count": fewer})
    flow = Flow(trial, drift_of(trial))
    per_rate = filters / fewer * seconds_of(lambda: flow.rate(0.0, flow.start))
    # With unit weights the flow takes some 3 steps per unit of time, of 12 rates of change each.
    rates = 12 * (1.0 + 3.0 * problem.time.stop / (1.0 - problem.training.momentum))
    weights = len(flow.start) // fewer * filters
    numbers = problem.time.outputs * weights
    contents = f"{weights:,} weights, energy, scores and ranks at {problem.time.outputs:,} times"
    return prediction_of("population", rates * per_rate, 3 * numbers, numbers, contents)


def particles(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    simulation, (places, filters, _) = simulation_of(problem), problem.shape
    batch, tests, together = problem.training.batch_size, problem.particles.test_batches, len(simulation.blocks[0])
    activations = places * filters
    fewer = min(batch, max(FEWEST, min(math.isqrt(TRIAL // together), TRIAL // (together * activations))))
    of_trial, of_batch = (float(n * (n + activations)) for n in (fewer, batch))
    scored = min(tests, max(1, int(TRIAL // (together * of_trial))))
    trial = with_values(problem, {"training.batch_size": fewer, "particles.test_batches": scored})
    step = of_batch / of_trial
    return cost_of_replicas(simulation, partial(Replicas, trial), step, step * tests / scored)
