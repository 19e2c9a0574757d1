"""Comparison of results of one problem pair by pair, in the units in which each pair can be judged."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr

from meanfield.arguments import as_text, wrong
from meanfield.comparison.judgement import NO_SPREAD, Judgement
from meanfield.comparison.origins import common_origins, different_origins
from meanfield.comparison.sides import moments
from meanfield.comparison.verdict import judge
from meanfield.comparison.wording import overall, reason
from meanfield.errors import InputError
from meanfield.problems.family import Family, resolve
from meanfield.results.checks import check
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset, check_dataset, family_of_result, kind_of, problem_of
from meanfield.typing import FloatArray


def compare(*datasets: xr.Dataset, labels: Sequence[str] | None = None) -> xr.Dataset:
    """Compare two or more results of the same problem, pair by pair.

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
        `reason` say why, and variables that end in `_chance` what is the largest difference that chance allows: of
        comparisons of true pairs 95 in 100 have none that is larger. `reason` also says where two results come from
        different versions of a function or file of one name.

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
    _check(datasets, names)
    pairs = list(combinations(range(len(datasets)), 2))
    family = family_of_result(datasets[0])
    arrays: dict[str, Any] = {"pair": np.array([f"{names[i]} - {names[j]}" for i, j in pairs])}
    problem = problem_of(datasets[0])
    for name in family.compared_with({dim for dataset in datasets for dim in dataset.dims}):
        arrays |= _differences(name, datasets, pairs)
    for dataset in datasets[::-1]:
        arrays |= {name: dataset[name].values for name in _coordinates(family) if name in dataset}
    if family.measure_distances:
        arrays |= resolve(family.measure_distances)(datasets, pairs)
    measured = build_dataset("comparison", problem, arrays, "complete", "{}")
    judgements = [
        judge(datasets[i], datasets[j], measured.isel(pair=row), datasets) for row, (i, j) in enumerate(pairs)
    ]
    arrays |= _judged(judgements, measured)
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


def is_comparable(dataset: xr.Dataset) -> bool:
    """Whether a result is in time and holds variables that `compare` compares."""
    held = set(map(str, dataset.variables))
    compared = {word for name in family_of_result(dataset).compared for word in (name, f"{name}_mean")}
    return kind_of(dataset).leading == "time" and bool(held & compared)


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


def _check(datasets: Sequence[xr.Dataset], names: list[str]) -> None:
    if len(datasets) < 2:
        raise InputError(f"{len(datasets)} result(s) given, but a comparison needs two or more; add another")
    if len(names) != len(datasets):
        raise InputError(f"{len(names)} labels for {len(datasets)} results; give one label each")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(f"labels: '{twice}' comes twice; give every result a label of its own")
    first, family = problem_of(datasets[0]).limit(), family_of_result(datasets[0])
    for name, dataset in zip(names, datasets, strict=True):
        if dataset.attrs["method"] == "comparison":
            raise InputError(f"{name}: is itself a comparison; give results of the solvers")
        if not is_comparable(dataset):
            raise InputError(f"{name}: is a result of kind '{dataset.attrs['method']}', and only those in time compare")
        _check_whole(name, dataset)
        if dataset.attrs["status"].startswith("failed"):
            raise InputError(f"{name}: its run {dataset.attrs['status']}; compare only runs that did not fail")
        other = family_of_result(dataset)
        if other is not family:
            raise InputError(f"{names[0]} and {name} are of the families '{family.name}' and '{other.name}'")
        differing = differing_keys(first, problem_of(dataset).limit())
        if differing:
            raise InputError(
                f"{names[0]} and {name} solve different problems: {'; '.join(differing)}; "
                "run both solvers on the same problem file"
            )
        _check_contents(name, dataset, datasets[0])


def _check_whole(name: str, dataset: xr.Dataset) -> None:
    """Refuse a result from which single times or components were selected."""
    kind, family = kind_of(dataset), family_of_result(dataset)
    for held, variable in family.compared.items():
        for word in (held, f"{held}_mean"):
            dims = kind.dims(variable, held=dataset.dims)
            gone = [dim for dim in dims if word in dataset and dim not in dataset[word].dims]
            if gone:
                raise InputError(
                    f"{name}: '{word}' has no dim '{gone[0]}'; compare whole results, and select from the report"
                )


def _check_contents(name: str, dataset: xr.Dataset, first: xr.Dataset) -> None:
    """Refuse a result whose replicas or times are gone, or whose numbers no run gives."""
    if dataset.attrs["method"] == "particles" and not dataset.sizes.get("replica"):
        raise InputError(f"{name}: its replicas are gone, whose scatter is compared with; give the whole result")
    try:
        check(dataset)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    times, wanted = dataset.sizes["time"], first.sizes["time"]
    if times != wanted:
        remedy = "compare whole results, and select from the report"
        raise InputError(f"{name}: has {times} output times, not {wanted}; {remedy}")


def differing_keys(first: Any, second: Any, path: str = "") -> list[str]:
    """Dotted keys, with both values, in which two nested structures differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = [*first, *(key for key in second if key not in first)]
        parts = [(f"{path}.{key}" if path else str(key), first.get(key), second.get(key)) for key in keys]
    elif isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        parts = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(first, second, strict=True))]
    elif isinstance(first, tuple) and isinstance(second, tuple):
        return [f"{path}: {len(first)} against {len(second)}"]
    else:
        return [] if first == second else [f"{path} = {first!r} against {second!r}"]
    return [text for key, a, b in parts for text in differing_keys(a, b, key)]


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
            error[row] = np.where(spread > NO_SPREAD, spread, np.nan)
    return {f"{name}_difference": difference, f"{name}_standard_error": error}


def _shape(name: str, datasets: Sequence[xr.Dataset]) -> tuple[int, ...]:
    """Shape of a variable that none of the results holds."""
    sizes = {dim: size for dataset in datasets for dim, size in dataset.sizes.items()}
    known = family_of_result(datasets[0]).compared[name]
    dims = (*known.dims, *(dim for dim in known.last_dims if dim in sizes))
    return tuple(sizes[dim] for dim in dims)
