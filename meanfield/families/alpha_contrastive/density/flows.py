"""Flows that carry a density of filters: forces on each, the importance that all decide, objective and certificate.

The importance sees the filters through the distances D_ij alone; for the uniform importance, or mixtures, every filter
moves by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from meanfield.families.alpha_contrastive.density.carried import NO_WALL, CarriedFilters, advance
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.fields import AnyField
from meanfield.families.alpha_contrastive.limit.kernel_mixture import KernelMixtureField
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.families.alpha_contrastive.limit.networks import Network, network_of, with_importance
from meanfield.families.alpha_contrastive.limit.walls import make_walls
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.in_time import InTime
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

AnyMixture = MixtureField | KernelMixtureField

S = TypeVar("S")

Best = Callable[[AnyField], float]
"""Function of a field that returns the largest energy of a filter."""


class CoupledFlow:
    """Flow of filters at data of finitely many atoms.

    Parameters
    ----------
    field : DiscreteField
        Of data in the plane, or in space.
    best : callable, optional
        Largest energy of a filter of a field, without which there is no summary.
    speed : float
        Factor of all rates, such as that of a momentum.
    """

    def __init__(self, field: DiscreteField, best: Best | None = None, speed: float = 1.0) -> None:
        self.field = field
        self._best, self.speed = best, speed
        self.dimension = field.atoms.shape[1]
        self._atoms = np.pad(field.atoms, ((0, 0), (0, 3 - self.dimension)))
        self.walls = make_walls(self._atoms, field.filter)
        self.normal, self.offset = self.walls.normal, self.walls.offset

    def network(self, w: FloatArray, weight: FloatArray) -> Network:
        """Network of filters, shape (filters, 3), with weights."""
        return network_of(self.field, self.field.filter.value(w @ self._atoms.T), weight)

    def laplacian(self, filters: CarriedFilters, weight: FloatArray) -> FloatArray:
        """L of the importance that filters decide."""
        if self.field.pairs.uniform:
            return self._uniform
        return self.network(filters.w, weight).laplacian

    @cached_property
    def _uniform(self) -> FloatArray:
        return self.field.laplacian(np.eye(self.dimension)[0])

    def forces(
        self, w: FloatArray, side: FloatArray, L: tuple[Any, Any], share: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """See `Carrier.forces`."""
        h, slope = self.walls.outputs(w @ self._atoms.T, side)
        pull = h @ L[0]
        if L[1] is not L[0]:
            pull += share[:, None] * (h @ (L[1] - L[0]))
        return np.asarray((pull * slope) @ self._atoms), self.walls.jumps(pull)

    def rate(self, L: Any) -> float:
        """Scale of the rates at which filters come together or part.

        That of the uniform importance is added for the answer of the importance to all filters.
        """
        reach = float(self.walls.lengths.max())
        p = self.field.pairs.probability
        slope = float(np.abs(self.field.filter.slope(np.linspace(-reach, reach, 65))).max())
        total = L if self.field.pairs.uniform else L + np.diag(p) - np.outer(p, p)
        return slope**2 * float(np.abs(np.linalg.eigvalsh(self._atoms.T @ total @ self._atoms)).max())

    def summary(self, filters: CarriedFilters, weight: FloatArray) -> tuple[float, float]:
        """Objective G, and what E_alpha of the best filter is above its average over the density."""
        assert self._best is not None
        network = self.network(filters.w, weight)
        best = self._best(with_importance(self.field, network))
        return network.objective, max(best - network.mean_energy, 0.0)


class MixtureFlow:
    """Flow of filters at a Gaussian mixture, each by itself; see `CoupledFlow`."""

    def __init__(self, field: AnyMixture, best: Best | None = None, speed: float = 1.0) -> None:
        self.field = field
        self._best_of, self.speed = best, speed
        self.dimension = field.mean.shape[1]
        self.normal, self.offset = np.empty((0, 3)), np.empty(0)

    @cached_property
    def _best(self) -> float:
        assert self._best_of is not None
        return self._best_of(self.field)

    def laplacian(self, filters: CarriedFilters, weight: FloatArray) -> AnyMixture:
        """The field itself, which filters do not change."""
        return self.field

    def forces(
        self, w: FloatArray, side: FloatArray, L: tuple[Any, Any], share: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """See `Carrier.forces`."""
        force, some = np.zeros_like(w), w[:, : self.dimension]
        force[:, : self.dimension] = first = L[0].field(some)
        if L[1] is not L[0]:
            force[:, : self.dimension] += share[:, None] * (L[1].field(some) - first)
        return force, np.empty((len(w), 0))

    def rate(self, L: Any) -> float:
        """See `CoupledFlow.rate`."""
        # Filters at which the speed of a flow is looked at.
        some = np.random.default_rng(0).standard_normal((64, self.dimension))
        some /= np.linalg.norm(some, axis=1, keepdims=True)
        return max(float(np.abs(np.linalg.eigvalsh(self.field.matrix(w))).max()) for w in some)

    def summary(self, filters: CarriedFilters, weight: FloatArray) -> tuple[float, float]:
        """See `CoupledFlow.summary`."""
        objective = float(self.field.energy(filters.w[:, : self.dimension]) @ weight)
        return objective, max(self._best - objective, 0.0)


Flow = CoupledFlow | MixtureFlow


class Step(NamedTuple):
    """Step of filters along a flow that does not jump.

    Parameters
    ----------
    start : float
    flow : CoupledFlow or MixtureFlow
        At the start, as are L, which forces depend on, and the filters.
    L : object
    filters : CarriedFilters
    """

    start: float
    flow: Flow
    L: Any
    filters: CarriedFilters

    def end(self, time: float, following: Flow, weight: FloatArray) -> CarriedFilters:
        """Filters at a time at which the flow is `following`, by Heun's method."""
        dt = 0.5 * (self.flow.speed + following.speed) * (time - self.start)
        guess = advance(self.filters, self.flow, (self.L, self.L), dt)
        later = following.laplacian(guess, weight)
        return guess if later is self.L else advance(self.filters, self.flow, (self.L, later), dt)


