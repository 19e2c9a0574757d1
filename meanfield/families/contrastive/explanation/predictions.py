"""Predictions for all methods of contrastive problems: whether they apply, time, memory, and size of the file."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np

from meanfield.ensembles.simulation import BYTES_PER_NUMBER, blocks_of
from meanfield.explanation.density_cost import predicted_density
from meanfield.explanation.prediction import HEADER, Prediction, seconds_of
from meanfield.explanation.replicas import prediction_of_replicas
from meanfield.explanation.stationary_cost import predicted_stationary
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.fixed_points.symmetries import is_reflected, lasting, sign_symmetries
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.problem import Problem, without_velocity
from meanfield.families.contrastive.sgd.simulation import MOST_TOGETHER, simulation_of
from meanfield.families.contrastive.sgd.steppers import prepare_steppers
from meanfield.mckean_vlasov.drive import reference_of
from meanfield.mckean_vlasov.order_parameters import rate
from meanfield.problems.family import resolve
from meanfield.problems.in_time import pieces_in_steps
from meanfield.problems.problem_keys import with_value
from meanfield.process.cores import available_cores
from meanfield.typing import FloatArray

SEVERAL_CHANNELS = "meanfield.families.contrastive.explanation.several_channels"
"""Module of the costs for several channels, which takes a third of a second to import."""

LARGEST_TRIAL = 1 << 18
"""Largest number of weights of a trial run, and of samples; with more of them each step costs in proportion."""

STEPS = {"chain": 256, "projected": 4, "plain": 1}
"""Steps of one call in a trial, so that the call itself takes little of them."""

DYNAMICS = {1: (1.0, 820), 2: (3.0, 10_000), 3: (1.0, 4_000), 4: (1.0, 8_000), 5: (1.0, 20_000)}
"""Seconds of `analyse_dynamics` that do not depend on the coefficients, and its usual number of evaluations: up to two
features in cells of q, and of more, which are independent, in sets of those that are learnt."""


def density(problem: Problem) -> Prediction:
    """Cost of the density: of one channel from a pilot on the coarsest level."""
    if problem.model.channels > 1:
        return _of_channels("density", problem)
    return predicted_density(limit_of(problem), problem.density, "q, r")


def order_parameters(problem: Problem) -> Prediction:
    """Cost of the trajectory of the overlaps."""
    if problem.model.channels > 1:
        return _of_channels("order_parameters", problem)
    d1 = len(problem.features)
    size = BYTES_PER_NUMBER * problem.time.outputs * (d1 * (d1 + 2) + 2)
    contents = (
        "q"
        if problem.model.centering == "batch" or problem.model.momentum_rate
        else "q, and its covariance at finite N"
    )
    seconds = 2000 * _evaluation_seconds(problem)  # the usual number, with those of the covariance
    return Prediction("order parameters", "", seconds, 2 * size, size + HEADER, contents)


def dynamics(problem: Problem) -> Prediction:
    """Cost of fixed points, portrait and random starts."""
    if problem.model.channels > 1:
        return _of_channels("dynamics", problem)
    field = VectorField(problem)
    d1, flips = field.features, sign_symmetries(field)
    seconds, evaluations = DYNAMICS[min(d1, max(DYNAMICS))]
    reflected = is_reflected(flips)
    if d1 > 2 and not reflected and lasting(field):
        evaluations = 320_000  # the usual number where features depend on each other
    if d1 == 2 and not reflected:
        evaluations *= 3  # all signs of q are searched
    seconds += evaluations * _evaluation_seconds(problem)
    size = 240_000 if d1 == 2 else 10_000
    return Prediction("dynamics", "", seconds, 20 * size, size + HEADER, "fixed points, what attracts, random starts")


def _of_channels(method: str, problem: Problem) -> Prediction:
    found: Prediction = resolve(f"{SEVERAL_CHANNELS}:{method}")(problem)
    return found


def _evaluation_seconds(problem: Problem) -> float:
    """Processor time of one evaluation of dq/dt."""
    return seconds_of(partial(rate, Closure(reference_of(without_velocity(problem))), _typical(problem)))


def stationary(problem: Problem) -> Prediction:
    """Cost of the search for stationary states."""
    if problem.model.channels > 1:
        return _of_channels("stationary", problem)
    return predicted_stationary(limit_of(problem), problem.density.feature_nodes)


def _typical(problem: Problem) -> FloatArray:
    """Overlaps at which coefficients and equations are timed, of a norm that there is on the way."""
    return np.full(len(problem.features), 0.6 * len(problem.features) ** -0.5)


def particles(problem: Problem) -> Prediction:
    """Cost of SGD, from some steps; see `prediction_of_replicas`."""
    simulation = simulation_of(problem)
    # Each byte of weights takes 2.5e-8 seconds to be compressed and written.
    written = 2.5e-8 * problem.particles.replicas * simulation.snapshot_bytes
    found = prediction_of_replicas(
        simulation, lambda: particle_seconds(problem, simulation.label) + written, ", ".join(simulation.rows)
    )
    return replace(found, contents=f"{found.contents} ('{simulation.label}')")


def particle_seconds(problem: Problem, method: str) -> float:
    """Predict the time of `simulate_sgd`.

    Parameters
    ----------
    problem : Problem
    method : str
        How steps are taken: `plain`, `projected` or `chain`.
    """
    N, samples = problem.particles.dimension, _usual_batch(problem)
    fewer = min(samples, LARGEST_TRIAL // 4)
    trial = with_value(problem, "model.batch_size", fewer)
    dimension = _trial_dimension(trial, method)
    blocks = blocks_of(problem.particles.replicas, MOST_TOGETHER if method == "chain" else 1)
    rounds = math.ceil(len(blocks) / available_cores())
    # Each of fewer than four chains would take longer than one of many.
    together = blocks[0][: max(4, LARGEST_TRIAL // fewer)]
    stepper = prepare_steppers(with_value(trial, "particles.dimension", dimension), method)(together)
    steps, calls = max(1, min(STEPS[method], LARGEST_TRIAL // (fewer * len(together)))), count()
    per_step = seconds_of(lambda: stepper.advance(steps * next(calls), steps)) / steps * samples / fewer
    whole = len(blocks[0]) / len(together) * (N / dimension if method != "chain" else 1.0)
    return rounds * problem.time.stop * N * per_step * whole


def _usual_batch(problem: Problem) -> int:
    """Mean number of samples per step, over the whole run."""
    pieces = pieces_in_steps(problem)
    samples = sum(piece.problem.model.batch_size * (piece.stop - piece.start) for piece in pieces)
    return max(1, round(samples / problem.time.stop))


def _trial_dimension(problem: Problem, method: str) -> int:
    """Dimension N of the trial run: that of the whole run where steps are quick enough."""
    N = problem.particles.dimension
    if method == "chain":
        return N
    samples = problem.model.batch_size if method == "plain" else 1
    return min(N, max(LARGEST_TRIAL // samples, 64 + 2 * (len(problem.features) + problem.model.channels)))
