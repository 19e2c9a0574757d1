"""Exact flow of filters of one layer whose activation has kinks, which gather on walls where they meet a sample.

Filters of a network are carried as those of a density are: between walls, across them, and along those that hold them.
Steps are halved until the filters of two runs agree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from meanfield.families.alpha_contrastive.density.carried import CarriedFilters
from meanfield.families.alpha_contrastive.density.flows import (
    CoupledFlow,
    Flow,
    MixtureFlow,
    carried_along,
    decides_flow,
    on_sides,
    steps_along,
)
from meanfield.families.alpha_contrastive.initial import common_weights
from meanfield.families.alpha_contrastive.laws import GaussianMixture
from meanfield.families.alpha_contrastive.limit.fields import mixture_field
from meanfield.families.alpha_contrastive.population.drift import Drift, PointDrift, share_of_pairs
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.numerics.moving_averages import along_a_line
from meanfield.numerics.refinement import Refined, change_of, refine
from meanfield.problems.in_time import InTime, made_of
from meanfield.typing import FloatArray

COURANTS = tuple(0.1 / 2**k for k in range(9))
"""Steps in time over the rate of the flow, one run after the other."""


def carried_filters(problem: Problem) -> Refined[float, dict[str, FloatArray]]:
    """Filters at output times, shape (times, filters * coordinates), with the change by the last halving of steps.

    With them come their averages, where the problem has such.
    """
    return refine(
        COURANTS,
        partial(_paths, problem),
        lambda coarse, fine: change_of(coarse, fine, ("filters",)),
        tolerance_of(problem),
    )


def tolerance_of(problem: Problem) -> float:
    """Change of a filter that is allowed when steps are halved."""
    return max(problem.population.tolerance, 1e-6)  # steps of order two reach no less


def is_carried(drift: Drift) -> bool:
    """Whether filters meet walls."""
    return isinstance(drift, PointDrift) and bool(drift.field.filter.kinks) and not drift.is_rounded


def example_of_path(problem: Problem) -> tuple[float, Callable[[], object]]:
    """Usual number of steps until two runs agree, and a function that takes one of them."""
    flow = _flow(InTime(problem)(0.0))
    filters, weight = _start(problem, flow)
    rate = flow.speed * flow.rate(flow.laplacian(filters, weight))
    usual = 0.1 / 2**3  # the finest steps of most problems; those of all runs together are twice as many
    steps = 2.0 * (problem.time.stop * rate / usual + problem.time.outputs)
    span = 0.0, usual / max(rate, 1e-12)
    return steps, lambda: next(steps_along(lambda _: flow, filters, weight, span, usual))


def _start(problem: Problem, flow: Flow) -> tuple[CarriedFilters, FloatArray]:
    """Filters at the start, on the sides of walls where they are, and their weights."""
    w = common_weights(problem).filters[0]
    filters = on_sides(flow, np.pad(w, ((0, 0), (0, 3 - w.shape[1]))))
    return filters, np.full(len(w), 1.0 / len(w))


def _flow(problem: Problem) -> Flow:
    share, slowness = share_of_pairs(problem), 1.0 - problem.training.momentum
    if isinstance(problem.data, GaussianMixture):  # in a phase
        return MixtureFlow(mixture_field(problem, problem.data), speed=share / slowness)
    return CoupledFlow(PointDrift(problem).field, speed=share / slowness)


def _paths(problem: Problem, courant: float) -> dict[str, FloatArray]:
    flow_of = made_of(_flow, decides_flow)
    flow = flow_of(InTime(problem)(0.0))
    filters, weight = _start(problem, flow)
    label = f"exact flow, steps of {courant:.2g} over its rate"
    a = problem.training.average_rate

    def follow(average: FloatArray, dt: float, before: FloatArray, after: FloatArray) -> FloatArray:
        return average if a is None else along_a_line(average, before, after, a, dt)

    path = carried_along(problem, flow_of, filters, weight, courant, label, filters.w, follow)
    rows = [(filters.w, filters.w), *((each.w, average) for each, _, average in path)]
    names = ("filters",) if a is None else ("filters", "average")
    columns = dict(zip(names, zip(*rows, strict=True), strict=False))
    return {name: np.stack(each)[..., : flow.dimension].reshape(len(rows), -1) for name, each in columns.items()}
