"""Predicted time of analyses without time steps: usual numbers of evaluations, times the measured time of one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from scipy.interpolate import RectBivariateSpline, make_interp_spline

from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.fixed_points.symmetry import is_reflected, sign_symmetries
from meanfield.families.contrastive.learnability.learnability import learnability
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.order_parameters.field import VectorField, rate
from meanfield.families.contrastive.order_parameters.noise import StepNoise
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.stationary.densities import CELLS
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.search import NODE_ERROR, ROUGH
from meanfield.numerics.continuation import ball_starts, find_roots, signed_permutations
from meanfield.typing import FloatArray

BUDGET, SEARCH_BUDGET = 0.006, 0.3
"""Seconds for measuring each evaluation at each point, and for a trial search."""

SECONDS_PER_CALL = 1e-5
"""Seconds that a caller of dq/dt takes in addition to the evaluation."""

RATES, NOISES, NOISES_PER_OUTPUT = 300, 80, 3
"""Usual numbers of evaluations of dq/dt for a trajectory, and of S and the Jacobian for its covariance."""

FIXED_POINTS = {1: 820, 2: 6900, 3: 10_100}
"""Usual number of evaluations of dq/dt for all fixed points and their regions of attraction, by number of features."""

WITHOUT_SYMMETRY = {1: 1, 2: 3, 3: 8}
"""Factor on these evaluations where features cannot be flipped one by one, by number of features."""

PATHS = {1: 2900, 2: 3600}
"""Usual number of evaluations of a table at 1024 points, for all paths from random starts, by number of features."""

STATES, SEARCH = {1: 3, 2: 9, 3: 27}, {1: 200, 2: 640, 3: 1500}
"""Usual numbers of stationary states, and of evaluations of their equations, by number of features."""

SPECTRA, STATED = 1.5, 1.3
"""Factors for the stability of the states: on the time of their errors, and on that of the search."""

SECONDS_PER_CELL = 5e-7
"""Seconds for each cell of a stationary density."""


def trajectory_seconds(problem: Problem) -> float:
    """Predict the time of `solve_order_parameters`."""
    field = VectorField(problem)
    noise, each = _noise_of(field), _rate_seconds(field)
    if noise is None:
        return RATES * each
    count, at = NOISES + NOISES_PER_OUTPUT * problem.time.outputs, _points(field.features)
    return (RATES + 4 * field.features * count) * each + count * _seconds_of(noise, at)


def dynamics_seconds(problem: Problem) -> float:
    """Predict the time of `analyse_dynamics`."""
    field = VectorField(problem)
    d1 = min(field.features, max(FIXED_POINTS))
    reflected = is_reflected(sign_symmetries(field))
    seconds = FIXED_POINTS[d1] * (1 if reflected else WITHOUT_SYMMETRY[d1]) * _rate_seconds(field)
    if field.features in PATHS and _grows(problem) and _noise_of(field) is not None:
        seconds += PATHS[field.features] * _seconds_of(_table(field.features), np.zeros((3, 1)))
    return seconds


def stationary_seconds(problem: Problem, closure: Closure, nodes: int) -> float:
    """Predict the time of `find_stationary_states`, for a number of nodes in its result, by the first part of it."""
    d1 = len(problem.features)
    search = _Search(StationaryEquations(limit_of(problem, closure)))
    try:
        states = find_roots(search, ball_starts(d1), signed_permutations, tolerance=ROUGH)
    except _OverBudgetError:
        seconds, count = SEARCH[d1] * search.seconds / search.count, STATES[d1]
        return STATED * seconds + count * nodes * CELLS * SECONDS_PER_CELL
    judged = _judging_seconds(search.equations, states)
    return search.seconds + judged + len(states) * nodes * CELLS * SECONDS_PER_CELL


def _judging_seconds(equations: StationaryEquations, states: Sequence[FloatArray]) -> float:
    """Predict the time to check the states: more nodes until they suffice, then errors and stability of all."""
    seconds = 0.0
    while states:
        started = time.perf_counter()
        worst = equations.node_error(states[-1])
        seconds += 2 * len(states) * (time.perf_counter() - started)
        finer = equations.coordinates.finer
        if worst <= NODE_ERROR or finer is None:
            break
        equations = StationaryEquations(equations.limit, finer)
    return SPECTRA * seconds


class _OverBudgetError(Exception):
    """Signal that a search takes too long for a trial."""


class _Search:
    """Equations of stationary states that count their evaluations and stop when the budget is spent."""

    def __init__(self, equations: StationaryEquations) -> None:
        self.equations, self.count, self.seconds = equations, 0, 0.0

    def __call__(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.seconds > SEARCH_BUDGET:
            raise _OverBudgetError
        started = time.perf_counter()
        result = self.equations.by_spread(q)
        self.count, self.seconds = self.count + 1, self.seconds + time.perf_counter() - started
        return result


def _points(features: int) -> FloatArray:
    """Overlaps spread over the unit ball, shape (5, d1)."""
    points = np.random.default_rng(0).standard_normal((5, features))
    radii = np.array([[0.3], [0.5], [0.7], [0.9], [0.99]])
    return np.asarray(radii * points / np.linalg.norm(points, axis=1)[:, None])


def _rate_seconds(field: VectorField) -> float:
    return _seconds_of(lambda q: rate(field.closure, q), _points(field.features)) + SECONDS_PER_CALL


def _seconds_of(work: Callable[[FloatArray], object], points: FloatArray) -> float:
    """Mean time of one evaluation over points; the first call at each is not counted, because it may compile."""
    total = 0.0
    for q in points:
        work(q)
        started, count = time.perf_counter(), 0
        while count == 0 or time.perf_counter() - started < BUDGET:
            work(q)
            count += 1
        total += (time.perf_counter() - started) / count
    return total / len(points)


def _noise_of(field: VectorField) -> StepNoise | None:
    try:
        return StepNoise(field)
    except InputError:
        return None


def _grows(problem: Problem) -> bool:
    try:
        return bool(learnability(problem).learnable.any())
    except InputError:
        return False


def _table(features: int) -> Callable[[FloatArray], object]:
    """Splines of the size of those that paths from random starts use, at as many points."""
    x = np.linspace(0.0, 1.0, 49)
    points = np.random.default_rng(0).random((1024, 2))
    if features == 1:
        line = make_interp_spline(x, np.sin(x), 5)
        return lambda _: line(points[:, 0])
    plane = RectBivariateSpline(x, x, np.outer(np.sin(x), np.cos(x)), kx=5, ky=5)
    return lambda _: [plane.ev(*points.T) for _ in range(2)]
