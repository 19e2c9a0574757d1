"""Judgement by standard errors alone: of statistics of many runs, or of few runs whose covariance is predicted.

The largest of n numbers is allowed what chance allows one of them in 0.05/n of cases (Bonferroni). That holds whatever
their dependence is, which is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import stdtr, stdtrit

from meanfield.comparison.judgement import FALSE_ALARMS, FEWEST, Judgement, Place, decide
from meanfield.comparison.sides import (
    Moments,
    is_prediction,
    largest_value,
    least_spread,
    measurement_variance,
    moments,
    predicted_variance,
    stated_error,
)
from meanfield.problems.family import Family
from meanfield.results.schema import label_of
from meanfield.typing import FloatArray

MOST_FREEDOM = 1e9
"""Degrees of freedom of a variance that is known: Student's law is then the normal one to 1e-9."""


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


def judge_moments(first: xr.Dataset, second: xr.Dataset, family: Family, results: Sequence[xr.Dataset]) -> Judgement:
    """Judge two results of which one at least is of runs.

    Parameters
    ----------
    first, second : xarray.Dataset
    family : Family
    results : sequence of xarray.Dataset
        All results that are compared, one of which may predict the variance of runs.
    """
    sides = [[_with_prediction(dataset, name, results) for name in family.compared] for dataset in (first, second)]
    found = []
    for name, one, other in zip(family.compared, *sides, strict=True):
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
    predicted = any(is_prediction(dataset) for dataset in (first, second))
    scatters = worst.deviation / math.sqrt(min(n.runs for n in found)) if predicted else 0.0
    lowest = {name: float(np.nanmin(allowed)) for name, allowed in levels.items()}
    return Judgement(why, p_value, worst, scatters, lowest, resolution, places)


def _worst(numbers: _Numbers, levels: FloatArray) -> Place:
    at = np.unravel_index(np.nanargmax(np.abs(numbers.left) / levels), levels.shape)
    return Place(numbers.name, tuple(map(int, at)), float(abs(numbers.left[at])), float(levels[at]))


def _with_prediction(dataset: xr.Dataset, name: str, results: Sequence[xr.Dataset]) -> Moments | None:
    """Moments of a quantity, with its predicted variance where too few runs show one."""
    found = moments(dataset, name)
    if found is None or found.runs >= FEWEST or is_prediction(dataset):
        return found
    known = (predicted_variance(result, name) for result in results)
    variance = next((values for values in known if values is not None and values.shape == found.mean.shape), None)
    if variance is None or found.runs < 1:
        return found
    variance = variance / (label_of(dataset, "dimension") * found.runs) + measurement_variance(dataset, name)
    return Moments(found.mean, variance, np.inf)


def _numbers(name: str, one: Moments, other: Moments, datasets: tuple[xr.Dataset, xr.Dataset]) -> _Numbers:
    difference, variance = other.mean - one.mean, one.variance + other.variance
    least = least_spread(*datasets, name) * np.maximum(1.0, np.abs(one.mean))
    error = np.where(variance > least**2, np.sqrt(variance), np.nan)
    allowed = sum((stated for stated in (stated_error(d, name) for d in datasets) if stated is not None), 0.0)
    left = difference - np.clip(difference, -allowed, allowed)
    # Welch's degrees of freedom of a sum of two estimated variances, by their shares, whose squares do not overflow
    shares = [_share(each.variance, variance) for each in (one, other)]
    doubt = sum(share**2 / max(each.runs - 1, 1e-9) for share, each in zip(shares, (one, other), strict=True))
    freedom = np.clip(1.0 / np.maximum(doubt, 1.0 / MOST_FREEDOM), 1e-3, MOST_FREEDOM)
    runs, size = min(one.runs, other.runs), largest_value(*datasets, name)
    return _Numbers(name, runs, size, difference / error, left / error, error, freedom)


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Part of a variance, all of it where there is none or it overflows."""
    known = (whole > 0.0) & np.isfinite(whole)
    return np.where(known, part / np.where(known, whole, 1.0), 1.0)


def _least_likely(deviations: FloatArray, freedom: FloatArray) -> float:
    """Least probability with which chance exceeds one of the deviations in either direction."""
    return float(np.nanmin(2 * stdtr(freedom, -np.abs(deviations))))
