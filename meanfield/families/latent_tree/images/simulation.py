"""Simulation of training on images: results that are kept, the memory of a step, and what a run costs."""

from __future__ import annotations

from functools import partial

from meanfield.ensembles.arrays import Record
from meanfield.ensembles.run import run_ensemble
from meanfield.ensembles.simulation import Simulation, batched
from meanfield.explanation.prediction import Prediction
from meanfield.explanation.replicas import cost_of_replicas
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.images.stepper import ImageReplicas, has_probe
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver


@solver
def train_on_images(problem: ImageProblem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of training on batches of fresh views, all from the same weights.

    Parameters
    ----------
    problem : ImageProblem
    workers : int, optional
        Threads; by default one per core that this process may use. The numbers do not depend on it.
    record : Record, optional
        Where results and states go meanwhile: a `Checkpoint` for runs that shall survive a kill. By default memory.

    Returns
    -------
    xarray.Dataset
        `sampled_loss`, and `probe_accuracy` where images have classes, at the output times, `layer_weights` at
        snapshots; with `particles.record = 'statistics'` statistics over replicas instead. Output time t is step
        round(t/eta). What was not reached is NaN.

    Raises
    ------
    InputError
        If the run does not fit into the free memory or into `particles.longest_days`.
    """
    return run_ensemble(simulation_of(problem), lambda: partial(ImageReplicas, problem), workers, record)


def simulation_of(problem: ImageProblem) -> Simulation:
    """Simulation that a problem describes."""
    check_problem(problem, ImageProblem)
    weights = problem.initial_weights.vector.size
    return batched(
        problem,
        numbers_of_a_batch(problem),
        together=2**17,
        besides=weights,
        rows={"sampled_loss": ()} | ({"probe_accuracy": ()} if has_probe(problem) else {}),
        snapshots={"layer_weights": (weights,)},
        quantiles=("sampled_loss",),
        remedy=problem.network.remedy,
        size="network.widths",
    )


def numbers_of_a_batch(problem: ImageProblem) -> int:
    """Number of inputs and activations of all views of a batch."""
    return problem.training.batch_size * problem.loss.views * sum(problem.widths)


def particles(problem: ImageProblem) -> Prediction:
    """Cost of training.

    Raises
    ------
    InputError
        If it would take longer than `particles.longest_days`, or more memory than is free.
    """
    return cost_of_replicas(simulation_of(problem), partial(ImageReplicas, problem))
