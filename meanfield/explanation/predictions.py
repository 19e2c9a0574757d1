"""What each method would take and give: does it apply, how long, how much memory, how large a file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanfield.closures import Closure
from meanfield.density.grid import feature_quadrature
from meanfield.density.solver import check_density
from meanfield.errors import InputError
from meanfield.explanation.analysis_costs import dynamics_seconds, stationary_seconds, trajectory_seconds
from meanfield.explanation.density_pilot import density_cost
from meanfield.explanation.particle_pilot import particle_seconds
from meanfield.order_parameters.field import check_closes
from meanfield.order_parameters.trajectory import check_trajectory
from meanfield.particles.collectors import DTYPES
from meanfield.particles.memory import check_memory, predicted_memory
from meanfield.particles.simulation import chosen_method, chosen_snapshots
from meanfield.problem import Problem
from meanfield.stationary.densities import CELLS
from meanfield.stationary.search import check_features

NUMBER = 8
"""Bytes."""

HEADER = 30_000
"""Bytes of a file that holds little else."""

SAVING = 2.5e-8
"""Seconds for each byte of weights that is compressed and written."""


@dataclass(frozen=True)
class Prediction:
    """What one method would take and give.

    Parameters
    ----------
    method : str
        Its name in words.
    reason : str
        Why it does not apply, with the remedy; empty where it does.
    seconds : float
        Wall time on this machine, as busy as it is now.
    memory : float
        Bytes at the peak, besides what Python and its packages take.
    file : float
        Bytes of the result at most; it is compressed.
    contents : str
        What the result holds.
    within_reach : bool
        Whether the accuracy that is asked for seems attainable.
    """

    method: str
    reason: str = ""
    seconds: float = math.nan
    memory: float = math.nan
    file: float = math.nan
    contents: str = ""
    within_reach: bool = True

    @property
    def applies(self) -> bool:
        """Whether the method takes the problem."""
        return not self.reason


def predictions(problem: Problem) -> list[Prediction]:
    """Predictions for all methods, each from a short trial of what it does."""
    return [
        _prediction(name, predict, problem)
        for name, predict in (
            ("density", _density),
            ("order parameters", _order_parameters),
            ("dynamics", _dynamics),
            ("stationary states", _stationary),
            ("particles", _particles),
        )
    ]


def _prediction(method: str, predict: Callable[[Problem], Prediction], problem: Problem) -> Prediction:
    try:
        return predict(problem)
    except InputError as error:
        return Prediction(method, reason=str(error))


def _density(problem: Problem) -> Prediction:
    check_density(problem)
    cost = density_cost(problem, Closure(problem))
    size = NUMBER * problem.time.outputs * cost.nodes * cost.cells
    contents = f"q, r, P(w|u) on {cost.nodes} nodes x {cost.cells} cells"
    return Prediction("density", "", cost.seconds, cost.memory, size + HEADER, contents, cost.within_reach)


def _order_parameters(problem: Problem) -> Prediction:
    check_trajectory(problem)
    d1, outputs = len(problem.features), problem.time.outputs
    size = NUMBER * outputs * (d1 * (d1 + 2) + 2)
    contents = "q" if problem.model.centering == "batch" else "q, and its covariance at finite N"
    return Prediction("order parameters", "", trajectory_seconds(problem), 10 * size, size + HEADER, contents)


def _dynamics(problem: Problem) -> Prediction:
    check_closes(problem)
    size = {1: 10_000, 2: 240_000}.get(len(problem.features), 10_000)
    contents = "fixed points, what attracts, random starts"
    return Prediction("dynamics", "", dynamics_seconds(problem), 20 * size, size + HEADER, contents)


def _stationary(problem: Problem) -> Prediction:
    check_features(problem)
    nodes = len(feature_quadrature(problem, problem.density.feature_nodes)[1])
    states = 3 ** len(problem.features)
    seconds = stationary_seconds(problem, Closure(problem), nodes)
    size = NUMBER * states * nodes * CELLS
    return Prediction("stationary states", "", seconds, 3 * size, size + HEADER, "all states, their stability, P(w|u)")


def _particles(problem: Problem) -> Prediction:
    settings, outputs, d1 = problem.particles, problem.time.outputs, len(problem.features)
    method = chosen_method(problem)
    snapshots, workers = chosen_snapshots(problem, method), os.cpu_count() or 1
    check_memory(problem, method, snapshots, workers, in_memory=False)
    memory = predicted_memory(problem, method, snapshots, workers, in_memory=False)
    rows = NUMBER * outputs * (d1 + 1)
    statistics = settings.record == "statistics"
    size = rows * (d1 + 5) if statistics else rows * settings.replicas
    contents = (
        f"statistics of {settings.replicas:,} replicas" if statistics else f"q, r of {settings.replicas:,} replicas"
    )
    weights = 0
    if snapshots:
        number = np.dtype(DTYPES[settings.snapshot_precision]).itemsize
        weights = number * settings.replicas * settings.dimension * (len(snapshots) + d1)
        contents += f", weights at {len(snapshots)} times"
    seconds = particle_seconds(problem, method) + SAVING * weights
    return Prediction("particles", "", seconds, memory, size + weights + HEADER, f"{contents} ('{method}')")
