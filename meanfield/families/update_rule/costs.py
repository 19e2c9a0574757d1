"""Predicted cost of the methods of update rules."""

from __future__ import annotations

from meanfield.explanation.prediction import Prediction
from meanfield.explanation.replicas import cost_of_replicas
from meanfield.families.update_rule.particles.simulation import simulation_of
from meanfield.families.update_rule.particles.steppers import prepare_steppers
from meanfield.families.update_rule.problem import Problem


def particles(problem: Problem) -> Prediction:
    """Cost of SGD at finite N."""
    simulation = simulation_of(problem)
    return cost_of_replicas(simulation, prepare_steppers(problem, simulation.label))
