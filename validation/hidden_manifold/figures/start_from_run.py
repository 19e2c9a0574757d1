"""The ODE of one Gaussian from the weights of a run itself, as the paper compares it with SGD."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from meanfield.families.hidden_manifold.order_parameters import start_from_run
from meanfield.families.hidden_manifold.order_parameters.integration import Path, follow
from meanfield.families.hidden_manifold.order_parameters.legs import steadily
from meanfield.families.hidden_manifold.order_parameters.start_from_run import OwnStart
from meanfield.families.hidden_manifold.order_parameters.system import System, observables
from meanfield.families.hidden_manifold.order_parameters.trajectory import refined
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.problems.file import problem_from
from validation.hidden_manifold.figures.mixtures import FloatArray
from validation.hidden_manifold.figures.sgd import RATE, Start

TOLERANCE = 1e-8
"""Error of a step in time."""

NO_ORDER = 4
"""Points of a quadrature that closed forms do without."""


def solve_from(start: Start, activation: str, times: FloatArray) -> xr.Dataset:
    """Q, R, v and the generalisation error along the ODE, at times t > 0."""
    system, y = own_system(start, activation)
    path = follow(steadily(system), y, np.concatenate([[0.0], times]), TOLERANCE)
    return _from_path(system, path, times)


def solve_limit(start: Start, activation: str, times: FloatArray) -> xr.Dataset:
    """Solution from the overlaps that random weights have in the limit, with the second layers and T of the start."""
    Wt = start.teacher
    problem = problem_with(activation, Wt @ Wt.T / start.latents, start, start.latents / start.W.shape[1])
    system, path, _, warning = refined(problem, np.concatenate([[0.0], times]))
    if warning:
        raise RuntimeError(warning)
    return _from_path(system, path, times)


def _from_path(system: System, path: Path, times: FloatArray) -> xr.Dataset:
    """Q, R, v and the generalisation error after the first time of a path."""
    if path.status != "complete":
        raise RuntimeError(f"the ODE ended early: {path.status}")
    found = observables(system, path.state)
    dims = {"Q": ("student", "student_"), "R": ("student", "teacher"), "v": ("student",)}
    variables = {name: (("time", *rest), found[name][1:]) for name, rest in dims.items()}
    return xr.Dataset(variables | {"generalisation_error": ("time", path.errors[1:])}, {"time": times})


def own_system(start: Start, activation: str) -> tuple[System, FloatArray]:
    """Equations and state at t = 0."""
    F, Wt, W = start.features, start.teacher, start.W
    D, N = F.shape
    rho, axes = np.linalg.eigh(F @ F.T / N)
    problem = problem_with(activation, Wt @ Wt.T / D, start, D / N)
    students = (W @ F.T / math.sqrt(N) @ axes).T
    own = OwnStart(rho, students, (Wt @ axes).T, W @ W.T / N, start.v.copy())
    return start_from_run.own_system(problem, own, NO_ORDER)


def problem_with(activation: str, overlap: FloatArray, start: Start, aspect_ratio: float) -> Problem:
    """The paper's problem with the second layers and the teacher of a start."""
    network, T = {"activation": activation}, (0.5 * (overlap + overlap.T)).tolist()
    problem: Problem = problem_from(
        {
            "family": "hidden_manifold",
            "inputs": {"nonlinearity": "sign", "aspect_ratio": aspect_ratio},
            "teacher": network | {"overlap": T, "output_weights": start.vt.tolist()},
            "student": network | {"output_weights": start.v.tolist(), "initial": "random"},
            "training": {"learning_rate": RATE},
            "time": {"stop": 100.0, "outputs": 2},
        }
    )
    return problem
