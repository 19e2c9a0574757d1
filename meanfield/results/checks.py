"""Checks that the contents of a result are possible: kinds, sizes, ranges and order of its numbers.

The schema says which variables there are. Here are checks that cost little and that no run of ours fails, so that a
file that somebody edited is refused where it would give nonsense. A family adds checks that tie its variables together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.problems.base import Problem, Time
from meanfield.problems.family import resolve
from meanfield.problems.known_families import family_of
from meanfield.problems.variable import Variable
from meanfield.results.result import Result
from meanfield.results.schema import validate
from meanfield.results.text import plain

PACKING = ("scale_factor", "add_offset", "missing_value", "_FillValue")
"""Attributes by which readers change numbers. Files of the library have gaps that are NaN, and nothing else."""

ROUNDING = 1e-12
"""Largest difference of runs that are copies of each other, relative to the largest value of a quantity."""


def check(result: Result) -> None:
    """Refuse what cannot be the result of a run.

    Raises
    ------
    InputError
        If it does not obey the schema (see `meanfield.results.schema.validate`), or its attributes, sizes or numbers
        contradict each other or what they mean.
    """
    validate(result)
    for fault in faults(result):
        raise InputError(f"{fault}; run the solver again, or take back what was changed in the file")


def faults(result: Result) -> Iterator[str]:
    """What in a result that obeys the schema is impossible, in words."""
    problem = result.problem
    yield from _faults_of_labels(result)
    if result.method == "sweep":
        yield from _faults_of_sweep(result)
        return
    yield from _faults_of_counted_dims(result)
    own, declared, whole = result.variables, result.family.all_variables, result.dataset
    dataset = whole.drop_vars([name for name in whole.variables if name not in own])
    yield from _faults_of_company(dataset, declared)
    yield from _faults_of_encoding(dataset)
    yield from _faults_of_sizes(result.part(dataset))
    for name in own:
        known = declared[name]
        if known.index_of and name in dataset.dims:
            known = replace(known, increasing=True)
        if known.gaps == "never" or (known.gaps == "unfinished" and result.status == "complete"):
            yield from _faults_of_gaps(whole, name)
        yield from _faults_of_values(name, known, dataset.variables[name].values)
    yield from _faults_of_times(dataset, problem, declared)
    if result.kind.check:
        yield from resolve(result.kind.check)(dataset, problem)


def repeated_runs(result: Result, all_may: bool = True) -> Iterator[str]:
    """Runs that are equal to rounding, in words: independent ones are not, unless they rest, or all may be equal."""
    quantities = [result.dataset[x] for x in result.family.compared if x in result.dataset]
    held = [values.transpose("replica", "time", ...) for values in quantities if "replica" in values.dims]
    rows = np.concatenate([x.values.reshape(*x.shape[:2], -1) for x in held], axis=2)
    rows = np.where(np.isfinite(rows), rows, 0.0).astype(float)  # single precision has no number as tiny as the next
    rows /= np.abs(rows).max(axis=(0, 1), initial=np.finfo(float).tiny)
    moved = np.flatnonzero((np.abs(rows - rows[:, :1]) > ROUNDING).any(axis=(1, 2)))
    if all_may and (np.abs(rows - rows[:1]) <= ROUNDING).all():
        return
    flat = rows.reshape(len(rows), rows.shape[1] * rows.shape[2])[moved]  # equal runs have neighbouring sums
    for pair in pairwise(moved[np.argsort(flat @ np.sin(1.0 + np.arange(flat.shape[1])))].tolist()):
        one, other = sorted(pair)
        if (np.abs(rows[one] - rows[other]) <= ROUNDING).all():
            yield (
                f"its runs {one} and {other} are equal at all times, and replicas are independent runs; "
                "give each run once"
            )


def _faults_of_labels(result: Result) -> Iterator[str]:
    """Faults of attributes that repeat numbers of the problem."""
    dataset, labels = result.dataset, result.problem.labels
    if family_of(result.problem) not in result.family.parts:
        yield f"the attribute 'family' is '{dataset.attrs.get('family')}', but the problem is of another"
    for name, value in labels.items():
        if not np.array_equal(dataset.attrs.get(name, value), value):
            yield f"the attribute '{name}' is {dataset.attrs[name]!r:.40}, but the problem says {value:g}"
    if result.method == "sweep":
        return
    for name in result.variables:
        said = labels.get(result.family.all_variables[name].label)
        if said is not None and np.any(dataset[name].values != said):
            yield f"variable '{name}' is {dataset[name].values.flat[0]}, but the problem says {said:g}"


def _faults_of_sweep(result: Result) -> Iterator[str]:
    """Faults of the result of a sweep, which has gaps where points failed."""
    dataset, fixed = result.dataset, result.problem.fixed_dims
    axes = dataset["status"].dims
    for name, known in result.family.all_variables.items():
        dims = (*axes, *known.dims, *known.behind(fixed))
        if name in dataset.data_vars and dataset[name].dims == dims:
            known = replace(known, increasing=False)
            yield from _faults_of_values(name, known, dataset[name].values)


def _faults_of_company(dataset: xr.Dataset, declared: Mapping[str, Variable]) -> Iterator[str]:
    for name in dataset.variables:
        for other in declared[str(name)].needs:
            if other not in dataset:
                yield f"variable '{other}' is missing, without which '{name}' says nothing"


def _faults_of_encoding(dataset: xr.Dataset) -> Iterator[str]:
    for name, variable in dataset.variables.items():
        for key in PACKING:
            if key in variable.encoding and not (key == "_FillValue" and _is_gap(variable.encoding[key])):
                yield f"variable '{name}' has the attribute '{key}', with which its numbers are others than were saved"


def _is_gap(value: object) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def _faults_of_sizes(result: Result) -> Iterator[str]:
    dataset, family, fixed = result.dataset, result.family, result.problem.fixed_dims
    for name, size in fixed.items():
        if dataset.sizes.get(name, size) != size:
            yield f"dim '{name}' has size {dataset.sizes[name]}, but the problem has {size} {name}(s)"
    for name in family.particular_dims & set(map(str, dataset.sizes)) - set(fixed):
        yield f"dim '{name}' is there, but the problem has a single one"
    for name in result.missing(fixed):
        yield f"variable '{name}' is missing, which results of this problem hold"
    for name in result.variables:
        missing = set(family.all_variables[name].behind(fixed)) - set(dataset.sizes)
        if missing:
            yield f"variable '{name}' has no dim '{min(missing)}', of which the problem has several"


def _faults_of_values(name: str, known: Variable, values: np.ndarray) -> Iterator[str]:
    if known.words:
        yield from _faults_of_words(name, known, values)
        return
    if values.dtype.kind not in "fiu":
        yield f"variable '{name}' holds {values.dtype}, not numbers"
        return
    low, high = known.range
    outside = values[(values < low) | (values > high)]  # a gap is not
    if outside.size:
        yield f"variable '{name}' holds {outside[0]:.6g}, outside [{low:g}, {high:g}]"
    if known.increasing and not np.all(np.diff(values) > 0):
        yield f"variable '{name}' does not increase"


def _faults_of_gaps(dataset: xr.Dataset, name: str) -> Iterator[str]:
    """Values that are missing, with the first replica that has such, and the first time at which it does."""
    if dataset[name].dtype.kind not in "fiu" or np.isfinite(dataset[name].values).all():
        return
    gaps = xr.Variable(dataset[name].dims, ~np.isfinite(dataset[name].values))
    value, words = dataset[name].values[gaps.values][0], ""
    if "replica" in gaps.dims:
        which = int(gaps.any([dim for dim in gaps.dims if dim != "replica"]).values.argmax())
        gaps, words = gaps.isel(replica=which), f" in replica {dataset['replica'].values[which]}"
    if "time" in gaps.dims and name != "time":
        first = int(gaps.any([dim for dim in gaps.dims if dim != "time"]).values.argmax())
        words += f" from t = {plain(float(dataset['time'][first]))} on"
    yield f"variable '{name}' holds {value}{words}"


def _faults_of_times(dataset: xr.Dataset, problem: Problem, declared: Mapping[str, Variable]) -> Iterator[str]:
    """Times that are not those of the problem, such as numbers of steps; some of the problem's may be left out."""
    time = getattr(problem, "time", None)
    if not isinstance(time, Time):
        return
    half_a_step = 0.5 / problem.labels.get("dimension", np.inf)
    for name in ("time", "snapshot_time", "density_time"):
        values = dataset[name].values if name in dataset else np.empty(0)
        others = values[time.output_of(values, half_a_step) < 0]
        if others.size:
            yield (
                f"variable '{name}' holds {others[0]:.6g}, which is none of the {time.outputs} output times from 0 to "
                f"{time.stop:g} of the problem; it is the {declared[name].long_name}"
            )


def _faults_of_counted_dims(result: Result) -> Iterator[str]:
    """Entries, such as those of features, in another order than in the problem, and replicas that are repeated."""
    dataset, own = result.dataset, result.variables
    replicas = dataset.indexes.get("replica")
    if replicas is not None and not replicas.is_unique:
        yield f"replica {replicas[replicas.duplicated()][0]} comes twice, and replicas are independent runs"
    for dim, size in result.problem.fixed_dims.items():
        if dim in dataset.coords and dim not in own and dataset[dim].dtype.kind in "fiu":
            number = dataset[dim].values
            if len(number) == size and not np.array_equal(number, np.arange(size)):
                yield f"the coordinate '{dim}' is {', '.join(f'{i:g}' for i in number[:4])}, but counts from 0"


def _faults_of_words(name: str, known: Variable, values: np.ndarray) -> Iterator[str]:
    words = values.ravel().tolist()
    if not all(isinstance(word, str) for word in words):
        yield f"variable '{name}' holds {values.dtype}, not words"
    elif known.choices and set(words) - set(known.choices):
        other = (set(words) - set(known.choices)).pop()
        yield f"variable '{name}' holds '{other}', which is none of {', '.join(known.choices)}"
