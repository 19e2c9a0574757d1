"""Predicted cost of the methods of update rules."""

from __future__ import annotations

from functools import partial
from time import process_time

from meanfield.explanation.prediction import Prediction, prediction_of, seconds_of
from meanfield.explanation.replicas import cost_of_replicas
from meanfield.families.update_rule.order_parameters.equations import Equations, Rules
from meanfield.families.update_rule.order_parameters.errors import chosen_rule
from meanfield.families.update_rule.order_parameters.fluctuations import TOLERANCE, linear_along, most_numbers
from meanfield.families.update_rule.order_parameters.trajectory import AVERAGE_SHARE, LOOSER_STEP, STEP_SHARE
from meanfield.families.update_rule.particles.simulation import simulation_of
from meanfield.families.update_rule.particles.steppers import prepare_steppers
from meanfield.families.update_rule.problem import Problem

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
