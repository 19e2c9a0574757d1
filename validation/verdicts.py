"""False alarms and power of verdicts: pieces of the studies of all families, and their sections of one page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


class Pair(NamedTuple):
    """Prediction of a random problem, one that learns twice as fast, and runs of SGD."""

    right: xr.Dataset
    fast: xr.Dataset
    runs: xr.Dataset


def centred(right: xr.Dataset, runs: xr.Dataset) -> xr.Dataset:
    """Runs whose compared quantities have the predicted mean: SGD without a bias, and with its own scatter."""
    known = {name: each for name, each in Result.of(runs).family.compared.items() if name in right and name in runs}
    moved = {name: runs[name] + (right[name] - runs[name].mean("replica")).drop_vars("time") for name in known}
    return runs.assign({name: values.clip(*known[name].range) for name, values in moved.items()})


class Rates(NamedTuple):
    """Shares that differ of pairs of one kind: of true ones, of those whose runs are centred, and of wrong ones."""

    method: str
    true: Row
    centred: Row
    wrong: Row


MOST_WRONG = 5
"""Number of comparisons with wrong predictions, for each problem: what they show is hardly chance."""


def rates(name: str, method: str, N: object, pairs: Iterable[Pair], sizes: Sequence[int]) -> Iterator[Rates]:
    """Rates with each number of runs, pooled over problems, of each of which there are at most 60 comparisons.

    Parameters
    ----------
    name, method : str
        What is compared, and the method of the prediction.
    N : object
        Size of the problems, for the table.
    pairs : iterable of Pair
    sizes : sequence of int
        Numbers of runs of a comparison.
    """
    counted: dict[int, list[tuple[Row, Row, Row]]] = {size: [] for size in sizes}
    for right, fast, runs in pairs:
        without_bias = centred(right, runs)
        for size in sizes:
            few, fewer = (slice(size * count) for count in (60, MOST_WRONG))
            counted[size].append(
                (
                    differ(right, groups(runs.isel(replica=few), size), name, N, size),
                    differ(right, groups(without_bias.isel(replica=few), size), name, N, size),
                    differ(fast, groups(runs.isel(replica=fewer), size), name, N, size),
                )
            )
    for size in sizes:
        true, unbiased, wrong = (together(list(rows)) for rows in zip(*counted[size], strict=True))
        print(f"{name}, {size} runs: {percent(true)}, centred {percent(unbiased)}, found {wrong.share:.2f}", flush=True)
        yield Rates(method, true, unbiased, wrong)


def together(rows: Sequence[Row]) -> Row:
    """Shares of several problems as one."""
    return rows[0]._replace(count=sum(row.count for row in rows), differ=sum(row.differ for row in rows))


def study(family: str, measured: Iterable[Rates], size: str, about: str) -> bool:
    """Write the section of a family, and say whether true pairs differ as often as they should.

    Parameters
    ----------
    family : str
    measured : iterable of Rates
    size : str
        What `Row.N` is.
    about : str
        What is compared, in sentences.
    """
    rotations.ROTATIONS = 399  # with rotations of its own for each comparison the rate is exact all the same
    found = list(measured)
    true = [each.true for each in found]
    methods: Mapping[str, list[Rates]] = {each.method: [] for each in found}
    for each in found:
        methods[each.method].append(each)
    shares = "; ".join(
        f"of the method {method} {percent(together([each.true for each in rows]))} %, "
        f"{percent(together([each.centred for each in rows]))} % with centred runs"
        for method, rows in methods.items()
    )
    whole = together(true)
    summary = (
        f"Of true pairs {100 * FALSE_ALARMS:.0f} % should differ: **{percent(whole)} %** of {whole.count:,} do; "
        f"{shares}. "
        f"{about} Every row pools random problems. *Centred* runs are moved to have the predicted mean over all runs "
        "of a problem in all that is compared but weights, which takes up to a fifteenth of the variance of the mean "
        "of sixteen: where these differ in more than 5 %, the test is wrong, in less, an allowance hides chance, and "
        "where only the others differ in more, that is the bias of SGD. The last column is the share that is found of "
        "predictions that learn twice as fast."
    )
    more = {
        "centred, %": [percent(each.centred) for each in found],
        "found, %": [f"{100 * each.wrong.share:.0f}" for each in found],
    }
    print(write_section(family, [summary, table(true, size, more)]))
    return all(
        abs(row.share - FALSE_ALARMS) < STANDARD_ERRORS * row.error
        for row in (whole, *(together([each.true for each in rows]) for rows in methods.values()))
    )
