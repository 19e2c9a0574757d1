"""False alarms and power of verdicts: pieces of the studies of all families, and their sections of one page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import xarray as xr

import meanfield
from meanfield.comparison import rotations
from meanfield.comparison.comparison import judge
from meanfield.comparison.judgement import FALSE_ALARMS, Judgement
from meanfield.problems.variable import DIFFERS
from meanfield.results.result import Result
from validation import ROOT
from validation.pages import markdown_table

STANDARD_ERRORS = 3.0
"""Largest deviation of a share from what it should be."""

INTRODUCTION = (
    "Written by `make verdicts`, which measures it anew: SGD is compared with its own limit, and with wrong ones. "
    "[Compare a prediction with SGD](how-to/compare_with_sgd.md) says what the verdicts mean."
)


class Row(NamedTuple):
    """Share of comparisons that differ."""

    what: str
    N: str
    runs: str
    count: int
    differ: int

    @property
    def share(self) -> float:
        """Share of the comparisons."""
        return self.differ / self.count

    @property
    def error(self) -> float:
        """Standard error of the share, if 5 % is right."""
        return math.sqrt(FALSE_ALARMS * (1 - FALSE_ALARMS) / self.count)


def groups(runs: xr.Dataset, size: int) -> Iterator[xr.Dataset]:
    """Groups of replicas, all of one size."""
    for start in range(0, runs.sizes["replica"] - size + 1, size):
        yield runs.isel(replica=slice(start, start + size))


def differ(first: xr.Dataset, others: Iterator[xr.Dataset], what: str, N: object, runs: object) -> Row:
    """Share of pairs that differ."""
    found: list[Judgement] = []
    places = None
    for number, other in enumerate(others):
        rotations.SEED = number
        if places is None:  # where snapshots and times are is the same for all
            places = Result.of(meanfield.compare(first, other).isel(pair=0))
        two = [Result.of(first), Result.of(other)]
        found.append(judge(*two, places, two))
    return Row(what, str(N), str(runs), len(found), sum(judgement.verdict == DIFFERS for judgement in found))


def pooled(rows: list[Row], runs: str = "") -> Row:
    """Rows of one number of runs together, or all."""
    chosen = [row for row in rows if runs in ("", row.runs)]
    return Row("all", "", runs, sum(row.count for row in chosen), sum(row.differ for row in chosen))


def shown(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows, printed as they come."""
    for row in rows:
        print(f"{row.what}, N = {row.N}, {row.runs} runs: {row.differ} of {row.count} differ", flush=True)
        yield row


def table(rows: list[Row], size: str = "N", more: dict[str, list[str]] | None = None) -> str:
    """Table of shares.

    Parameters
    ----------
    rows : list of Row
    size : str
        What their `N` is.
    more : dict of str to list of str, optional
        More columns.
    """
    more = more or {}
    lines = [(row.what, row.N, row.runs, row.count, percent(row)) for row in rows]
    whole = [(*line, *rest) for line, *rest in zip(lines, *more.values(), strict=True)]
    return markdown_table(("pair", size, "runs", "comparisons", "differ, %", *more), whole)


def percent(row: Row) -> str:
    """Share in per cent with its standard error."""
    return f"{100 * row.share:.1f} ± {100 * row.error:.1f}"


def write_section(family: str, parts: Iterable[str]) -> str:
    """Section of a family on the page of all, in place of an earlier one; returns the section."""
    path = ROOT / "docs/verdicts.md"
    title = f"## {family}"
    section = "\n\n".join([title, *parts])
    known = re.split(r"\n+(?=## )", path.read_text(encoding="utf-8").strip())[1:]
    others = {text.split("\n")[0]: text for text in known} | {title: section}
    page = "\n\n".join(["# How often verdicts are right", INTRODUCTION, *others.values()])
    path.write_text(f"{page}\n", encoding="utf-8")
    return section


def right_and_twice_as_fast(problem: meanfield.Problem, method: str, runs: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    """Prediction for runs of a problem, and one that takes half as long for everything."""
    outputs = problem.time.outputs
    longer = meanfield.with_values(problem, {"time.stop": 2 * problem.time.stop, "time.outputs": 2 * outputs - 1})
    found = meanfield.solve(longer, method).assign_attrs(problem=runs.attrs["problem"])
    fast = found.isel(time=slice(None, None, 2))
    return found.isel(time=slice(outputs)), fast.assign_coords(time=0.5 * fast["time"])


def study(family: str, measured: Iterable[tuple[Row, Row]], replicas: Sequence[int], size: str, about: str) -> bool:
    """Write the section of a family, and say whether true pairs differ as often as they should.

    Parameters
    ----------
    family : str
    measured : iterable of (Row, Row)
        Shares of true pairs that differ, and of pairs with a prediction that is twice as fast.
    replicas : sequence of int
        Numbers of runs that are pooled.
    size : str
        What `Row.N` is.
    about : str
        What is compared, in sentences.
    """
    rotations.ROTATIONS = 399  # p = 0.05 is then known to 0.01, which is right on average
    both = [(next(shown([true])), next(shown([wrong]))) for true, wrong in measured]
    true = [row for row, _ in both]
    rows = [pooled(true), *(pooled(true, str(runs)) for runs in replicas)]
    shares = ", ".join(f"{percent(row)} % with {row.runs} runs" for row in rows[1:])
    summary = (
        f"Of true pairs {100 * FALSE_ALARMS:.0f} % should differ: **{percent(rows[0])} %** of {rows[0].count:,} do, "
        f"{shares}. {about} The last column is the share that is found of predictions that are twice as fast."
    )
    print(
        write_section(family, [summary, table(true, size, {"found, %": [f"{100 * row.share:.0f}" for _, row in both]})])
    )
    return all(abs(row.share - FALSE_ALARMS) < STANDARD_ERRORS * row.error for row in rows)
