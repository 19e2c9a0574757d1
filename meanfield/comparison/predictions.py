"""Judgement of two predictions: they agree within the errors that they state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.comparison.judgement import ROUNDING, Judgement, Place
from meanfield.comparison.sides import largest_value, rounding, stated_error
from meanfield.problems.family import Family
from meanfield.typing import FloatArray, IntArray


def judge_predictions(first: xr.Dataset, second: xr.Dataset, comparison: xr.Dataset, family: Family) -> Judgement:
    """Judge two predictions by all compared variables that both hold, and on equal grids by distances with a bound.

    Parameters
    ----------
    first, second : xarray.Dataset
    comparison : xarray.Dataset
        The pair of them in what `compare` returns, without a verdict.
    family : Family
    """
    worst, stated, coarse = None, True, False
    places: dict[str, tuple[IntArray, ...]] = {}
    for name, difference, errors, scale in _differences(first, second, comparison, family):
        finite = np.isfinite(difference)
        if not finite.any():
            continue
        places[name] = np.nonzero(finite)
        stated_errors = sum((error for error in errors if error is not None), np.zeros(difference.shape))
        allowed = np.where(finite, ROUNDING * scale + stated_errors, np.inf)
        excess = np.where(finite, difference, 0.0) / np.maximum(allowed, np.finfo(float).tiny)
        at = np.unravel_index(np.argmax(excess), excess.shape)
        place = Place(name, tuple(map(int, at)), float(difference[at]), float(allowed[at]))
        if worst is None or place.deviation * worst.allowed > worst.deviation * place.allowed:
            worst, stated = place, all(error is not None for error in errors)
        coarse |= bool(0 < scale < allowed[finite].max())
    if worst is None:
        return Judgement("nothing")
    if worst.deviation > worst.allowed:
        return Judgement("beyond" if stated else "unstated", worst=worst, places=places)
    return Judgement("coarse" if coarse else "errors", worst=worst, places=places)


def _differences(
    first: xr.Dataset, second: xr.Dataset, comparison: xr.Dataset, family: Family
) -> Iterator[tuple[str, FloatArray, list[FloatArray | None], float]]:
    """Names, differences, errors of both sides, and largest values."""
    for name in family.compared:
        if name in first and name in second:
            errors = [stated_error(dataset, name) for dataset in (first, second)]
            yield name, np.abs(comparison[f"{name}_difference"].values), errors, largest_value(first, second, name)
    for name in family.distances:
        bound = family.variables[name].bounded_by
        if bound and bound in first and bound in second and _on_one_grid(first, second):
            errors = [result[bound].values + rounding(result[bound]) for result in (first, second)]
            yield name, comparison[name].values, errors, 1.0


def _on_one_grid(first: xr.Dataset, second: xr.Dataset) -> bool:
    """Whether what does not depend on time, such as cells and nodes, is the same: else distances measure the grids."""
    fixed = [name for name, variable in first.variables.items() if "time" not in variable.dims or name == "time"]
    return all(name in second and first[name].equals(second[name]) for name in fixed)
