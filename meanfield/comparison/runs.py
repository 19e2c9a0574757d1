"""Judgement by the scatter of runs: of runs against a prediction, and of two sets of runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from meanfield.comparison.judgement import MOST_PLACES, Judgement, Place, decide
from meanfield.comparison.rotations import (
    FEWEST_WEIGHTS,
    Contrast,
    Deviations,
    Outcome,
    batched,
    evenly_spread,
    one_sample,
    rotation_test,
    two_samples,
)
from meanfield.comparison.sides import (
    finished_runs,
    largest_value,
    least_spread,
    stated_error,
    within_half_a_step,
)
from meanfield.problems.family import resolve
from meanfield.problems.variable import BY_ROTATIONS
from meanfield.results.result import Result
from meanfield.typing import FloatArray


def judge_runs(first: Result, second: Result, comparison: Result) -> Judgement:
    """Judge two results of which one at least holds runs one by one, and the other such runs or a prediction.

    Parameters
    ----------
    first, second : Result
    comparison : Result
        The pair of them in what `compare` returns, without a verdict.
    """
    first, second = (finished_runs(result) if result.has_runs else result for result in (first, second))
    if any(result.dataset.sizes["replica"] == 0 for result in (first, second) if result.has_runs):
        return Judgement("no scatter")
    contrast = _contrast(first, second)
    found = list(_quantities(first, second, comparison)) if contrast.freedom > 0 else []
    scarce = tuple(name for quantity in found if quantity.scarce for name in quantity.measures)
    quantities = [quantity for quantity in found if quantity.rows.shape[1]]
    if not quantities:
        shared = any(name in first.dataset and name in second.dataset for name in first.family.compared)
        return Judgement("no scatter" if shared else "nothing")
    outcome = rotation_test(contrast, quantities)
    p_without_errors = outcome.p_value
    if outcome.has_allowance:
        p_without_errors = rotation_test(contrast, quantities, with_allowance=False).p_value
    levels, resolution, places, distances = {}, {}, {}, {}
    for quantity in quantities:
        for name, measure in quantity.measures.items():
            allowed = outcome.levels[name] * outcome.standard_errors[name]
            if name in first.family.compared:
                levels[name], resolution[name] = outcome.levels[name], float(allowed.max())
                places[name] = quantity.where
                continue
            all_of_it = measure(np.abs(np.tensordot(contrast.direction, quantity.rows, 1)) / contrast.reach)
            by_errors = all_of_it - outcome.deviations[name] * outcome.standard_errors[name]
            distances[name] = quantity.where, (allowed + by_errors) / all_of_it
    hidden = bool(resolution) and all(size > largest_value(first, second, name) for name, size in resolution.items())
    few_weights = min(quantity.weights for quantity in found) < FEWEST_WEIGHTS
    why = decide(outcome.p_value, p_without_errors, contrast.freedom + 1, hidden, few_weights)
    worst = _worst(outcome, quantities)
    scatters = 0.0 if contrast.common.any() else worst.deviation / contrast.reach
    return Judgement(
        why, outcome.p_value, worst, scatters, levels, resolution, places, distances, scarce, test=BY_ROTATIONS
    )


def _contrast(first: Result, second: Result) -> Contrast:
    """Contrast of the two results, whose rows are weighted by their numbers of runs, and by N if both hold runs."""
    sides = [result for result in (first, second) if result.has_runs]
    sizes = [batched(np.zeros(result.dataset.sizes["replica"]))[1] for result in sides]
    if len(sides) == 1:
        return one_sample(sizes[0])
    return two_samples(*(size * _dimension(result) for size, result in zip(sizes, sides, strict=True)))


def _dimension(result: Result) -> float:
    """Dimension N, to whose inverse the covariance of runs is proportional; 1 in families without."""
    return float(result.problem.labels.get("dimension", 1.0))


def _quantities(first: Result, second: Result, comparison: Result) -> Iterator[Deviations]:
    """Deviations of all quantities that both results hold and in which runs scatter."""
    family = first.family
    for name in family.compared:
        if name in first.dataset and name in second.dataset and not squared(first, second, name):
            found = _compared(first, second, name)
            if found is not None:
                yield found
    if family.measure_deviations and first.has_runs != second.has_runs:
        prediction, runs = (second, first) if first.has_runs else (first, second)
        for found in resolve(family.measure_deviations)(prediction, runs, comparison):
            yield replace(found, rows=batched(found.rows)[0])


def squared(first: Result, second: Result, name: str) -> str:
    """Quantity of whose square a compared one is a multiple in both results, as the loss is of the output; or "".

    It says nothing that the other does not. Where that one is Gaussian this is skew, and has a bias: both are of the
    order of the scatter, so that the false alarms of few runs, and those of many, come from here.
    """
    both = (first.dataset, second.dataset)
    if not all(name in held for held in both):
        return ""
    values = np.concatenate([held[name].values.ravel() for held in both])
    for other in first.family.compared:
        if other == name or any(other not in held or held[other].dims != held[name].dims for held in both):
            continue
        squares = np.concatenate([held[other].values.ravel() for held in both]) ** 2
        known = np.isfinite(values) & np.isfinite(squares)
        x, y = values[known], squares[known]
        # Largest deviation from a square, relative to the largest value, of numbers that may be kept in single
        # precision.
        if (x @ y) and np.all(np.abs(x - y * (x @ y) / (y @ y)) <= 1e-6 * np.abs(x).max()):
            return other
    return ""


def _compared(first: Result, second: Result, name: str) -> Deviations | None:
    """Deviations in a compared variable at all times, None if runs scatter at none of them."""
    results = (first, second)
    held = [result.dataset[name].transpose("replica", "time", ..., missing_dims="ignore") for result in results]
    sides = [x.values.astype(float) for x in held]
    runs = [x for x, result in zip(sides, results, strict=True) if result.has_runs]
    if len(runs) == 2:
        rows = np.concatenate([batched(x)[0] * np.sqrt(_dimension(r)) for x, r in zip(sides, results, strict=True)])
    else:
        away = sides[0] - sides[1]
        rows = batched(away - within_half_a_step(away.mean(axis=0), first, second, name))[0]
    scatter = np.max([x.std(axis=0) for x in runs], axis=0)
    scale = np.maximum(1.0, np.max([np.abs(x).max(axis=0) for x in runs], axis=0))
    where = np.nonzero(np.isfinite(rows).all(axis=0) & (scatter > least_spread(first, second, name) * scale))
    if not len(where[0]):
        return None
    kept = evenly_spread(len(where[0]), MOST_PLACES)
    where = tuple(index[kept] for index in where)
    errors = [stated_error(result, name) for result in results]
    allowance = sum((error[where] for error in errors if error is not None), np.zeros(len(kept)))
    return Deviations(np.moveaxis(rows, 0, -1)[where].T[..., None], allowance[:, None], {name: _only}, where)


def _only(values: FloatArray) -> FloatArray:
    """Size of a vector of one component."""
    return values[..., 0]


def _worst(outcome: Outcome, quantities: list[Deviations]) -> Place:
    """Place with the largest deviation in units of what chance allows."""
    places = []
    for quantity in quantities:
        for name in quantity.measures:
            at = int(np.argmax(outcome.deviations[name]))
            index = tuple(int(positions[at]) for positions in quantity.where)
            places.append(Place(name, index, float(outcome.deviations[name][at]), outcome.levels[name]))
    return max(places, key=lambda place: place.deviation / place.allowed)
