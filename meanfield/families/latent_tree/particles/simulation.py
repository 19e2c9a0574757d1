"""Simulation of SGD on a latent tree: results that are kept, and the memory of a step."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from meanfield.ensembles.arrays import Record
from meanfield.ensembles.run import run_ensemble
from meanfield.ensembles.simulation import Simulation, batched
from meanfield.families.latent_tree.initial import latent_coordinates
from meanfield.families.latent_tree.particles.stepper import Replicas, row_shapes
from meanfield.families.latent_tree.problem import Problem
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver


@solver
def simulate_sgd(problem: Problem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of SGD with batches of fresh samples, all from the same weights.

    Parameters
    ----------
    problem : Problem
        `particles.score_samples` fresh samples give the score at each output time.
    workers : int, optional
        Threads; by default one per core that this process may use. The numbers do not depend on it.
    record : Record, optional
        Where results and states go meanwhile: a `Checkpoint` for runs that shall survive a kill. By default memory.

    Returns
    -------
    xarray.Dataset
        `weights`, and `score`, the largest sampled |correlation| of a latent with a node, at the output times; `loss`,
        `selectivity` and `correlation`, exactly, where tables fit; with `particles.record = 'statistics'` statistics
        over replicas instead. Output time t is step round(t/eta). What was not reached is NaN.

    Raises
    ------
    InputError
        If the run does not fit into the free memory or into `particles.longest_days`.

    Notes
    -----
    Steps follow the gradient through all branches, twice that of the paper. Variances of statistics are over eta.
    Source: latent_tree.md, sections 1.2, 1.5 and 1.6.
    """
    simulation = simulation_of(problem)
    solved = run_ensemble(simulation, lambda: partial(Replicas, problem), workers, record)
    return replace(solved, arrays=solved.arrays | latent_coordinates(problem.shape))


def simulation_of(problem: Problem) -> Simulation:
    """Simulation that a problem describes."""
    check_problem(problem, Problem)
    return batched(
        problem,
        activations_of_a_batch(problem),
        together=2**18,
        rows=row_shapes(problem),
        quantiles=("loss",),
        remedy=problem.network.remedy,
        size="network.nodes_per_latent",
    )


def activations_of_a_batch(problem: Problem) -> int:
    """Number of inputs and activations of all views of a batch."""
    shape = problem.shape
    nodes = shape.latents[0] + sum(shape.latents[1:]) * shape.nodes
    return problem.training.batch_size * problem.loss.views * nodes
