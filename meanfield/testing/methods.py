"""Checks that the example of a family goes through everything that can be done to a problem and to its results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield.methods
from meanfield.comparison import compare, format_comparison
from meanfield.comparison.inputs import is_comparable
from meanfield.comparison.wording import NOTHING_IN_COMMON
from meanfield.ensembles.arrays import State
from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.errors import InputError
from meanfield.explanation import explain
from meanfield.methods import VERBS
from meanfield.plotting import plot_comparison, plot_result
from meanfield.problems.base import Problem
from meanfield.problems.family import Family
from meanfield.problems.file import format_problem, load_problem, parse_problem, plain_data, problem_from
from meanfield.problems.known_families import family_of
from meanfield.problems.problem_keys import with_value
from meanfield.process.progress import interrupted_after
from meanfield.report.content import content_of
from meanfield.report.motion import motion_of
from meanfield.results.checks import check
from meanfield.results.figure_files import save_figure
from meanfield.results.files import load, save
from meanfield.results.result import Result, tables
from meanfield.sweep.definition import Sweep
from meanfield.sweep.merge import merged
from meanfield.sweep.points import points_of
from meanfield.sweep.reductions import EVERYTHING
from meanfield.sweep.solve import Work, solve_points


class Example:
    """Example problem of a family, solved by each method once.

    Parameters
    ----------
    family : Family
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self._results: dict[str, xr.Dataset] = {}

    @cached_property
    def problem(self) -> Problem:
        """Problem in the example file."""
        return load_problem(self.family.example_path)

    @property
    def data(self) -> dict[str, Any]:
        """Problem as plain data of TOML."""
        return self.problem.model_dump(exclude_none=True, mode="json")

    def result(self, method: str) -> xr.Dataset:
        """Result of a method, solved once."""
        if method not in self._results:
            self._results[method] = self.solve(method)
        return self._results[method]

    def solve(self, method: str, **options: Any) -> xr.Dataset:
        """Result of a method, solved anew."""
        return meanfield.methods.solve(self.problem, method, **options)

    def changed(self, key: str, value: Any) -> Problem:
        """Problem with another value of a key."""
        return with_value(self.problem, key, value)


MOST_REPEATED = 10
"""Largest number of rows of a table of a whole result for each value of its largest variable."""


def check_problem_file(example: Example, folder: Path) -> None:
    """Check that the problem is of the family, survives TOML, hides nothing that decides it, and knows its keys."""
    problem = example.problem
    assert family_of(problem) is example.family, f"{example.family.example_path} names another family"
    text = format_problem(problem)
    again = parse_problem(text)
    assert again == problem, "parse_problem(format_problem(problem)) is another problem"
    assert format_problem(again) == text, "the text of a problem changes when it is read and written again"
    json.dumps(problem.limit(), default=str)
    for name, value in problem.labels.items():
        assert math.isfinite(value), f"the label '{name}' is {value}"
    for name in problem.settings:
        assert name in type(problem).model_fields, f"settings names '{name}', which is no table of the problem"
    assert "nonsense_" in refusal(problem_from, plain_data(problem) | {"nonsense_": 1}), (
        "an unknown key is not refused by its name"
    )


def refusal(function: Callable[[Any], Any], given: Any) -> str:
    """Message with which a function refuses what it is given; empty if it does not."""
    try:
        function(given)
    except InputError as error:
        return str(error)
    return ""


def check_explanation(example: Example, folder: Path) -> None:
    """Check that the problem is explained in words, and that every method is named."""
    text = str(explain(example.problem))
    for method in example.family.methods.values():
        assert method.title in text, f"the explanation does not name '{method.title}'"


def check_result(example: Example, method: str, folder: Path) -> None:
    """Check that a method completes the example and returns a result that is declared and valid."""
    result = example.result(method)
    declared = example.family.methods[method].kinds
    assert result.attrs["method"] in declared, f"'{method}' returns '{result.attrs['method']}', not one of {declared}"
    assert result.attrs["status"] == "complete", f"'{method}' ends with status '{result.attrs['status']}'"
    check(Result.of(result))
    assert Result.of(result).problem == example.problem, "the attribute 'problem' is another problem"
    for name, variable in result.variables.items():
        assert variable.attrs.get("long_name"), f"variable '{name}' has no long_name"


def check_repetition(example: Example, method: str, folder: Path) -> None:
    """Check that solving again, by the verb that there is for the method, gives the same bits."""
    again = VERBS[method](example.problem) if method in VERBS else example.solve(method)
    _same(example.result(method), again, "solving again")


