"""Content of a report about one result: status, key numbers, tables, conservation, provenance and variables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
import xarray as xr

from meanfield.comparison.wording import format_comparison, in_maths, pairs_of, rows_of_pair
from meanfield.explanation.equations import in_html
from meanfield.explanation.explanation import duration, size
from meanfield.numerics.growth_rates import VERDICTS
from meanfield.problems.family import resolve
from meanfield.report.key_numbers import overlap_names
from meanfield.results.result import Result
from meanfield.results.schema import WARNING
from meanfield.results.text import plain

MOST_ROWS = 60
"""Largest number of rows of a table; a result may have more states."""


@dataclass(frozen=True)
class Table:
    """Table of text: rows under a header, with words below in which formulas stand between dollars."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    caption: str = ""
    notes: Sequence[str] = ()

    @property
    def maths(self) -> str:
        """Words below it as HTML."""
        return "".join(f"<p>{in_html(line)}</p>" for line in self.notes)


@dataclass(frozen=True)
class Content:
    """Text and numbers about one result.

    Parameters
    ----------
    method : str
        Name of the method in words.
    state : str
        `complete`, `interrupted` or `failed`.
    reason : str
        Reason in the attribute `status`, if there is one.
    numbers : list of (str, str)
        Names and values, with errors where they are known.
    conserved : list of (str, str)
        Deviations of what the equations conserve.
    provenance : list of (str, str)
    warning : str
        What to know before the numbers are used, if anything.
    """

    method: str
    state: str
    reason: str
    numbers: list[tuple[str, str]] = field(default_factory=list)
    conserved: list[tuple[str, str]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    provenance: list[tuple[str, str]] = field(default_factory=list)
    variables: Table = field(default_factory=lambda: Table((), []))
    warning: str = ""


def content_of(result: Result) -> Content:
    """Content about a result of any method."""
    dataset, kind = result.dataset, result.kind
    state, _, reason = result.status.partition(": ")
    return Content(
        kind.title,
        state if state in ("complete", "interrupted") else "failed",
        reason,
        list(resolve(kind.numbers)(dataset)) if kind.numbers else [],
        list(_conserved(result)),
        list(_tables(result)),
        list(resolve(kind.notes)(dataset)) if kind.notes else [],
        _provenance(result),
        _variables(dataset),
        str(dataset.attrs.get(WARNING, "")),
    )


def _conserved(result: Result) -> Iterator[tuple[str, str]]:
    """Largest deviations of quantities that should be constant."""
    dataset = result.dataset
    for name in result.variables:
        conserved = result.family.all_variables[name].conserved
        if conserved is not None and np.isfinite(dataset[name].values).any():
            meaning, right = conserved
            yield meaning, plain(float(np.nanmax(np.abs(dataset[name].values - right))))
    if (
        "weights" in dataset
        and "coordinate" in dataset["weights"].dims
        and np.isfinite(dataset["weights"].values).any()
    ):
        square = (dataset["weights"].astype(float) ** 2).mean("coordinate")
        yield "length of the weights, largest | |w|²/N - 1 |", plain(float(np.nanmax(np.abs(square.values - 1.0))))


def _tables(result: Result) -> Iterator[Table]:
    if result.method == "comparison":
        yield from tables_of_pairs(result)
    elif "state" in result.dataset.dims and "q" in result.dataset:
        yield _state_table(result.dataset)


def tables_of_pairs(comparison: Result) -> Iterator[Table]:
    """Table of each pair of a comparison."""
    for name, pair in pairs_of(comparison):
        yield Table(("quantity", "largest over time"), rows_of_pair(pair), name, in_maths(pair.dataset))


def summary(dataset: xr.Dataset) -> str:
    """HTML about a result for notebooks, with formulas: how pairs are judged, or the equations of its problem."""
    result = Result.of(dataset)
    if result.method == "comparison":
        return f"<pre>{escape(format_comparison(dataset))}</pre>" + "".join(t.maths for t in tables_of_pairs(result))
    content = content_of(result)
    lines = [content.method, *(f"{name:<44} {value}" for name, value in content.numbers)]
    return f"<pre>{escape(chr(10).join(lines))}</pre>{result.problem._repr_html_() or ''}"


def _state_table(dataset: xr.Dataset) -> Table:
    """Table of states, with one row for each stationary state or fixed point."""
    columns: list[tuple[str, Callable[[xr.Dataset], str]]] = [
        (name, lambda state, k=k: _numbers(state["q"][k], "{:.6f}"))  # type: ignore[misc]
        for k, name in enumerate(overlap_names(dataset))
    ]
    if "r" in dataset:
        columns.append(("r", lambda state: ", ".join(map(plain, np.ravel(state["r"].values)))))
    if "arrangement" in dataset:
        columns.append(("arrangement", lambda state: str(state["arrangement"].values)))
    if "kind" in dataset:
        columns.append(("kind", lambda state: str(state["kind"].values)))
    else:
        columns.append(("stability", lambda state: VERDICTS.get(int(state["stability"]), "unknown")))
    columns.append(("growth rate", lambda state: plain(float(state["growth_rate"]))))
    if "region_share" in dataset:
        columns.append(
            ("attracts", lambda state: f"{share:.1%}" if (share := float(state["region_share"])) > 0 else "")
        )
    count = dataset.sizes["state"]
    rows = [tuple(of(dataset.isel(state=i)) for _, of in columns) for i in range(min(count, MOST_ROWS))]
    caption = "" if count <= MOST_ROWS else f"the first {MOST_ROWS} of {count} states"
    return Table(tuple(name for name, _ in columns), rows, caption)


def _numbers(values: xr.DataArray, form: str) -> str:
    """A number in words, or those of several channels."""
    return ", ".join(form.format(value + 0.0) for value in np.ravel(values.values))


def _provenance(result: Result) -> list[tuple[str, str]]:
    """Provenance as names and values; text that is not JSON is shown as it is."""
    dataset, record = result.dataset, dict(result.provenance)
    if not record:
        return [("provenance", str(dataset.attrs.get("provenance", "")))]
    seconds = record.pop("wall_time_seconds", None)
    rows = [] if not isinstance(seconds, int | float) else [("wall time", duration(seconds))]
    versions = record.pop("versions", {})
    for key, value in record.items():
        rows.append((key.replace("_", " "), value if isinstance(value, str) else json.dumps(value)))
    if isinstance(versions, dict):
        rows.append(("versions", ", ".join(f"{name} {number}" for name, number in versions.items())))
    named = {key: entry for key, entry in result.made_by.items() if key != "meanfield"}
    for key, entry in named.items():
        found = ", ".join(text for text in (entry["sha256"], entry["version"]) if text)
        rows.append((f"{key} = '{entry['what']}'", found or "it is not known what this was"))
    return [*rows, ("schema version", str(dataset.attrs.get("schema_version", "unknown")))]


def _variables(dataset: xr.Dataset) -> Table:
    rows = [
        (
            str(name),
            " x ".join(f"{dim} {length}" for dim, length in variable.sizes.items()) or "one number",
            str(variable.attrs.get("long_name", "")),
            size(variable.nbytes),
        )
        for name, variable in dataset.variables.items()
    ]
    return Table(("variable", "dims", "meaning", "size"), rows)
