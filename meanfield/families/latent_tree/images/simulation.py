"""Simulation of training on images: results that are kept, and the memory of a step."""

from __future__ import annotations

from functools import partial

from meanfield.ensembles.arrays import Record
from meanfield.ensembles.identity import identity_of
from meanfield.ensembles.run import run_ensemble
from meanfield.ensembles.simulation import Simulation
from meanfield.families.latent_tree.images.problem import ImageProblem
from meanfield.families.latent_tree.images.stepper import ImageReplicas, has_probe
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver

TOGETHER = 1 << 17
"""Number of activations of a batch up to which replicas are advanced together: they fit into the caches."""

BYTES = 8
"""Number of bytes of a double."""


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
    numbers = numbers_of_a_batch(problem)
    together = max(1, TOGETHER // numbers)
    weights = problem.initial_weights.vector.size
    rows: dict[str, tuple[int, ...]] = {"sampled_loss": ()}
    if has_probe(problem):
        rows["probe_accuracy"] = ()
    return Simulation(
        identity=identity_of(problem),
        particles=problem.particles,
        time=problem.time,
        rows=rows,
        snapshots={"layer_weights": (weights,)},
        quantiles=("sampled_loss",),
        together=together,
        working_set=8 * BYTES * (numbers + weights) * min(together, problem.particles.replicas),
        remedy=problem.network.remedy,
        steps_per_time=problem.steps_per_time,
        size="network.widths",
    )


def numbers_of_a_batch(problem: ImageProblem) -> int:
    """Number of inputs and activations of all views of a batch."""
    return problem.training.batch_size * problem.loss.views * sum(problem.widths)
