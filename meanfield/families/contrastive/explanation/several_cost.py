"""Predicted cost of the density of several channels, by formula, on cells or with particles."""

from __future__ import annotations

import time

from meanfield.ensembles.memory import BYTES_PER_NUMBER
from meanfield.explanation.prediction import Prediction, shared
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.density.choice import why_no_cells
from meanfield.families.contrastive.channels.density.display import CELLS, JOINT_CELLS, joint_outputs
from meanfield.families.contrastive.channels.density.plan import coarse_plan, fixed_plan
from meanfield.families.contrastive.channels.density.search import FACTORS, MOST_WORK
from meanfield.families.contrastive.channels.density.solver import NODE_SCALE, settings_of
from meanfield.families.contrastive.channels.limit.solver import PILOT, RUNS, size_after_pilot
from meanfield.families.contrastive.explanation.analysis_costs import channels_seconds
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.cells import feature_quadrature

CELL_STEP = 8e-8
"""Seconds for each cell, node and step of a level: five sweeps along lines of cells."""

SHOWN_CELL = 3e-7
"""Seconds for each cell and node at each output time, for the densities that are shown."""

PACKED_NUMBER = 0.55 * BYTES_PER_NUMBER
"""Bytes that are left of a number of a density when it is compressed."""

HEADER = 16_000
"""Number of bytes of a file that holds little else than attributes."""


def several_cost(problem: Problem) -> Prediction:
    """Predict time, memory and size of the density of several channels.

    Raises
    ------
    InputError
        If averages over samples would take too many nodes.
    """
    closure = shared(ChannelClosure, problem)
    if problem.density.scheme == "particles" or why_no_cells(problem):
        return _of_particles(problem, closure)
    return _of_formula(problem) if problem.prior.functions.linear else _of_cells(problem, closure)


def _of_cells(problem: Problem, closure: ChannelClosure) -> Prediction:
    settings = settings_of(problem)
    factors: tuple[int, ...]
    if settings.tolerance is None:
        plan, factors, more = fixed_plan(closure, settings), (1, 2), 1.0
    else:
        plan, factors = coarse_plan(closure, settings, settings.tolerance), FACTORS[:5]  # most searches end there
        discrete = len(plan.nodes.weight) <= 2 ** len(problem.features)
        # Where the law is continuous, the choice of nodes costs as much again, and leaves more of them than at first.
        more = 1.0 if discrete or settings.feature_nodes else 3.0
    outputs, nodes = problem.time.outputs, int(more * len(plan.nodes.weight))
    work = more * sum(plan.work(factor) for factor in factors)
    shown = more * outputs * sum(plan.cells(factor) ** 2 for factor in factors) * len(plan.nodes.solved[1])
    seconds = CELL_STEP * work + SHOWN_CELL * shown
    last = factors[-1]
    warning = ""
    if more * plan.work(last) > MOST_WORK:
        seconds = min(seconds, CELL_STEP * len(factors) * MOST_WORK)
        warning = "density.tolerance seems out of reach: the levels that it needs take too long; raise it"
    size = PACKED_NUMBER * _numbers(nodes, outputs) + HEADER
    contents = f"q, M, r, P(w1, w2|u) on {nodes} nodes x {plan.cells(last)} x {plan.cells(last)} cells"
    return Prediction("density", "", seconds, more * plan.memory(last), size, contents, warning)


def _of_formula(problem: Problem) -> Prediction:
    nodes = len(feature_quadrature(problem.coordinates, problem.density.feature_nodes, NODE_SCALE)[1])
    outputs = problem.time.outputs
    numbers = _numbers(nodes, outputs)
    joint = len(joint_outputs(outputs, nodes)) * (nodes + 1) * JOINT_CELLS**2
    seconds, memory = (
        channels_seconds(problem) + SHOWN_CELL * (numbers + joint),
        3.0 * BYTES_PER_NUMBER * (numbers + joint),
    )
    contents = f"q, M, r, Gaussian P(w1, w2|u) on {nodes} nodes"
    return Prediction("density", "", seconds, memory, PACKED_NUMBER * numbers + HEADER, contents)


def _of_particles(problem: Problem, closure: ChannelClosure) -> Prediction:
    """Time of the pilot, times the particles and steps that its errors ask for."""
    size_after_pilot(problem, closure)  # loads what is compiled
    began = time.process_time()
    size = size_after_pilot(problem, closure)
    pilot = time.process_time() - began
    factor = size.particles * size.steps / (PILOT.particles * PILOT.steps)
    d1, d2 = len(problem.features), problem.model.channels
    memory = 4.0 * BYTES_PER_NUMBER * RUNS * size.particles * (d1 + 3 * d2)
    seconds = (1.0 + factor) * pilot
    return Prediction("density", "", seconds, memory, HEADER + 1e6, "q, M, r, weights of interacting particles")


def _numbers(nodes: int, outputs: int) -> float:
    """Numbers of the densities of single weights, which a result holds."""
    return float(2 * outputs * CELLS * (nodes + 2))
