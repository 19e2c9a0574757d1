"""SGD on batches of pairs: results that are kept, the memory of a step, and the steps of replicas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from meanfield.ensembles.arrays import Record
from meanfield.ensembles.averages import check_rates, clocked
from meanfield.ensembles.ensemble import run_ensemble
from meanfield.ensembles.simulation import Simulation, batched
from meanfield.ensembles.stepper import ClockedStepper, replica_generator
from meanfield.families.alpha_contrastive.initial import (
    Weights,
    common_weights,
    initial_weights,
    tangential,
    unit,
)
from meanfield.families.alpha_contrastive.laws import Tokens
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.moments import harmonics_of, measured, moment_shapes, objective_of
from meanfield.families.alpha_contrastive.particles.network import Activity, BatchNetwork
from meanfield.families.alpha_contrastive.particles.pairs import BatchPairs
from meanfield.families.alpha_contrastive.particles.samples import Sampler, sampler_of
from meanfield.families.alpha_contrastive.population.drift import decides_drift
from meanfield.families.alpha_contrastive.population.fast_top import FastTop, check_average_of_top, check_fast_top
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.families.alpha_contrastive.scores import matches
from meanfield.ingredients.part import with_unchecked
from meanfield.problems.base import check_problem
from meanfield.problems.clock import Clock
from meanfield.problems.in_time import InTime, check_at_extremes, made_of
from meanfield.results.initial_state import seed_of
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray


@solver
def simulate_sgd(problem: Problem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of SGD with batches of fresh pairs of views.

    Parameters
    ----------
    problem : Problem
        `training` has step, batch and momentum, `particles.test_batches` the fresh batches of an output time.
    workers, record : optional
        See `meanfield.simulate_sgd`.

    Returns
    -------
    xarray.Dataset
        `energy`, `covariance_trace` and, where the importance comes from a loss of the views, `loss`, as means over
        fresh batches; `weights`, for two layers `top`, and for tokens the scores `chi_plus` and `chi_minus`; with
        `training.average_rate` `energy_average`, `weights_average` and `top_average` of averaged weights; with
        `particles.record = 'statistics'` statistics over replicas instead. Output time t is step round(t/eta). What was
        not reached is NaN.

    Notes
    -----
    Importances that are divided by a sum over the batch are multiplied by N. Source: alpha_contrastive.md, section 5.
    """
    solved = run_ensemble(simulation_of(problem), partial(clocked, problem, Replicas), workers, record)
    return replace(solved, arrays=solved.arrays | harmonics_of(problem))


