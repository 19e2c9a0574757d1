"""Judgement by errors that are known: standard errors of runs, and errors that predictions state.

Standard errors judge statistics of many runs, and few runs whose covariance is predicted. The largest of n numbers is
allowed what chance allows one of them in 0.05/n of cases (Bonferroni). That holds whatever their dependence is, which
is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import stdtr, stdtrit

from meanfield.comparison.judgement import FALSE_ALARMS, FEWEST_RUNS, SOLVER_ROUNDING, Judgement, Place, Why, decide
from meanfield.comparison.sides import (
    Moments,
    beyond_errors,
    largest_value,
    least_spread,
    measurement_variance,
    moments,
    predicted_variance,
    rounding,
    stated_error,
    within_half_a_step,
)
from meanfield.problems.variable import BY_STANDARD_ERRORS, BY_STATED_ERRORS
from meanfield.results.result import Result
from meanfield.typing import FloatArray, IntArray


class _Numbers(NamedTuple):
    """Differences of a quantity.

    Parameters
    ----------
    name : str
    runs : float
        Least number of runs of the two sides.
    size : float
        Largest absolute value of the quantity.
    difference, left : ndarray
        All of the difference, and what stated errors leave of it, in standard errors.
    error, freedom : ndarray
        Standard errors, and their degrees of freedom.
    """

    name: str
    runs: float
    size: float
    difference: FloatArray
    left: FloatArray
    error: FloatArray
    freedom: FloatArray


def judge_moments(first: Result, second: Result, results: Sequence[Result]) -> Judgement:
    """Judge two results of which one at least is of runs.

    Parameters
    ----------
    first, second : Result
    results : sequence of Result
        All results that are compared, one of which may predict the variance of runs.
    """
    names = first.family.compared
    sides = [[_with_prediction(result, name, results) for name in names] for result in (first, second)]
    found = []
    for name, one, other in zip(names, *sides, strict=True):
        if one is not None and other is not None:
            found.append(_numbers(name, one, other, (first, second)))
    count = sum(int(np.isfinite(numbers.left).sum()) for numbers in found)
    if not count:
        return Judgement("no scatter" if found else "nothing")
    found = [numbers for numbers in found if np.isfinite(numbers.left).any()]
    levels = {n.name: np.asarray(stdtrit(n.freedom, 1 - FALSE_ALARMS / (2 * count)), dtype=float) for n in found}
    p_value = min(1.0, count * min(_least_likely(n.left, n.freedom) for n in found))
    p_without_errors = count * min(_least_likely(n.difference, n.freedom) for n in found)
    worst = max((_worst(n, levels[n.name]) for n in found), key=lambda place: place.deviation / place.allowed)
    resolution = {n.name: float(np.nanmax(levels[n.name] * n.error)) for n in found}
    hidden = all(resolution[n.name] > n.size for n in found)
    why = decide(p_value, p_without_errors, min(n.runs for n in found), hidden)
    places = {n.name: np.nonzero(np.isfinite(n.left)) for n in found}
    predicted = any(result.is_prediction for result in (first, second))
    scatters = worst.deviation / math.sqrt(min(n.runs for n in found)) if predicted else 0.0
    lowest = {name: float(np.nanmin(allowed)) for name, allowed in levels.items()}
    return Judgement(why, p_value, worst, scatters, lowest, resolution, places, test=BY_STANDARD_ERRORS)


def _worst(numbers: _Numbers, levels: FloatArray) -> Place:
    at = np.unravel_index(np.nanargmax(np.abs(numbers.left) / levels), levels.shape)
    return Place(numbers.name, tuple(map(int, at)), float(abs(numbers.left[at])), float(levels[at]))


def _with_prediction(result: Result, name: str, results: Sequence[Result]) -> Moments | None:
    """Moments of a quantity, with its predicted variance where too few runs show one."""
    found = moments(result, name)
    if found is None or found.runs >= FEWEST_RUNS or result.is_prediction:
        return found
    known = (predicted_variance(other, name) for other in results)
    variance = next((values for values in known if values is not None and values.shape == found.mean.shape), None)
    if variance is None or found.runs < 1:
        return found
    variance = variance / (result.steps_per_time * found.runs) + measurement_variance(result, name)
    return Moments(found.mean, variance, np.inf)


def _numbers(name: str, one: Moments, other: Moments, results: tuple[Result, Result]) -> _Numbers:
    away, variance = other.mean - one.mean, one.variance + other.variance
    difference = away - within_half_a_step(away, *results, name)
    least = least_spread(*results, name) * np.maximum(1.0, np.abs(one.mean))
    error = np.where(variance > least**2, np.sqrt(variance), np.nan)
    allowed = sum((stated for stated in (stated_error(result, name) for result in results) if stated is not None), 0.0)
    # Welch's degrees of freedom of a sum of two estimated variances, by their shares, whose squares do not overflow
    shares = [_share(each.variance, variance) for each in (one, other)]
    doubt = sum(share**2 / max(each.runs - 1, 1e-9) for share, each in zip(shares, (one, other), strict=True))
    known = 1e9  # degrees of freedom of a variance that is known: Student's law is then the normal one to 1e-9
    freedom = np.clip(1.0 / np.maximum(doubt, 1.0 / known), 1e-3, known)
    left = beyond_errors(difference, allowed, error, freedom)
    size = largest_value(*results, name)
    return _Numbers(name, min(one.runs, other.runs), size, difference / error, left / error, error, freedom)


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Part of a variance, all of it where there is none or it overflows."""
    known = (whole > 0.0) & np.isfinite(whole)
    return np.where(known, part / np.where(known, whole, 1.0), 1.0)


