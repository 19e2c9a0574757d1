"""Comparison of results of one problem pair by pair, in the units in which each pair can be judged."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from meanfield.arguments import as_text, wrong
from meanfield.comparison.inputs import check_inputs
from meanfield.comparison.judgement import Judgement
from meanfield.comparison.left_out import left_out
from meanfield.comparison.origins import common_origins, different_origins
from meanfield.comparison.places import at_common_places
from meanfield.comparison.sides import least_spread, moments
from meanfield.comparison.verdict import judge
from meanfield.comparison.wording import overall, reason
from meanfield.problems.family import Family, resolve
from meanfield.process.progress import counted
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset, check_dataset, family_of_result, problem_of
from meanfield.typing import FloatArray


def compare(*datasets: xr.Dataset, labels: Sequence[str] | None = None) -> xr.Dataset:
    """Compare two or more results of the same problem, pair by pair, at the output times that all of them have.

    Parameters
    ----------
    *datasets : xarray.Dataset
        Results of any methods.
    labels : sequence of str, optional
        Their names in the report; by default their methods.

    Returns
    -------
    xarray.Dataset
        Variables with the dim `pair`; what a pair cannot be compared in is NaN. Differences are second minus first.
        Overlaps q and prior work r come with the standard error of the replicas' mean where there are replicas.
        Weights of SGD against a density: W1 and KS distance, marginally and conditionally on groups of u, each
        beside its mean over independent samples of that size. Density against density: L1 distance. `verdict` is
        AGREES, DIFFERS or CANNOT TELL for each pair, and for all of them together as an attribute; `p_value` and
        `reason` say why, `left_out` what is not compared, and variables that end in `_chance` what is the largest
        difference that chance allows: of comparisons of true pairs 95 in 100 have none that is larger. `reason` also
        says where two results come from different versions of a function or file of one name.

    Raises
    ------
    InputError
        If there are fewer than two results, one of them failed, is not whole or holds numbers that no run gives, or
        their problems differ in what decides the limit.
    """
    started = time.perf_counter()
    for dataset in datasets:
        check_dataset(dataset)
    names = _default_labels(datasets) if labels is None else _listed(labels)
    check_inputs(datasets, names)
    results = at_common_places(datasets, names)
    pairs = list(combinations(range(len(results)), 2))
    family = family_of_result(results[0])
    arrays: dict[str, Any] = {"pair": np.array([f"{names[i]} - {names[j]}" for i, j in pairs])}
    problem = problem_of(results[0])
    for name in family.compared_with({dim for result in results for dim in result.dims}):
        arrays |= _differences(name, results, pairs)
    for result in results[::-1]:
        arrays |= {name: result[name].values for name in _coordinates(family) if name in result}
    if family.measure_distances:
        arrays |= resolve(family.measure_distances)(results, pairs)
    measured = build_dataset("comparison", problem, arrays, "complete", "{}")
    judgements, without = [], []
    for row, (i, j) in enumerate(counted(pairs, "verdicts", "pair")):
        two, pair = (results[i], results[j]), measured.isel(pair=row)
        judgements.append(judge(*two, pair, results))
        without.append(left_out((names[i], names[j]), (datasets[i], datasets[j]), two, pair, judgements[-1]))
    arrays |= _judged(judgements, measured) | {"left_out": np.array(without)}
    origins = [different_origins(datasets[i], datasets[j], (names[i], names[j])) for i, j in pairs]
    arrays["reason"] = np.array([origin + text for origin, text in zip(origins, arrays["reason"], strict=True)])
    report = build_dataset("comparison", problem, arrays, "complete", provenance(time.perf_counter() - started))
    verdict = overall([judgement.verdict for judgement in judgements])
    return report.assign_attrs(common_origins(datasets), verdict=verdict)


def _judged(judgements: Sequence[Judgement], measured: xr.Dataset) -> dict[str, Any]:
    """Variables that hold verdicts, and what chance allows."""
    family = family_of_result(measured)
    arrays: dict[str, Any] = {
        "verdict": np.array([judgement.verdict for judgement in judgements]),
        "p_value": np.array([judgement.p_value for judgement in judgements]),
        "reason": np.array([reason(judgement, measured.isel(pair=i)) for i, judgement in enumerate(judgements)]),
    }
    for name in family.compared_with(measured.sizes):
        arrays[f"{name}_chance"] = np.array([judgement.levels.get(name, np.nan) for judgement in judgements])
    for name in (name for name in family.judged if name in measured):
        allowed = np.full(measured[name].shape, np.nan)
        for row, judgement in enumerate(judgements):
            if name in judgement.distances:
                where, times = judgement.distances[name]
                allowed[row][where] = measured[name].values[row][where] * times
        arrays[f"{name}_chance"] = allowed
    return arrays


def _coordinates(family: Family) -> list[str]:
    """Coordinates along which compared variables have values."""
    dims = {dim for variable in family.compared.values() for dim in variable.dims}
    return [name for name in family.variables if name in dims]


def _listed(labels: Sequence[str]) -> list[str]:
    wanted = "give a list of texts, one for each result, such as ['density', 'sgd']"
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise wrong("labels", labels, wanted)
    return [as_text(label, f"labels[{i}]", wanted) for i, label in enumerate(labels)]


def _default_labels(datasets: Sequence[xr.Dataset]) -> list[str]:
    methods = [str(dataset.attrs.get("method")) for dataset in datasets]
    return [f"{m} {i + 1}" if methods.count(m) > 1 else m for i, m in enumerate(methods)]


def _differences(name: str, datasets: Sequence[xr.Dataset], pairs: list[tuple[int, int]]) -> dict[str, FloatArray]:
    """Differences of a variable and their standard errors, NaN where a result does not hold it."""
    sides = [moments(dataset, name) for dataset in datasets]
    known = next((side.mean for side in sides if side is not None), None)
    shape = _shape(name, datasets) if known is None else known.shape
    difference, error = np.full((2, len(pairs), *shape), np.nan)
    for row, (i, j) in enumerate(pairs):
        first, second = sides[i], sides[j]
        if first is not None and second is not None:
            difference[row] = second.mean - first.mean
            spread = np.sqrt(first.variance + second.variance)
            error[row] = np.where(spread > least_spread(datasets[i], datasets[j], name), spread, np.nan)
    return {f"{name}_difference": difference, f"{name}_standard_error": error}


def _shape(name: str, datasets: Sequence[xr.Dataset]) -> tuple[int, ...]:
    """Shape of a variable that none of the results holds."""
    sizes = {dim: size for dataset in datasets for dim, size in dataset.sizes.items()}
    known = family_of_result(datasets[0]).compared[name]
    dims = (*known.dims, *(dim for dim in known.last_dims if dim in sizes))
    return tuple(sizes[dim] for dim in dims)
