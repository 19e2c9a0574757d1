"""Checks of what is given to `compare`: whole results of one problem, with runs that are independent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield.comparison.sides import has_runs
from meanfield.errors import InputError
from meanfield.results.checks import check
from meanfield.results.schema import TEXTS, family_of_result, kind_of, problem_of

ATTRIBUTES = ("method", "schema_version", *TEXTS)
"""Attributes that every result has."""


def is_comparable(dataset: xr.Dataset) -> bool:
    """Whether a result is in time and holds variables that `compare` compares."""
    held = set(map(str, dataset.variables))
    compared = {word for name in family_of_result(dataset).compared for word in (name, f"{name}_mean")}
    return kind_of(dataset).leading == "time" and bool(held & compared)


def check_inputs(datasets: Sequence[xr.Dataset], names: Sequence[str]) -> None:
    """Refuse what cannot be compared; see `compare`.

    Raises
    ------
    InputError
    """
    if len(datasets) < 2:
        raise InputError(f"{len(datasets)} result(s) given, but a comparison needs two or more; add another")
    if len(names) != len(datasets):
        raise InputError(f"{len(names)} labels for {len(datasets)} results; give one label each")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(f"labels: '{twice}' comes twice; give every result a label of its own")
    for name, dataset in zip(names, datasets, strict=True):
        _check_attributes(name, dataset)
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
        _check_contents(name, dataset)


def _check_attributes(name: str, dataset: xr.Dataset) -> None:
    """Refuse a Dataset that is no result, and say what a result has."""
    missing = [attribute for attribute in ATTRIBUTES if attribute not in dataset.attrs]
    if missing:
        kinds = family_of_result(dataset).all_kinds
        runs = f" ('particles': {', '.join(kinds['particles'].variables)})" if "particles" in kinds else ""
        raise InputError(
            f"{name}: is no result of meanfield, because the attribute '{missing[0]}' is missing; a result has "
            f"{', '.join(ATTRIBUTES)} and the variables of its kind{runs}; give what a solver or meanfield.load returns"
        )


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


def _check_contents(name: str, dataset: xr.Dataset) -> None:
    """Refuse a result whose replicas are gone or repeated, or whose numbers no run gives."""
    if dataset.attrs["method"] == "particles" and not dataset.sizes.get("replica"):
        raise InputError(f"{name}: its replicas are gone, whose scatter is compared with; give the whole result")
    try:
        check(dataset)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    if has_runs(dataset):
        _check_independence(name, dataset)


def _check_independence(name: str, dataset: xr.Dataset) -> None:
    """Refuse runs of which some are equal at all times: independent ones are not, unless they rest or all are equal."""
    held = [dataset[x].transpose("replica", "time", ...) for x in family_of_result(dataset).compared if x in dataset]
    rows = np.concatenate([x.values.reshape(*x.shape[:2], -1) for x in held if "replica" in x.dims], axis=2)
    moved = (np.isfinite(rows) & (rows != rows[:, :1])).any(axis=(1, 2))
    first: dict[bytes, int] = {}
    for number in np.flatnonzero(moved):
        first.setdefault(rows[number].tobytes(), int(number))
        same = first[rows[number].tobytes()]
        if same != number and len(np.unique(rows, axis=0)) > 1:
            raise InputError(
                f"{name}: its runs {same} and {number} are equal at all times, and replicas are independent runs; "
                "give each run once"
            )


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
