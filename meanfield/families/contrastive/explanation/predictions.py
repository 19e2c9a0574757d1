"""What each method would take and give: does it apply, how long, how much memory, how large a file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from meanfield.ensembles.collectors import DTYPES
from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.density.solver import check_density
from meanfield.families.contrastive.explanation.analysis_costs import (
    dynamics_seconds,
    stationary_seconds,
    trajectory_seconds,
)
from meanfield.families.contrastive.explanation.density_pilot import density_cost
from meanfield.families.contrastive.explanation.particle_pilot import particle_seconds
from meanfield.families.contrastive.order_parameters.field import check_closes
from meanfield.families.contrastive.order_parameters.trajectory import check_trajectory
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.memory import check_memory, predicted_memory
from meanfield.families.contrastive.sgd.simulation import chosen_method, chosen_snapshots
from meanfield.families.contrastive.stationary.densities import CELLS
from meanfield.families.contrastive.stationary.search import check_features
from meanfield.mckean_vlasov.feature_nodes import feature_quadrature

NUMBER = 8
"""Bytes."""

HEADER = 16_000
"""Bytes of a file that holds little else."""

DENSITY_PACKED, STATES_PACKED = 0.55, 0.25
"""What compression leaves of the densities of a run, and of those of stationary states."""

PANELS = 1.2e7
"""Bytes that the search for stationary states works with."""

LEAST_MEMORY = 1e6
"""Bytes of what any method holds besides its arrays."""

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
        Bytes of the result.
    contents : str
        What the result holds.
    warning : str
        That the run fails, or will miss its accuracy, with a remedy.
    """

    method: str
    reason: str = ""
    seconds: float = math.nan
    memory: float = math.nan
    file: float = math.nan
    contents: str = ""
    warning: str = ""

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
        found = predict(problem)
        return replace(found, memory=found.memory + LEAST_MEMORY)
    except InputError as error:
        return Prediction(method, reason=str(error))


def _density(problem: Problem) -> Prediction:
    check_density(problem)
    cost = density_cost(problem, Closure(problem))
    size = NUMBER * problem.time.outputs * cost.nodes * cost.cells
    contents = f"q, r, P(w|u) on {cost.nodes} nodes x {cost.cells} cells"
    return Prediction("density", "", cost.seconds, cost.memory, DENSITY_PACKED * size + HEADER, contents, cost.warning)


def _order_parameters(problem: Problem) -> Prediction:
    check_trajectory(problem)
    d1, outputs = len(problem.features), problem.time.outputs
    size = NUMBER * outputs * (d1 * (d1 + 2) + 2)
    contents = "q" if problem.model.centering == "batch" else "q, and its covariance at finite N"
    return Prediction("order parameters", "", trajectory_seconds(problem), 2 * size, size + HEADER, contents)


def _dynamics(problem: Problem) -> Prediction:
    check_closes(problem)
    size = {1: 10_000, 2: 240_000}.get(len(problem.features), 10_000)
    contents = "fixed points, what attracts, random starts"
    return Prediction("dynamics", "", dynamics_seconds(problem), 20 * size, size + HEADER, contents)


def _stationary(problem: Problem) -> Prediction:
    check_features(problem)
    nodes = len(feature_quadrature([f.coordinate for f in problem.features], problem.density.feature_nodes)[1])
    states = 3 ** len(problem.features)
    seconds = stationary_seconds(problem, Closure(problem), nodes)
    size = NUMBER * states * nodes * CELLS
    contents = "all states, their stability, P(w|u)"
    return Prediction("stationary states", "", seconds, PANELS + 2 * size, STATES_PACKED * size + HEADER, contents)


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