def check_verbs(example: Example, folder: Path) -> None:
    """Check that the verb of a method that the family does not have refuses the problem, and says what it has."""
    for method in VERBS.keys() - example.family.methods.keys():
        said = refusal(VERBS[method], example.problem)
        wanted = example.family.lacking.get(method, ", ".join(sorted(example.family.methods)))
        assert wanted in said, f"'{VERBS[method].__name__}' does not say which methods there are: {said}"


def check_file(example: Example, method: str, folder: Path) -> None:
    """Check that a result is the same after saving and loading, and that plain xarray opens it."""
    result, path = example.result(method), folder / "result.nc"
    save(result, path)
    assert load(path).identical(result), "a result is another one after saving and loading"
    with xr.open_dataset(path) as plain:
        assert dict(plain.sizes) == dict(result.sizes), "plain xarray sees other dims"


def check_conventions(example: Example, method: str, folder: Path) -> None:
    """Check that other programs can read a file: coordinates that increase, edges of cells, and no unit that is 1."""
    path = folder / "result.nc"
    save(example.result(method), path)
    with xr.open_dataset(path) as plain:
        for name, variable in plain.variables.items():
            assert variable.dtype.kind in "biufUT", f"variable '{name}' holds {variable.dtype}, not numbers or words"
            assert "units" not in variable.attrs, f"variable '{name}' has units; say them in long_name"
            bounds = variable.attrs.get("bounds")
            if bounds is not None:
                assert plain[bounds].dims == (*variable.dims, "bounds"), f"'{bounds}' is not two edges of each '{name}'"
        for dim in plain.sizes:
            assert dim in plain.indexes, f"the dim '{dim}' has no coordinate"
            assert plain[dim].attrs.get("long_name"), f"the coordinate '{dim}' has no long_name"
        for name, index in plain.indexes.items():
            increasing = index.is_monotonic_increasing and index.is_unique
            assert increasing or index.dtype.kind not in "iuf", f"the coordinate '{name}' does not increase"
        for name in plain.coords:
            assert "_FillValue" not in plain[name].encoding, f"the coordinate '{name}' has a value for gaps"


def check_tables(example: Example, method: str, folder: Path) -> None:
    """Check that a result becomes a table without rows that repeat it, as it does if it has dims that are too many."""
    result = example.result(method)
    rows, largest = math.prod(result.sizes.values()), max(v.size for v in result.variables.values())
    if rows > 100_000:  # so many rows do no harm, however often they repeat a result
        assert rows <= MOST_REPEATED * largest, (
            f"to_dataframe() has {rows} rows, and no variable more than {largest} values: {dict(result.sizes)}; let "
            "variables share dims, such as cells and their edges"
        )
    assert len(result.to_dataframe()) == rows
    for dims, table in tables(result).items():
        assert all(result[name].size == len(table) for name in table if name in result.data_vars), f"table '{dims}'"


def check_figure(example: Example, method: str, folder: Path) -> None:
    """Check that a result is drawn, with a label on every axis."""
    figure = plot_result(example.result(method))
    assert isinstance(figure, Figure), f"the figure is {type(figure).__name__}"
    save_figure(figure, folder / "figure.png")
    for axes in figure.axes:
        labelled = axes.get_xlabel() or axes.get_ylabel() or axes.get_title()
        assert labelled, "a panel of the figure has no labels"


def check_comparison(example: Example, folder: Path) -> None:
    """Check that any two results that can be compared have a quantity in common, a verdict and figures."""
    results = [example.result(method) for method in example.family.methods]
    fitting = [dataset for dataset in results if is_comparable(Result.of(dataset))]
    drawn: set[frozenset[str]] = set()
    for first, second in combinations([*fitting, *fitting[:1]], 2):
        found = compare(first, second)
        check(Result.of(found))
        reason = str(found["reason"].values[0])
        assert reason, "the verdict of the comparison has no reason"
        assert NOTHING_IN_COMMON not in reason, (
            f"nothing of '{first.attrs['method']}' and '{second.attrs['method']}' can be judged: declare a compared "
            "variable that both hold, a distance, or Kind.stands_alone"
        )
        save(found, folder / "comparison.nc")
        assert format_comparison(load(folder / "comparison.nc")), "the comparison has no words"
        held = frozenset(map(str, found.variables))
        if held in drawn:
            continue  # figures of the same variables are alike, and take most of the time
        drawn.add(held)
        for figure in (plot_comparison({"first": first, "second": second}, found), plot_result(found)):
            assert figure.axes, "a figure of the comparison is empty"


