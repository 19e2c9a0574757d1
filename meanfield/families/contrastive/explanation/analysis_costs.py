"""Predicted time of analyses without time steps: usual numbers of evaluations of dq/dt, times the time of one."""

from __future__ import annotations

from functools import partial

import numpy as np

from meanfield.explanation.prediction import shared
from meanfield.explanation.rates import seconds_of
from meanfield.families.contrastive.channels.closure import ChannelClosure
from meanfield.families.contrastive.channels.states.coincidence import coincidences
from meanfield.families.contrastive.channels.states.field import SmoothField, arrangements
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.fixed_points.symmetries import is_reflected, is_separable, sign_symmetries
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.order_parameters import rate
from meanfield.mckean_vlasov.stationary.densities import CELLS
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.search import NODE_ERROR
from meanfield.typing import FloatArray

DYNAMICS = {1: (1.0, 820), 2: (3.0, 10_000), 3: (1.0, 4_000), 4: (1.0, 8_000), 5: (1.0, 20_000)}
"""Seconds of `analyse_dynamics` that do not depend on the coefficients, and its usual number of evaluations: up to two
features in cells of q, and of more, which are independent, in sets of those that are learnt."""

IN_CELLS = 320_000
"""Usual number of evaluations of `analyse_dynamics` of three features or more that depend on each other."""

STATIONARY = {1: 1.0, 2: 2.0, 3: 6.0}
"""Seconds of `find_stationary_states` that do not depend on the prior, by number of features."""


def evaluation_seconds(problem: Problem) -> float:
    """Processor time of one evaluation of dq/dt."""
    return seconds_of(partial(rate, Closure(problem), _typical(len(problem.features))))


def trajectory_seconds(problem: Problem) -> float:
    """Predict the time of `solve_order_parameters`."""
    return 2000 * evaluation_seconds(problem)  # the usual number of evaluations, those of the covariance among them


def channels_seconds(problem: Problem) -> float:
    """Predict the time of `solve_order_parameters` with several channels."""
    closure = shared(ChannelClosure, problem)
    each = closure.randomisations[0] if closure.randomisations else closure
    state = problem.initial_overlap, problem.initial_channel_overlap
    # Averages at random take fewer evaluations, for each randomisation, than smooth ones.
    evaluations = 60 * len(closure.randomisations) if closure.randomisations else 600
    return evaluations * seconds_of(partial(each, *state))


def dynamics_seconds(problem: Problem) -> float:
    """Predict the time of `analyse_dynamics`."""
    if problem.model.channels > 1:
        return _states_of_channels_seconds(problem)
    field = VectorField(problem)
    d1, flips = field.features, sign_symmetries(field)
    fixed, evaluations = DYNAMICS[min(d1, max(DYNAMICS))]
    reflected = is_reflected(flips)
    if d1 > 2 and not (reflected or is_separable(field)):
        evaluations = IN_CELLS
    factor = 3 if d1 == 2 and not reflected else 1  # all signs of q are searched
    return fixed + factor * evaluations * evaluation_seconds(problem)


def _states_of_channels_seconds(problem: Problem) -> float:
    """Predict the time of the search for states of several channels: Newton's method for each start, and paths."""
    field = SmoothField(problem, closure=shared(ChannelClosure, problem))
    groupings = list(coincidences(field))
    tries = sum(1 for space in groupings for _ in arrangements(field.features, space.groups))
    # The random starts take most of the evaluations, usually some 25,000 for each channel.
    # Symmetries leave some 0.3 of the arrangements, and Newton's method evaluates the field ten times for each unknown.
    evaluations = 25_000 * problem.model.channels + 0.3 * tries * 10 * field.unknowns
    start = field.packed(problem.initial_overlap, problem.initial_channel_overlap)
    return evaluations * seconds_of(partial(field, start))


def stationary_seconds(problem: Problem, states: int, nodes: int) -> float:
    """Predict the time of `find_stationary_states`, for numbers of states and of nodes in its result."""
    limit, d1 = limit_of(problem), len(problem.features)
    equations: StationaryEquations | None = StationaryEquations(limit)
    # A cell of a stationary density takes some 5e-7 seconds.
    seconds, q = STATIONARY[d1] + states * nodes * CELLS * 5e-7, _typical(d1)
    while equations is not None:
        seconds += 120 * seconds_of(partial(equations, q))  # the usual number of evaluations on each set of nodes
        finer = equations.coordinates.finer
        enough = finer is None or not NODE_ERROR < equations.node_error(q) < np.inf  # inf: there is no state at q
        equations = None if enough else StationaryEquations(limit, finer)
    return seconds


def _typical(d1: int) -> FloatArray:
    """Overlaps at which coefficients and equations are timed."""
    return np.full(d1, 0.6 * d1**-0.5)  # a norm of the overlaps on the way, where coefficients are timed
