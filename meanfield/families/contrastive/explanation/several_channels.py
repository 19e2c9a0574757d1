"""Predicted costs of methods for several channels, whose modules a problem of one channel does not import."""

from __future__ import annotations

from functools import partial

import numpy as np

from meanfield.ensembles.simulation import BYTES_PER_NUMBER
from meanfield.explanation.plane_cost import (
    PACKED_NUMBER,
    SHOWN_CELL,
    numbers_shown,
    predicted_particles,
    predicted_plane,
)
from meanfield.explanation.prediction import HEADER, Prediction, seconds_of, shared
from meanfield.families.contrastive.channels.density.choice import why_no_cells
from meanfield.families.contrastive.channels.density.solver import compared_with, limits_of_runs
from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.channels.limit import joint_limit_of
from meanfield.families.contrastive.channels.states.field import SmoothField, arrangements
from meanfield.families.contrastive.channels.states.symmetry import coincidences
from meanfield.families.contrastive.channels.stationary.cells import Cells
from meanfield.families.contrastive.channels.stationary.equations import PlaneEquations
from meanfield.families.contrastive.channels.stationary.plane import LEVELS, RANDOM_STARTS, SEARCH_SCALE, USUAL_WIDTH
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.density.settings import PARTICLE_TOLERANCE
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.several_vectors.densities import NODE_SCALE, settings_of
from meanfield.several_vectors.display import JOINT_CELLS, joint_outputs


def order_parameters(problem: Problem) -> Prediction:
    """Cost of the trajectory of q and M."""
    d1, d2 = len(problem.features), problem.model.channels
    size = BYTES_PER_NUMBER * problem.time.outputs * (2 * d1 + 3 * d2 + 1) * d2
    seconds = _path_seconds(problem)
    return Prediction("order parameters", "", seconds, 2 * size, size + HEADER, "q, M, and what drives them")


def _path_seconds(problem: Problem) -> float:
    closure = shared(ChannelsInTime, problem)
    # Averages at random take fewer evaluations, for each randomisation, than smooth ones.
    evaluations = 60 * len(closure.runs) if closure.at_random else 600
    return len(closure.stretches) * evaluations * shared(_average_seconds, problem)


def _average_seconds(problem: Problem) -> float:
    """Processor time of averages at the start, of one randomisation if there are any."""
    (closure,) = shared(ChannelsInTime, problem).closures
    return seconds_of(partial(closure.trial, problem.initial_overlap, problem.initial_channel_overlap))


def dynamics(problem: Problem) -> Prediction:
    """Cost of the search for states: of Newton's method from each start, and of paths."""
    (closure,) = shared(ChannelsInTime, problem).closures
    field = SmoothField(problem, closure=closure)
    tries = sum(1 for space in coincidences(field) for _ in arrangements(field.features, space.groups))
    # The random starts take most of the evaluations, usually some 25,000 for each channel.
    # Symmetries leave some 0.3 of the arrangements, and Newton's method evaluates the field ten times for each unknown.
    evaluations = 25_000 * problem.model.channels + 0.3 * tries * 10 * field.unknowns
    # Besides its averages the field takes 30 microseconds.
    seconds = evaluations * (max(1, len(closure.randomisations)) * shared(_average_seconds, problem) + 3e-5)
    return Prediction("dynamics", "", seconds, 1e6, 10_000 + HEADER, "fixed points of the channels, what attracts")


def stationary(problem: Problem) -> Prediction:
    """Cost of the search for stationary states: of fixed points, and of laws on cells where they are not Gaussian."""
    states = 16  # of two channels and two features, up to symmetry
    nodes = Nodes.of(problem, problem.density.feature_nodes, NODE_SCALE)
    seconds, size = dynamics(problem).seconds, PACKED_NUMBER * numbers_shown(len(nodes.u), states)
    if not problem.prior.functions.linear:
        equations = PlaneEquations(shared(ChannelsInTime, problem).at(0.0), nodes, Cells(LEVELS[0], USUAL_WIDTH))
        q, few = np.zeros((len(problem.features), 2)), Nodes.of(problem, problem.density.feature_nodes, SEARCH_SCALE)
        each = seconds_of(partial(equations, equations.start(q, np.eye(2))))
        # Starts take seven evaluations each on few nodes, and a state on finer cells as long as some eighty.
        starts = 7 * (RANDOM_STARTS + 2 * states) * len(few.u) / len(nodes.u)
        seconds = 0.2 * seconds + each * (starts + 80 * states)
    contents = f"states up to symmetry, their stability, P(w|u) on {len(nodes.u)} nodes"
    return Prediction("stationary states", "", seconds, 6 * size, size + HEADER, contents)


def density(problem: Problem) -> Prediction:
    """Cost of the density.

    Raises
    ------
    InputError
        If averages over samples would take too many nodes.
    """
    closure = shared(ChannelsInTime, problem)
    if problem.density.scheme == "particles" or why_no_cells(problem):
        tolerance, compared = problem.density.tolerance or PARTICLE_TOLERANCE, compared_with(closure)
        each = shared(_average_seconds, problem)
        return predicted_particles(limits_of_runs(closure), tolerance, "q, M, r", each, compared)
    if problem.prior.functions.linear:
        return _of_formula(problem)
    return predicted_plane(joint_limit_of(closure), settings_of(problem.density), "q, M, r")


def _of_formula(problem: Problem) -> Prediction:
    nodes = len(feature_quadrature(problem.coordinates, problem.density.feature_nodes, NODE_SCALE)[1])
    outputs = problem.time.outputs
    numbers = numbers_shown(nodes, outputs)
    joint = len(joint_outputs(outputs, nodes)) * (nodes + 1) * JOINT_CELLS**2
    seconds = _path_seconds(problem) + SHOWN_CELL * (numbers + joint)
    memory = 3.0 * BYTES_PER_NUMBER * (numbers + joint)
    contents = f"q, M, r, Gaussian P(w1, w2|u) on {nodes} nodes"
    return Prediction("density", "", seconds, memory, PACKED_NUMBER * numbers + HEADER, contents)
