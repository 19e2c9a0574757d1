"""Predicted time of analyses without time steps: usual numbers of evaluations of dq/dt, times the time of one."""

from __future__ import annotations

from functools import partial

import numpy as np

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.explanation.rates import seconds_of
from meanfield.families.contrastive.fixed_points.symmetry import is_reflected, sign_symmetries
from meanfield.families.contrastive.order_parameters.field import VectorField, rate
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.stationary.densities import CELLS

TYPICAL_OVERLAP = 0.6
"""Norm of the overlaps at which coefficients are timed."""

TRAJECTORY = 2000
"""Usual number of evaluations for a trajectory, those of its covariance included."""

DYNAMICS = {1: (1.0, 820), 2: (3.0, 10_000), 3: (3.0, 40_000)}
"""Seconds of `analyse_dynamics` that do not depend on the coefficients, and its usual number of evaluations."""

WITHOUT_SYMMETRY = {1: 1, 2: 3, 3: 8}
"""Factor on these evaluations where features cannot be flipped one by one."""

STATIONARY = {1: (1.0, 200), 2: (2.0, 640), 3: (6.0, 1500)}
"""Seconds and evaluations of `find_stationary_states`, by number of features."""

SECONDS_PER_CELL = 5e-7
"""Seconds for each cell of a stationary density."""


def evaluation_seconds(problem: Problem) -> float:
    """Processor time of one evaluation of dq/dt."""
    d1 = len(problem.features)
    return seconds_of(partial(rate, Closure(problem), np.full(d1, TYPICAL_OVERLAP * d1**-0.5)))


def trajectory_seconds(problem: Problem) -> float:
    """Predict the time of `solve_order_parameters`."""
    return TRAJECTORY * evaluation_seconds(problem)


def dynamics_seconds(problem: Problem) -> float:
    """Predict the time of `analyse_dynamics`."""
    d1 = min(len(problem.features), max(DYNAMICS))
    fixed, evaluations = DYNAMICS[d1]
    factor = 1 if is_reflected(sign_symmetries(VectorField(problem))) else WITHOUT_SYMMETRY[d1]
    return fixed + factor * evaluations * evaluation_seconds(problem)


def stationary_seconds(problem: Problem, states: int, nodes: int) -> float:
    """Predict the time of `find_stationary_states`, for numbers of states and of nodes in its result."""
    fixed, evaluations = STATIONARY[len(problem.features)]
    return fixed + evaluations * evaluation_seconds(problem) + states * nodes * CELLS * SECONDS_PER_CELL
