"""Predicted cost of training: usual numbers of evaluations, times the processor time of one."""

from __future__ import annotations

from functools import partial

from meanfield.explanation.prediction import Prediction
from meanfield.explanation.rates import seconds_of
from meanfield.explanation.replicas import HEADER, cost_of_replicas
from meanfield.families.alpha_contrastive.particles.simulation import simulation_of
from meanfield.families.alpha_contrastive.particles.stepper import Replicas
from meanfield.families.alpha_contrastive.population.solver import Flow, drift_of
from meanfield.families.alpha_contrastive.problem import Problem

BYTES = 8
"""Number of bytes of a double."""

EVALUATIONS, STEPS = 12, 3.0
"""Rates of change in a step of the flow, and usual number of steps in a unit of time, with unit weights."""

COPIES = 3
"""Usual number of arrays of the size of all outputs at once."""


def population(problem: Problem) -> Prediction:
    """Cost of the exact flow, from some rates of change."""
    flow = Flow(problem, drift_of(problem))
    per_rate = seconds_of(lambda: flow.rate(0.0, flow.start))
    rates = EVALUATIONS * (1.0 + STEPS * problem.time.stop / (1.0 - problem.training.momentum))
    numbers = problem.time.outputs * len(flow.start)
    contents = f"{len(flow.start):,} weights, energy, scores and ranks at {problem.time.outputs:,} times"
    return Prediction("population", "", rates * per_rate, BYTES * COPIES * numbers, BYTES * numbers + HEADER, contents)


def particles(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    return cost_of_replicas(simulation_of(problem), partial(Replicas, problem))
