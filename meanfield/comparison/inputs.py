"""Checks of what is given to `compare`: whole results of one problem, independent runs, common places and starts.

A run of SGD, or the exact flow of a network, starts with weights that are drawn once; a density starts with their law.
The scatter of runs that each draw their own start has that of the start in it, so that these are held against the law.
Where all runs share one draw it hides in no scatter: they are held against what starts with the same draw.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.problems.family import resolve
from meanfield.problems.output_times import same_times
from meanfield.problems.problem_keys import with_value
from meanfield.results.checks import check, repeated_runs
from meanfield.results.made_by import FINGERPRINTS, differences, to_json
from meanfield.results.result import Result, family_of_result
from meanfield.results.schema import TEXTS
from meanfield.typing import FloatArray

ATTRIBUTES = ("method", "schema_version", *TEXTS)
"""Attributes that every result has."""

MOST_CHARACTERS = 80
"""Largest number of characters of a value in a message: a schedule may have hundreds of numbers."""


def is_comparable(result: Result) -> bool:
    """Whether a result is in time, holds variables that `compare` compares, and has a meaning in common with others."""
    if result.kind.stands_alone:
        return False
    held = set(map(str, result.dataset.variables))
    compared = {word for name in result.family.compared for word in (name, f"{name}_mean")}
    return bool(result.kind.at_end) or (result.kind.leading == "time" and bool(held & compared))


def checked(datasets: Sequence[xr.Dataset], names: Sequence[str]) -> list[Result]:
    """Results that Datasets are, refused where they cannot be compared; see `compare`.

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
    results = [in_time(Result.of(dataset)) for dataset in datasets]
    first = results[0]
    limit = first.problem.limit()
    for name, result in zip(names, results, strict=True):
        if result.method == "comparison":
            raise InputError(f"{name}: is itself a comparison; give results of the solvers")
        if not is_comparable(result):
            why = result.kind.stands_alone or "only those in time compare"
            raise InputError(f"{name}: is a result of kind '{result.method}', and {why}")
        _check_whole(name, result)
        if result.status.startswith("failed"):
            raise InputError(f"{name}: its run {result.status}; compare only runs that did not fail")
        if result.family is not first.family:
            raise InputError(
                f"{names[0]} and {name} are of the families '{first.family.name}' and '{result.family.name}'"
            )
        differing = differing_keys(limit, result.problem.limit())
        if differing:
            raise InputError(
                f"{names[0]} and {name} solve different problems: {'; '.join(differing)}; "
                "run both solvers on the same problem file"
            )
        _check_contents(name, result)
    return results


def in_time(result: Result) -> Result:
    """Result in time that stands for one of another kind, if there is one."""
    return Result.of(resolve(result.kind.at_end)(result)) if result.kind.at_end else result


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


def _check_whole(name: str, result: Result) -> None:
    """Refuse a result from which single times or components were selected."""
    dataset = result.dataset
    for held, variable in result.family.compared.items():
        for word in (held, f"{held}_mean"):
            dims = result.kind.dims(variable, held=dataset.sizes)
            gone = [dim for dim in dims if word in dataset and dim not in dataset[word].dims]
            if gone:
                raise InputError(
                    f"{name}: '{word}' has no dim '{gone[0]}'; compare whole results, and select from the report"
                )


def _check_contents(name: str, result: Result) -> None:
    """Refuse a result whose replicas are gone or repeated, or whose numbers no run gives."""
    if result.method == "particles" and not result.dataset.sizes.get("replica"):
        raise InputError(f"{name}: its replicas are gone, whose scatter is compared with; give the whole result")
    try:
        check(result)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    for held in (word for known in result.family.compared for word in (known, f"{known}_mean")):
        if held not in result.dataset:
            continue
        largest = float(np.nan_to_num(np.abs(result.dataset[held].values), posinf=0.0).max(initial=0.0))
        if largest > 1e75:  # its fourth power, in products of variances, is close to the largest number
            raise InputError(
                f"{name}: its '{held}' reaches {largest:.1g}, and 1e75 is the most that can be compared; compare it up "
                "to a time.stop before it escapes"
            )
    for fault in repeated_runs(result) if result.has_runs else ():
        raise InputError(f"{name}: {fault}")


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
        return [] if first == second else [f"{path} = {_shortened(first)} against {_shortened(second)}"]
    return [text for key, a, b in parts for text in differing_keys(a, b, key)]


def _shortened(value: Any) -> str:
    """Value in a message, without the end of a long one."""
    return textwrap.shorten(repr(value), MOST_CHARACTERS, placeholder=" ...")


def different_origins(first: Result, second: Result, names: tuple[str, str]) -> str:
    """Sentences that say which functions and files two results do not have in common, or not for certain."""
    found = differences(first.made_by, second.made_by, names)
    text = ""
    certain = [change.words for change in found if change.certain]
    unsure = [change.words for change in found if not change.certain]
    if certain:
        text = f"They come from different versions of {'; '.join(certain)}: solve both again with what there is now. "
    if unsure:
        text += f"It is not known whether they come from one version of {'; '.join(unsure)}. "
    return text