def steps_along(
    at: Callable[[float], Flow], filters: CarriedFilters, weight: FloatArray, span: tuple[float, float], courant: float
) -> Iterator[tuple[Step, float, CarriedFilters]]:
    """Steps of at most `courant` over the rate of the flow, each with its end and the filters there.

    Parameters
    ----------
    at : callable
        Flow at a time, which does not jump.
    filters : CarriedFilters
    weight : ndarray, shape (filters,)
    span : (float, float)
        First and last time.
    courant : float
    """
    now, stop = span
    flow = at(now)
    while now < stop:
        L = flow.laplacian(filters, weight)
        left = int(np.ceil(flow.speed * (stop - now) * flow.rate(L) / courant))
        step, now = Step(now, flow, L, filters), now + (stop - now) / left if left > 1 else stop
        flow = at(now)
        filters = step.end(now, flow, weight)
        yield step, now, filters


def decides_flow(problem: Problem) -> tuple[object, ...]:
    """What a flow depends on of all that may change in time."""
    training = problem.training
    return problem.model, problem.data, problem.importance, training.batch_size, training.momentum


def on_sides(flow: Flow, w: FloatArray) -> CarriedFilters:
    """Filters on the sides of the walls of a flow where they are, which nothing holds yet."""
    side = np.where(w @ flow.normal.T >= flow.offset, 1.0, -1.0)
    return CarriedFilters(w, side, np.full((len(w), 2), NO_WALL))


Seen = Callable[[S, float, FloatArray, FloatArray], S]
"""Function that takes a state from the start of a step to its end, by its length, and filters at both."""


def carried_along(
    problem: Problem,
    flow_of: Callable[[Problem], Flow],
    filters: CarriedFilters,
    weight: FloatArray,
    courant: float,
    label: str,
    state: S,
    seen: Seen[S],
) -> Iterator[tuple[CarriedFilters, Flow, S]]:
    """Filters at all output times after the first, with the flow and a state of that time.

    No step goes past a corner. Steps do not know of output times, which have shorter steps of their own.

    Parameters
    ----------
    problem : Problem
    flow_of : callable
        Flow of the problem of a time, made anew where `decides_flow` says so.
    filters : CarriedFilters
        At the start.
    weight : ndarray, shape (filters,)
    courant : float
    label : str
        Of the progress bar.
    state, seen
        What else follows from the path of filters, at the start, and what a step makes of it.
    """
    times, in_time = problem.time.outputs_at, InTime(problem)
    with progress_bar(len(times) - 1, label) as bar:
        flow = flow_of(in_time(0.0))
        for stretch in in_time.stretches(problem.time.stop):
            before, flow = flow, flow_of(stretch.at(stretch.start))
            if not np.array_equal(flow.normal, before.normal) or not np.array_equal(flow.offset, before.offset):
                filters = on_sides(flow, filters.w)
            span, at = (stretch.start, stretch.stop), stretch.at
            for step, end, after in steps_along(lambda t, at=at: flow_of(at(t)), filters, weight, span, courant):  # type: ignore[misc]
                for time in times[(times > step.start) & (times <= end)].tolist():
                    there = after if time == end else step.end(time, flow_of(at(time)), weight)
                    lasted = time - step.start
                    yield there, flow_of(in_time(time)), seen(state, lasted, step.filters.w, there.w)
                    bar.update(1)
                state, filters = seen(state, end - step.start, step.filters.w, after.w), after
