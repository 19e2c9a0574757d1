"""Predicted cost of methods: usual numbers of evaluations of the rates of change, times the time of one."""

from __future__ import annotations

import math
import time
from contextlib import suppress

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.explanation.prediction import Prediction
from meanfield.families.hidden_manifold.order_parameters.averaging.stationary_averages import GROUPS, FastChains
from meanfield.families.hidden_manifold.order_parameters.averaging.trajectory import NO_QUADRATURE, REPEATED, STEP
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import make_system, start_of
from meanfield.families.hidden_manifold.order_parameters.trajectory import (
    FEWEST_NODES,
    LOWEST_ORDER,
    MORE,
    POINTS_PER_DIGIT,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.regimes import has_fast_means

EVALUATIONS = 13
"""Evaluations of the rates in a step."""

STEPS, STEPS_PER_TIME = 40, 1.0
"""Usual number of steps: for what happens first, and per unit of eta t."""

SOLUTIONS = 2.5
"""Usual number of solutions until two agree, the finer ones counted by their cost."""

JACOBIANS = 60
"""Usual number of Jacobians in a search for fixed points."""

SEARCH_STEPS = 5000
"""Usual number of steps of its trajectories."""

FEW_NODES, AVERAGES, BATCHES = 10, 4, 1.5
"""Usual number of nodes, of averages over fast means in a step, and of batches of chains."""

TIMED = 0.02
"""Seconds for which rates are timed."""

BYTES = 8.0
"""Bytes of a number."""

HEADER = 60e3
"""Bytes of a file besides its numbers."""

CELL_ROWS = 240.0
"""Cells of a density for each node and student."""


def order_parameters(problem: Problem) -> Prediction:
    """Cost of the order parameters."""
    if has_fast_means(problem):
        return _averaged(problem)
    seconds, size, nodes = _unit(problem)
    numbers = problem.time.outputs * size
    contents = f"Q, R, v at {problem.time.outputs:,} times, {nodes} nodes"
    return Prediction(
        "order parameters", "", _path(problem, seconds), 3 * BYTES * numbers, BYTES * numbers + HEADER, contents
    )


def _averaged(problem: Problem) -> Prediction:
    """Cost of order parameters that move by averages over fast means: of chains at the start, timed once."""
    nodes = problem.inputs.spectrum.nodes(problem.inputs.aspect_ratio, FEW_NODES)
    system = make_system(problem, nodes, NO_QUADRATURE)
    start, outputs = start_of(problem, system), problem.time.outputs
    chains, seconds = FastChains(problem, system, start, 0), 0.0
    with suppress(BlowUpError):  # which the solver meets as well, at once
        chains.settle(0.0)
        began = time.process_time()
        speed = chains.averages(0.0, np.tile(start, (GROUPS, 1))).speed
        evaluations = AVERAGES * math.ceil(problem.time.stop * speed / STEP) + (AVERAGES + REPEATED) * outputs
        seconds = BATCHES * evaluations * (time.process_time() - began)
    contents = f"Q, R, v at {outputs:,} times, {FEW_NODES} nodes, averaged over fast means"
    numbers = outputs * len(start)
    return Prediction("order parameters", "", seconds, 3 * GROUPS * BYTES * numbers, BYTES * numbers + HEADER, contents)


def density(problem: Problem) -> Prediction:
    """Cost of the density."""
    seconds, size, nodes = _unit(problem)
    numbers = problem.time.outputs * (size + nodes * problem.students * CELL_ROWS)
    contents = f"P(w|rho) at {problem.time.outputs:,} times, {nodes} nodes"
    return Prediction("density", "", _path(problem, seconds), 3 * BYTES * numbers, BYTES * numbers + HEADER, contents)


def fixed_points(problem: Problem) -> Prediction:
    """Cost of the search for fixed points."""
    seconds, size, _ = _unit(problem)
    evaluations = 2 * JACOBIANS * size + EVALUATIONS * SEARCH_STEPS
    return Prediction("fixed points", "", evaluations * seconds, 4 * BYTES * size**2, HEADER, "states, eigenvalues")


def _path(problem: Problem, seconds: float) -> float:
    steps = STEPS + STEPS_PER_TIME * problem.training.learning_rate * problem.time.stop
    return SOLUTIONS * EVALUATIONS * steps * seconds


def _unit(problem: Problem) -> tuple[float, int, int]:
    """Time of an evaluation of the rates, length of a state, and number of nodes."""
    digits = math.ceil(-math.log10(problem.order_parameters.tolerance))
    count = math.ceil(MORE * (FEWEST_NODES + digits))
    nodes = problem.inputs.spectrum.nodes(problem.inputs.aspect_ratio, count)
    system = make_system(problem, nodes, LOWEST_ORDER + POINTS_PER_DIGIT * digits)
    y = start_of(problem, system)
    rate, calls = np.empty(len(y)), 0
    rates(y, system, rate)  # compiles, or loads what is compiled
    started = time.process_time()
    while calls == 0 or time.process_time() - started < TIMED:
        rates(y, system, rate)
        calls += 1
    return (time.process_time() - started) / calls, len(y), len(nodes.rho)