def simulation_of(problem: Problem) -> Simulation:
    """Simulation that a problem describes."""
    check_problem(problem, Problem)
    check_rates(problem.training, problem.steps_per_time)
    in_time, stop = InTime(problem), problem.time.stop
    if problem.population.fast_top:
        check_at_extremes(problem, check_fast_top)
        check_average_of_top(problem)
    return batched(
        problem,
        max(numbers_of_a_step(each) for each in in_time.extremes(stop).values()),
        together=2**16,
        rows=common_rows(problem) | average_shapes(problem),
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


def measure_of(problem: Problem) -> Callable[[FloatArray, Mapping[str, FloatArray]], dict[str, Any]]:
    """What follows from filters and top layers; see `meanfield.problems.family.Family.measure`."""
    clock = Clock(problem)

    def measured(times: FloatArray, given: Mapping[str, FloatArray]) -> dict[str, Any]:
        if "weights" not in given or (problem.model.layers == 2 and "top" not in given):
            return {}
        stepper = Replicas(problem, range(len(given["weights"])), clock)
        parts = {"filters": given["weights"]}
        if problem.model.layers == 2:
            parts["top"] = given["top"].reshape(*given["top"].shape[:3], -1)
        return stepper.rows_in_time(clock.steps_at(times), parts) | harmonics_of(problem)

    return measured


class Replicas(ClockedStepper):
    """Replicas of a network of one or two layers."""

    kept: ClassVar[tuple[str, ...]] = ("filters", "top", "filter_speed", "top_speed", "rngs")

    def __init__(self, problem: Problem, replicas: range, clock: Clock | None = None) -> None:
        super().__init__(problem, replicas, clock)
        self._names = tuple(common_rows(problem))
        self._sampler_of = made_of(_sampler, lambda each: each.data)
        self._network_of, self._fast_of = made_of(self._make_network, decides_drift), made_of(_fast_top, decides_drift)
        self._look_up(self._in_time(0.0))
        self.rngs = [replica_generator(seed_of(problem), replica) for replica in replicas]
        # which moves generators on in any case
        starts = [initial_weights(problem, rng, run) for run, rng in zip(replicas, self.rngs, strict=True)]
        if problem.particles.common_start:
            starts = [common_weights(problem)] * len(starts)
        self.filters, self.top = (np.stack(parts) for parts in zip(*starts, strict=True))
        self.filter_speed, self.top_speed = np.zeros_like(self.filters), np.zeros_like(self.top)
        self._follow()

    def _make_network(self, problem: Problem) -> BatchNetwork:
        pairs = BatchPairs(problem.importance, problem.training.batch_size)
        layer = self._sampler_of(problem).layer(Filter(problem.model.activation_functions))
        return BatchNetwork(problem.model, layer, pairs)

    def _enter(self, problem: Problem) -> None:
        """Go on with a problem."""
        self._look_up(problem)
        self._follow()

    def _look_up(self, problem: Problem) -> None:
        self.problem, importance = problem, problem.importance
        self._with_source = importance.argument == "source" and importance.kind != "quadratic"
        self._sampler, self._network = self._sampler_of(problem), self._network_of(problem)

    @property
    def weights(self) -> Weights:
        """Weights of all replicas."""
        return Weights(self.filters, self.top)

    def step(self, k: int) -> None:
        """Take step k: the velocity gets grad E - decay weights, and weights <- weights + eta velocity."""
        self._look_at_step(k)
        training, model = self.problem.training, self.problem.model
        slope = self._network.slope(self.weights, self._activity(self.rngs, self.weights))
        moves = []
        for weights, by_weights, speed, held, dims in (
            (self.filters, slope.filters, self.filter_speed, model.unit_filters, 1),
            (self.top, slope.top, self.top_speed, model.unit_top, 2),
        ):
            change = by_weights - training.weight_decay * weights
            if held and weights.size:
                change = tangential(change, weights, dims)
            speed = training.velocity(speed, change)
            moved = weights + training.learning_rate * speed
            moves.append((unit(moved, dims) if held and weights.size else moved, speed))
        (self.filters, self.filter_speed), (self.top, self.top_speed) = moves
        self._follow()

    def _follow(self) -> None:
        """Put a fast top at its optimum."""
        if not self.problem.population.fast_top:
            return
        fast = self._fast_of(self.problem)
        for filters, top in zip(self.filters, self.top, strict=True):
            if np.isfinite(filters).all():
                top[:] = fast.top(Weights(filters, top))

    def _activity(self, rngs: list[Generator], weights: Weights) -> Activity:
        """Activity at a fresh batch for each replica."""
        N = self.problem.training.batch_size
        batches = [self._sampler.draw(rng, N, self._with_source) for rng in rngs]
        views = np.stack([batch.views for batch in batches])
        sources = [batch.source for batch in batches if batch.source is not None]
        source = np.stack(sources) if sources else None
        return self._network.forward(weights, views, source)

    @property
    def finite(self) -> NDArray[np.bool_]:
        """See `PythonStepper.finite`."""
        return np.asarray(np.isfinite(self.filters.sum(axis=(1, 2, 3)) + self.top.sum(axis=(1, 2))))

    @property
    def rows(self) -> Mapping[str, FloatArray]:
        """See `Stepper.rows`."""
        self._look_at_output()
        problem = self.problem
        samples = self.problem.particles.test_batches
        rngs = self._fresh_generators()
        found = [self._activity(rngs, self.weights) for _ in range(samples)]
        rows: dict[str, FloatArray] = {
            "energy": np.mean([one.energy for one in found], axis=0),
            "covariance_trace": np.mean([one.covariance_trace for one in found], axis=0),
        }
        if has_loss(problem):
            rows["loss"] = np.mean([one.weighed.loss for one in found], axis=0)
        if problem.model.layers == 1:
            rows |= measured([problem] * len(self.filters), self.filters[:, 0])
        if isinstance(problem.data, Tokens):
            rows |= matches(self.filters, problem.data, Filter(problem.model.activation_functions))
        rows |= self._kept(self.weights)
        return {name: rows[name] for name in self._names}

    def _fresh_generators(self) -> list[Generator]:
        """Generators of the test batches of an output time."""
        return [
            replica_generator(seed_of(self.problem), replica, 1 + int(step))
            for replica, step in zip(self.replicas, self.reached, strict=True)
        ]

    @property
    def trained(self) -> FloatArray:
        """See `WithWeights.trained`: all weights of a replica in a row."""
        return np.concatenate([part.reshape(len(part), -1) for part in self.weights], axis=1)

    def rows_of_average(self, average: FloatArray) -> Mapping[str, FloatArray]:
        """See `WithWeights.rows_of_average`; at the batches of `rows`, which come before."""
        split, rngs = self.filters[0].size, self._fresh_generators()
        weights = Weights(average[:, :split].reshape(self.filters.shape), average[:, split:].reshape(self.top.shape))
        energies = [self._activity(rngs, weights).energy for _ in range(self.problem.particles.test_batches)]
        return {"energy_average": np.mean(energies, axis=0)} | self._kept(weights, "_average")

    def _kept(self, weights: Weights, name: str = "") -> dict[str, FloatArray]:
        """Weights as results have them, where they do."""
        if self.problem.particles.record != "replicas":
            return {}
        found = {f"weights{name}": weights.filters}
        if self.problem.model.layers == 2:
            found[f"top{name}"] = weights.top.reshape(*weights.top.shape[:2], *weights.filters.shape[1:3])
        return found


def _sampler(problem: Problem) -> Sampler:
    return sampler_of(problem.data)


def _fast_top(problem: Problem) -> FastTop:
    """Top layer at its optimum for the mean of batches: if it learns fast, it sees many of them before filters move."""
    return FastTop(with_unchecked(problem, population=with_unchecked(problem.population, finite_batch=True)))


def has_loss(problem: Problem) -> bool:
    """Whether SGD descends a loss, which results then hold: the one whose gradient has the importance of the views."""
    of_views = problem.importance.argument == "views" or not sampler_of(problem.data).augments
    return of_views and BatchPairs(problem.importance, 2).has_loss


def common_rows(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Shapes of what is kept at every output time, in all phases."""
    first, *others = map(row_shapes, InTime(problem).extremes(problem.time.stop).values())
    return {name: shape for name, shape in first.items() if all(name in other for other in others)}


def row_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Shapes of what is kept at an output time."""
    shapes: dict[str, tuple[int, ...]] = {"energy": (), "covariance_trace": ()}
    if has_loss(problem):
        shapes["loss"] = ()
    if isinstance(problem.data, Tokens):
        marked = problem.data.marked
        shapes |= {"chi_plus": ()} | ({} if marked.all() else {"chi_minus": ()})
    shapes |= moment_shapes(problem) | ({} if objective_of(problem) is None else {"G": ()})
    return shapes | _weight_shapes(problem)


def average_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    """Shapes of what is kept of averages of weights, where there are any."""
    if problem.training.average_rate is None:
        return {}
    return {f"{name}_average": shape for name, shape in ({"energy": ()} | _weight_shapes(problem)).items()}


def _weight_shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    if problem.particles.record != "replicas":
        return {}
    shapes: dict[str, tuple[int, ...]] = {"weights": problem.shape}
    if problem.model.layers == 2:
        shapes["top"] = (problem.model.outputs, *problem.shape[:2])
    return shapes