def check_report(example: Example, folder: Path) -> None:
    """Check that every result has key numbers and a table of its variables on a report, and that its charts move."""
    for method in example.family.methods:
        content = content_of(Result.of(example.result(method)))
        assert content.method, f"the kind of result of '{method}' has no title"
        assert content.numbers or content.tables, f"a report of '{method}' shows no number; declare Kind.numbers"
        assert len(content.variables.rows) == len(example.result(method).variables)
    motion = motion_of({method: Result.of(example.result(method)) for method in example.family.methods})
    for panel in motion["panels"] if motion else []:
        drawn = all(any(part["frames"]) for part in panel.get("parts", []))
        assert drawn, f"the chart '{panel['title']}' has no value at any output time; give its values times of these"


def check_sweep(example: Example, method: str, folder: Path) -> None:
    """Check that a sweep over times keeps everything of a result, whatever process solves it."""
    stop = _number(example.problem, "time.stop")
    if stop is None:
        return
    values = [stop, 0.5 * stop]
    axis = {"key": "time.stop", "values": values}
    sweep = Sweep.model_validate({"problem": example.problem, "axes": [axis], "methods": {method: [EVERYTHING]}})
    points = points_of(sweep)
    work = Work(sweep.methods, ("status", "stop"))
    tasks = [(point.name, plain_data(point.problem)) for point in points if point.problem is not None]
    outcomes = {outcome.name: outcome for outcome in solve_points(work, tasks)}
    failed = [outcome.status for outcome in outcomes.values() if outcome.status != "complete"]
    if failed and "snapshots" in failed[0]:
        return  # times of snapshots are those of one stop
    assert not failed, f"a point of a sweep over time.stop {failed[0]}"
    dataset = merged(sweep, points, outcomes, "complete", "{}")
    check(Result.of(dataset))
    save(dataset, folder / "sweep.nc")
    load(folder / "sweep.nc")


def _number(problem: Any, key: str) -> float | None:
    table, _, name = key.partition(".")
    return getattr(getattr(problem, table, None), name, None)


def check_interruption(example: Example, method: str, folder: Path) -> None:
    """Check that Ctrl-C ends a method with what was computed, or with nothing, and never with a wrong number."""
    with interrupted_after(1):
        try:
            result = example.solve(method)
        except KeyboardInterrupt:
            return
    if result.attrs["status"] == "complete":
        return  # it was done before
    assert result.attrs["status"] == "interrupted", f"Ctrl-C ends '{method}' with status '{result.attrs['status']}'"
    check(Result.of(result))
    save(result, folder / "part.nc")
    _agrees(load(folder / "part.nc"), example.result(method))


def _agrees(part: xr.Dataset, whole: xr.Dataset) -> None:
    """Whether an interrupted run agrees with the whole one, exactly or within the estimates of errors."""
    estimated = {str(name) for name in whole.variables if f"{name}_error" in whole}
    # A search for an accuracy that is cut short before it has estimates claims nothing.
    claimed = [name for name in estimated if f"{name}_error" in part] if estimated else list(map(str, part.variables))
    for name in claimed:
        values = part[name].values
        if values.dtype.kind != "f" or values.shape != whole[name].shape:
            continue
        allowed = part[f"{name}_error"].values + whole[f"{name}_error"].values if estimated else np.zeros(values.shape)
        there = np.isfinite(values) & np.isfinite(allowed)
        far = np.abs(values - whole[name].values)[there] > allowed[there]
        assert not far.any(), f"'{name}' of an interrupted run has other numbers"


def check_threads(example: Example, method: str, folder: Path) -> None:
    """Check that numbers do not depend on the number of threads."""
    if example.family.methods[method].threads:
        for workers in (1, 2):
            _same(example.result(method), example.solve(method, workers=workers), f"{workers} thread(s)")


def check_resumption(example: Example, method: str, folder: Path) -> None:
    """Check that a run that was interrupted after any state is resumed from there, with the same bits."""
    if not example.family.methods[method].resumes:
        return
    for states in (1, 2):
        place = folder / str(states)
        with suppress(KeyboardInterrupt):
            example.solve(method, record=Interrupting(place, states))
        with Checkpoint(place) as record:
            _same(example.result(method), example.solve(method, record=record), f"going on after {states} state(s)")


class Interrupting(Checkpoint):
    """Checkpoint in which Ctrl-C comes once some states are saved; it counts them."""

    def __init__(self, folder: Path, states: int) -> None:
        super().__init__(folder, save_every=0.0)
        self._last, self.saved = states, 0

    def save_state(self, name: str, state: State) -> None:
        """See `Record.save_state`."""
        super().save_state(name, state)
        self.saved += 1
        if self.saved == self._last:
            raise KeyboardInterrupt


def _same(first: xr.Dataset, second: xr.Dataset, what: str) -> None:
    for name in first.variables:
        equal = first[name].identical(second[name])
        assert equal, f"{what} gives another '{name}'"