def _least_likely(deviations: FloatArray, freedom: FloatArray) -> float:
    """Least probability with which chance exceeds one of the deviations in either direction."""
    return float(np.nanmin(2 * stdtr(freedom, -np.abs(deviations))))


def judge_predictions(first: Result, second: Result, comparison: Result) -> Judgement:
    """Judge two predictions by all compared variables that both hold, and on equal grids by distances with a bound.

    Parameters
    ----------
    first, second : Result
    comparison : Result
        The pair of them in what `compare` returns, without a verdict.
    """
    worst: Place | None = None
    stated = True
    coarse = False
    places: dict[str, tuple[IntArray, ...]] = {}
    for name, difference, errors, scale in _differences(first, second, comparison):
        finite = np.isfinite(difference)
        if not finite.any():
            continue
        places[name] = np.nonzero(finite)
        stated_errors = sum((error for error in errors if error is not None), np.zeros(difference.shape))
        allowed = np.where(finite, SOLVER_ROUNDING * scale + stated_errors, np.inf)
        excess = np.where(finite, difference, 0.0) / np.maximum(allowed, np.finfo(float).tiny)
        at = np.unravel_index(np.argmax(excess), excess.shape)
        place = Place(name, tuple(map(int, at)), float(difference[at]), float(allowed[at]))
        if worst is None or place.deviation * worst.allowed > worst.deviation * place.allowed:
            worst = place
            stated = all(error is not None for error in errors)
        coarse |= bool(0 < scale < allowed[finite].max())
    if worst is None:
        return Judgement("nothing")
    if worst.deviation > worst.allowed:
        why: Why = "beyond" if stated else "unstated"
    else:
        why = "coarse" if coarse else "errors"
    return Judgement(why, worst=worst, places=places, test=BY_STATED_ERRORS)


def _differences(
    first: Result, second: Result, comparison: Result
) -> Iterator[tuple[str, FloatArray, Sequence[FloatArray | None], float]]:
    """Names, differences, errors of both sides, and largest values."""
    one, other, measured = first.dataset, second.dataset, comparison.dataset
    for name in first.family.compared:
        if name in one and name in other:
            errors = [stated_error(result, name) for result in (first, second)]
            yield name, np.abs(measured[f"{name}_difference"].values), errors, largest_value(first, second, name)
    for name in first.family.distances:
        bound = first.family.variables[name].bounded_by
        if bound and bound in one and bound in other and _on_one_grid(one, other):
            bounds = [dataset[bound].values + rounding(dataset[bound]) for dataset in (one, other)]
            yield name, measured[name].values, bounds, 1.0


def _on_one_grid(first: xr.Dataset, second: xr.Dataset) -> bool:
    """Whether what does not depend on time, such as cells and nodes, is the same: else distances measure the grids."""
    fixed = [name for name, variable in first.variables.items() if "time" not in variable.dims or name == "time"]
    return all(name in second and first[name].equals(second[name]) for name in fixed)
