"""SGD on a latent tree: results that are kept, the memory of a step, and the steps of replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from meanfield.ensembles.arrays import Record
from meanfield.ensembles.averages import check_rates, clocked
from meanfield.ensembles.ensemble import run_ensemble
from meanfield.ensembles.simulation import Simulation, batched
from meanfield.ensembles.stepper import replica_generator
from meanfield.errors import InputError
from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.flow import observables
from meanfield.families.latent_tree.initial import latent_coordinates
from meanfield.families.latent_tree.many_nodes.finite import node_coordinates
from meanfield.families.latent_tree.many_nodes.latents import SIGNS
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.results import AVERAGED
from meanfield.families.latent_tree.ring_tables import tables_of
from meanfield.families.latent_tree.samples import BatchStepper, Values, sampler_of
from meanfield.families.latent_tree.sizes import check_tables, without_root
from meanfield.families.latent_tree.tables import Tables
from meanfield.networks.population import terms
from meanfield.problems.base import check_problem
from meanfield.problems.clock import Clock
from meanfield.problems.in_time import InTime, check_at_extremes
from meanfield.results.initial_state import seed_of
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray


@solver
def simulate_sgd(problem: Problem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of SGD with batches of fresh samples, from the same weights or each from its own.

    Parameters
    ----------
    problem : Problem
        `particles.score_samples` fresh samples give the score at each output time.
    workers, record : optional
        See `meanfield.simulate_sgd`.

    Returns
    -------
    xarray.Dataset
        `weights`, and `score`, the largest sampled |correlation| of a latent with a node, at the output times; `loss`,
        `selectivity` and `correlation`, exactly, where tables fit, and with the start `sphere` `Delta` and `square`;
        with `training.average_rate` `weights_average`, `score_average`, `loss_average` and `selectivity_average`;
        with `particles.record = 'statistics'` statistics over replicas instead. Output time t is step round(t/eta).
        What was not reached is NaN.

    Notes
    -----
    Steps follow the gradient through all branches, twice that of the paper. Variances of statistics are over eta.
    Source: latent_tree.md, sections 1.2, 1.5 and 1.6.
    """
    simulation = simulation_of(problem)
    solved = run_ensemble(simulation, partial(clocked, problem, Replicas), workers, record)
    return replace(solved, arrays=solved.arrays | latent_coordinates(problem.shape) | node_coordinates(problem))


def simulation_of(problem: Problem) -> Simulation:
    """Simulation that a problem describes."""
    check_problem(problem, Problem)
    check_rates(problem.training, problem.steps_per_time)
    in_time = InTime(problem)
    return batched(
        problem,
        max(activations_of_a_batch(each) for each in in_time.extremes(problem.time.stop).values()),
        together=2**18,
        rows=_with_averages(problem, row_shapes(problem, exact_tables(problem))),
        quantiles=("loss",),
        remedy=problem.network.remedy,
        size="network.nodes_per_latent",
    )


def activations_of_a_batch(problem: Problem) -> int:
    """Number of inputs and activations of all views of a batch."""
    shape = problem.shape
    nodes = shape.latents[0] * shape.leaf_inputs + sum(shape.latents[1:]) * shape.nodes
    return problem.training.batch_size * problem.loss.views * nodes


def measure_of(problem: Problem) -> Callable[[FloatArray, Mapping[str, FloatArray]], dict[str, Any]]:
    """What follows from weights; see `meanfield.problems.family.Family.measure`."""
    clock = Clock(problem)

    def measured(times: FloatArray, given: Mapping[str, FloatArray]) -> dict[str, Any]:
        if "weights" not in given:
            return {}
        stepper = Replicas(problem, range(len(given["weights"])), clock=clock)
        rows = stepper.rows_in_time(clock.steps_at(times), {"w": given["weights"]})
        return rows | latent_coordinates(problem.shape) | node_coordinates(problem)

    return measured


