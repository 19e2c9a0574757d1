"""Predicted cost of training on images, from some steps."""

from __future__ import annotations

from functools import partial

from meanfield.explanation.prediction import Prediction
from meanfield.explanation.replicas import cost_of_replicas
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.images.simulation import simulation_of
from meanfield.families.latent_tree.images.stepper import ImageReplicas


def particles(problem: ImageProblem) -> Prediction:
    """Cost of training.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    return cost_of_replicas(simulation_of(problem), partial(ImageReplicas, problem))
