"""Predicted cost of the methods of update rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import process_time

import numpy as np

from meanfield.explanation.density_cost import predicted_density
from meanfield.explanation.plane_cost import predicted_particles, predicted_plane
from meanfield.explanation.prediction import Prediction, prediction_of, seconds_of
from meanfield.explanation.replicas import cost_of_replicas
from meanfield.explanation.stationary_cost import predicted_stationary
from meanfield.families.update_rule.density.averages import resolved
from meanfield.families.update_rule.density.limit import limit_of
from meanfield.families.update_rule.density.several import joint_limit_of, why_no_cells
from meanfield.families.update_rule.density.stationary import limits_of, share_of
from meanfield.families.update_rule.density.totals import TotalEquations
from meanfield.families.update_rule.order_parameters.equations import Equations, Rules
from meanfield.families.update_rule.order_parameters.errors import chosen_rule
from meanfield.families.update_rule.order_parameters.fluctuations import TOLERANCE, linear_along, most_numbers
from meanfield.families.update_rule.order_parameters.trajectory import AVERAGE_SHARE, LOOSER_STEP, STEP_SHARE
from meanfield.families.update_rule.particles.simulation import simulation_of
from meanfield.families.update_rule.particles.steppers import prepare_steppers
from meanfield.families.update_rule.problem import Problem
from meanfield.mckean_vlasov.density.settings import PARTICLE_TOLERANCE, DensitySettings
from meanfield.mckean_vlasov.limit import Limit
from meanfield.several_vectors.densities import settings_of
from meanfield.several_vectors.evolution import DegenerateError, check_plane
from meanfield.several_vectors.sample import RUNS

ROUGH = 1e-3
"""Tolerance of averages, and of steps, of a path whose time is taken."""

ORDER = 8
"""Order of the integrator, by which steps become shorter with their tolerance."""


def particles(problem: Problem) -> Prediction:
    """Cost of SGD at finite N."""
    simulation = simulation_of(problem)
    return cost_of_replicas(simulation, prepare_steppers(problem, simulation.label))


def order_parameters(problem: Problem) -> Prediction:
    """Cost of the order parameters and their covariance: of a rough path, with the time of an average that is fine."""
    equations, tolerance = Equations(problem), problem.order_parameters.tolerance
    places, step = [(0.0, equations.start)], STEP_SHARE * tolerance

    def chosen(fineness: float) -> Rules:
        return equations.rules(equations.choose(places, fineness, {}), chosen_rule)

    def rate(rules: Rules) -> float:
        return seconds_of(partial(equations.velocity(0, rules), 0.0, equations.start))

    fine, rough = chosen(AVERAGE_SHARE * tolerance), chosen(ROUGH)
    slower = rate(fine) / rate(rough)
    began = process_time()
    path = equations.follow(rough, ROUGH, dense=True)
    pilot = process_time() - began
    began = process_time()
    chosen(AVERAGE_SHARE * tolerance)
    seconds = 8 * (process_time() - began)  # rules are chosen at 8 states, at the start and along the path
    seconds += pilot * slower * sum((ROUGH / each) ** (1.0 / ORDER) for each in (step, LOOSER_STEP * step))
    size = len(equations.start)
    rules = chosen(max(TOLERANCE, tolerance))
    covariance = equations.nodes is None and size <= most_numbers(rules)
    if covariance:
        (linear, *_) = linear_along(equations, path, rules)
        began = process_time()
        linear.J(0.0)
        seconds += 45 * (process_time() - began)  # times at which the path is linearised for series and their errors
    elif equations.nodes is not None:
        seconds *= 2.0  # half as many nodes besides
    numbers = problem.time.outputs * (size + 3 * size**2 * covariance)
    words = ", and covariances" if covariance else ""
    contents = f"{size} order parameters at {problem.time.outputs:,} times{words}"
    return prediction_of("order parameters", seconds, 3 * numbers, numbers, contents)


def density(problem: Problem) -> Prediction:
    """Cost of the density: of one student by a pilot, of several by plans."""
    if len(problem.students) > 1:
        return _of_several(problem)
    limit, seconds = _timed(lambda *made: limit_of(made[0], made[0].rules(made[1], chosen_rule), made[2]), problem)
    found = predicted_density(limit, problem.density or DensitySettings(), "R, Q, r")
    return replace(found, seconds=found.seconds + seconds)


def stationary(problem: Problem) -> Prediction:
    """Cost of the search for stationary states."""
    limit, seconds = _timed(lambda *made: limits_of(*made).limit, problem)
    found = predicted_stationary(limit, (problem.density or DensitySettings()).feature_nodes)
    return replace(found, seconds=found.seconds + seconds)


def _timed(limit_from: Callable[..., Limit], problem: Problem) -> tuple[Limit, float]:
    """Limit from equations, choices and the share of averages, and what these and its tables take, as in a run."""
    began = process_time()
    equations, share = TotalEquations(problem), share_of(problem)
    limit = limit_from(*resolved(equations, [(0.0, equations.start)], share, {}), share)
    return limit, process_time() - began


def _of_several(problem: Problem) -> Prediction:
    """Cost of the density of several students, on cells where they serve."""
    settings, averages = problem.density or DensitySettings(scheme="automatic"), "R, Q, r"
    equations, share = Equations(problem), AVERAGE_SHARE * (settings.tolerance or PARTICLE_TOLERANCE)
    equations, choices = resolved(equations, [(0.0, equations.start)], share, {})
    limit = joint_limit_of(equations, equations.rules(choices, chosen_rule))
    q, M = limit.initial_q, limit.initial_M
    each = seconds_of(partial(limit.stretches[0].motion, 0.0, q, M, np.zeros_like(M)))
    if settings.scheme != "particles" and not why_no_cells(problem):
        try:
            check_plane(limit)
            return predicted_plane(limit, settings_of(settings), averages, each)
        except DegenerateError:
            pass
    return predicted_particles([limit] * RUNS, settings.tolerance or PARTICLE_TOLERANCE, averages, each)