class Replicas(BatchStepper):
    """Replicas of SGD.

    Parameters
    ----------
    exact : bool
        Whether rows have exact averages, where tables fit.
    clock : Clock, optional
        Times of steps.
    """

    problem: Problem

    def __init__(self, problem: Problem, replicas: range, exact: bool = True, clock: Clock | None = None) -> None:
        super().__init__(problem, sampler_of(problem), replicas, clock)
        self._exact, self._whole = exact, problem
        self._motion = problem.motion

    def step(self, k: int) -> None:
        """Take step k: w <- w - eta grad of the loss of a batch, which moves along velocities where there are any."""
        self._look_at_step(k)
        weights = self._start.like(self.w)
        moved = self._motion.velocity(weights, self._gradient(weights, network, self.problem.output))
        if self.means.size:
            moved = self.means = self.problem.training.velocity(self.means, moved)
        self.w = self._motion.held(self._start.like(self.w + self.problem.training.learning_rate * moved))

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        self._look_at_output()
        return self._rows_of(self.w)

    @property
    def trained(self) -> FloatArray:
        """See `WithWeights.trained`."""
        return self.w

    def rows_of_average(self, average: FloatArray) -> Mapping[str, FloatArray]:
        """See `WithWeights.rows_of_average`; at the time of `rows`, which come before."""
        rows = self._rows_of(average)
        return {f"{name}_average": rows[name] for name in AVERAGED if name in rows}

    def _rows_of(self, w: FloatArray) -> dict[str, FloatArray]:
        """Results of weights."""
        found = {"score": np.stack([self._score(i, w[i]) for i in range(len(w))])}
        if self.problem.particles.record == "replicas":
            found["weights"] = w
        tables = self._tables
        if tables is not None:
            loss_of = self.problem if tables.whole else tables.problem  # the loss is left out where it takes too long
            exact = observables(tables, self._start, w, [loss_of] * len(w))
            found |= {name: exact[name] for name in self._names if name in exact}
        return found

    @cached_property
    def _tables(self) -> Tables | None:
        """Tables for exact averages, where they fit."""
        return exact_tables(self._whole) if self._exact else None

    @cached_property
    def _names(self) -> list[str]:
        """Names of the rows."""
        return list(row_shapes(self._whole, self._tables))

    def _score(self, i: int, w: FloatArray) -> FloatArray:
        """Largest correlation of each latent with its pre-activations in fresh samples, shape (latents,)."""
        step = int(self.reached[i])
        count = self.problem.particles.score_samples
        if not np.isfinite(w).all():
            return np.full(len(self._start.shape.level_of), np.nan)
        rng = replica_generator(seed_of(self.problem), self.replicas[i], 1 + step)
        values = self._sampler.below(rng, self._sampler.roots(rng, count))
        activity = network.forward(self._start.like(w), self._sampler.leaves(values))
        found = []
        for latents, u in zip(values[:-1], activity.before[::-1], strict=True):  # from the root down
            found.append(_correlations(latents.T, u).max(axis=1))
        return np.concatenate(found)


def _correlations(values: Values, u: FloatArray) -> FloatArray:
    """Sizes of the correlations of latents (latents, samples) and nodes (latents, samples, nodes); 0 of constants.

    Of latents with more than two values they are multiple correlations with the indicators of these.
    """
    u = u - u.mean(axis=1, keepdims=True)
    square = (u * u).sum(axis=1)
    if values.dtype == bool:
        z = values.astype(float)
        z -= z.mean(axis=1, keepdims=True)
        product = np.abs((z[:, None, :] @ u)[:, 0])
        scale = np.sqrt((z * z).sum(axis=1)[:, None] * square)
    else:
        z = (values[:, None] == np.arange(values.max() + 1)[:, None]).astype(float)
        means = (z @ u) / np.maximum(np.sqrt(z.sum(axis=2, keepdims=True)), 1.0)
        product, scale = np.sqrt((means * means).sum(axis=1)), np.sqrt(square)
    found = np.divide(product, scale, out=np.zeros_like(product), where=scale > 0.0)
    return np.asarray(np.minimum(found, 1.0))


def exact_tables(problem: Problem) -> Tables | None:
    """Tables from which exact averages follow at every output time, without the loss where that takes too long."""
    for candidate in (problem, without_root(problem)):
        try:
            check_at_extremes(candidate, check_tables)
        except InputError:
            continue
        tables = tables_of(candidate)
        # More terms than that would cost too much at every output time of every replica.
        if not tables.whole or terms(candidate.loss.contrast, problem.shape.configurations[-1]) <= 2e6:
            return tables
    return None


def _with_averages(problem: Problem, rows: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Rows with those of averages of weights, where there are any."""
    if problem.training.average_rate is None:
        return rows
    return rows | {f"{name}_average": rows[name] for name in AVERAGED if name in rows}


def row_shapes(problem: Problem, tables: Tables | None) -> dict[str, tuple[int, ...]]:
    """Shapes of what is kept at every output time, with exact averages where there are tables for them."""
    latents, nodes = len(problem.shape.level_of), problem.shape.nodes
    shapes: dict[str, tuple[int, ...]] = {"score": (latents,)}
    replicas = problem.particles.record == "replicas"
    if replicas:
        shapes["weights"] = (problem.weight_count,)
    if tables is not None:
        if tables.problem is problem:
            shapes["loss"] = ()
        shapes["selectivity"] = (latents, nodes)
        if problem.averages_nodes:
            shapes["square"] = (problem.shape.latents[1], len(SIGNS))
            if tables.problem is problem or not problem.normalisation.active:
                shapes["Delta"] = ()
        if replicas:
            shapes["correlation"] = (latents, nodes)
    return shapes