def common_origins(results: Sequence[Result]) -> dict[str, str]:
    """Attribute of a comparison with the fingerprints that all results have in common; none where they differ."""
    texts = {to_json(result.made_by) for result in results}
    return {FINGERPRINTS: texts.pop()} if len(texts) == 1 else {}


def at_common_places(results: Sequence[Result], names: Sequence[str]) -> list[Result]:
    """Results at the output times, and other places of compared variables, that all have.

    Parameters
    ----------
    results : sequence of Result
        Results in time, each of which has output times of its problem.
    names : sequence of str
        Their names in messages.

    Raises
    ------
    InputError
        If they have no time after the start in common.
    """
    own = [own_times(result) for result in results]
    times = own[0]
    for known in own[1:]:
        times = times[same_times(known, times) >= 0]
    if not times.any():
        spans = " and ".join(f"those of {name}: {_span(r.dataset)}" for name, r in zip(names, results, strict=True))
        raise InputError(
            f"{', '.join(names)} have no output time after the start in common ({spans}); "
            "give their problems the same time.stop and time.outputs"
        )
    positions = [same_times(known, times) for known in own]
    found = [
        _at_times(result.part(result.dataset.isel(time=at)), times)
        for result, at in zip(results, positions, strict=True)
    ]
    family = results[0].family
    dims = {dim for variable in family.compared.values() for dim in variable.dims} & set(family.variables) - {"time"}
    others = {dim for dataset in found for dim in dataset.dims} - dims
    aligned: Sequence[xr.Dataset] = xr.align(*found, join="inner", exclude=others)
    return [result.part(dataset) for result, dataset in zip(results, aligned, strict=True)]


def own_times(result: Result, name: str = "time") -> FloatArray:
    """Output times or snapshots of a result as its problem has them, without the rounding of a file or of steps."""
    dataset, problem = result.dataset, result.problem
    time = getattr(problem, "time", None)
    if time is None:
        return np.asarray(dataset[name].values, dtype=float)
    half_a_step = 0.5 / problem.labels.get("dimension", np.inf)
    outputs: FloatArray = time.outputs_at[time.output_of(dataset[name].values, half_a_step)]
    return outputs


def _at_times(result: Result, times: FloatArray) -> xr.Dataset:
    """Result whose times are named by their exact values, and of its snapshots those that are at one of them."""
    dataset = result.dataset
    found = dataset.assign_coords(time=("time", times, dataset["time"].attrs))
    if "snapshot_time" not in dataset.dims:
        return found
    position = same_times(times, own_times(result, "snapshot_time"))
    found = found.isel(snapshot_time=np.flatnonzero(position >= 0))
    at = times[position[position >= 0]]
    return found.assign_coords(snapshot_time=("snapshot_time", at, found["snapshot_time"].attrs))


def _span(dataset: xr.Dataset) -> str:
    times = dataset["time"].values
    return f"{len(times)} from {times[0]:g} to {times[-1]:g}"


def different_starts(first: Result, second: Result) -> str:
    """Why two results start differently, and what to change, in a sentence or two; empty if they do not."""
    for result in (first, second):
        if _starts_alike(result):
            return (
                "All runs start with one draw of the weights, whose distance from their law is in no scatter: draw the "
                "start of each run anew."
            )
    if not first.family.start:
        return ""
    start_of = resolve(first.family.start)
    starts = [start_of(result) for result in (first, second)]
    if all(start is None for start in starts) or any(start is not None and not len(start) for start in starts):
        return ""
    if all(start is not None for start in starts):
        return "" if np.array_equal(*starts) else f"They start with other weights: {_same_start(first)}."
    shares, draws = (first, second) if starts[1] is None else (second, first)
    if shares.is_prediction and draws.is_prediction:
        return (
            "One starts with weights that are drawn once, the other with their law: hold each against runs of SGD, the "
            "first with particles.common_start = true, the second with false."
        )
    if shares.is_prediction:
        common = Result.of(draws.dataset, with_value(draws.problem, "particles.common_start", True))
        also = "" if np.array_equal(start_of(common), start_of(shares)) else f", and {_same_start(first)}"
        return (
            "The prediction starts with one draw of the weights, and each run with its own: set particles.common_start "
            f"= true{also}."
        )
    return (
        "All runs start with one draw of the weights, whose distance from their law is in no scatter: set "
        "particles.common_start = false."
    )


def _starts_alike(result: Result) -> bool:
    """Whether all runs start with the same weights, although the problem gives none."""
    kept = result.dataset.get("weights")  # families without them are asked for their own starts
    if getattr(result.problem, "initial", None) is not None or kept is None or not kept.sizes.get("snapshot_time"):
        return False
    weights = kept.transpose("replica", "snapshot_time", ...).values
    is_start = result.dataset["snapshot_time"].values[0] == 0.0
    return bool(is_start and len(weights) > 1 and (weights[:, 0] == weights[0, 0]).all())


def _same_start(result: Result) -> str:
    problem = result.problem
    if getattr(problem, "initial", None) is not None:
        return "give both the same initial"
    return f"give both the same {problem.start_key or problem.seed_key or 'start'}"
