"""Simulation of SGD on batches of pairs: results that are kept, and the memory of a step."""

from __future__ import annotations

from functools import partial

from meanfield.ensembles.arrays import Record
from meanfield.ensembles.run import run_ensemble
from meanfield.ensembles.simulation import Simulation, batched
from meanfield.families.alpha_contrastive.particles.samples import sampler_of
from meanfield.families.alpha_contrastive.particles.stepper import Replicas, row_shapes
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver


@solver
def simulate_sgd(problem: Problem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of SGD with batches of fresh pairs of views.

    Parameters
    ----------
    problem : Problem
        `training` has step, batch and momentum, `particles.test_batches` the fresh batches of an output time.
    workers : int, optional
        Threads; by default one per core that this process may use. The numbers do not depend on it.
    record : Record, optional
        Where results and states go meanwhile: a `Checkpoint` for runs that shall survive a kill. By default memory.

    Returns
    -------
    xarray.Dataset
        `energy`, `covariance_trace` and, where the importance comes from a loss of the views, `loss`, as means over
        fresh batches; `weights`, for two layers `top`, and for tokens the scores `chi_plus` and `chi_minus`; with
        `particles.record = 'statistics'` statistics over replicas instead. Output time t is step round(t/eta). What was
        not reached is NaN.

    Raises
    ------
    InputError
        If the run does not fit into the free memory or into `particles.longest_days`.

    Notes
    -----
    Importances that are divided by a sum over the batch are multiplied by N. Source: alpha_contrastive.md, section 5.
    """
    return run_ensemble(simulation_of(problem), lambda: partial(Replicas, problem), workers, record)


def simulation_of(problem: Problem) -> Simulation:
    """Simulation that a problem describes."""
    check_problem(problem, Problem)
    return batched(
        problem,
        numbers_of_a_step(problem),
        together=2**16,
        rows=row_shapes(problem),
        quantiles=("energy",),
        remedy="lower training.learning_rate, or keep weights at length 1",
        size="filters.count",
    )


def numbers_of_a_step(problem: Problem) -> int:
    """Number of inputs, activations and pairs of a batch."""
    places, filters, coordinates = problem.shape
    views = 1 + 2 * sampler_of(problem.data).augments
    N = problem.training.batch_size
    outputs = problem.model.outputs * (problem.model.layers - 1)
    return N * views * (places * (filters + coordinates) + outputs) + N * N
