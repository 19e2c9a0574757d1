"""Verdicts on pairs of methods: how often true pairs differ, and how often one that learns twice as fast is found.

Runs of SGD are held in groups against their own limit, on random problems, and in as many against a prediction that
learns twice as fast. Of true pairs 5 % should differ, whatever the number of runs. Families say which pairs of methods
there are, in the modules `verdicts` of their studies; each writes its section of docs/verdicts.md, and the rotations
of each comparison are drawn anew, with which the rate is exact for any number of them. A pair takes a minute or two,
and with `--pairs` those of others stay on the page, with the commit that they were measured at. Shares of each problem
are kept in data/runs/verdicts.jsonl until all sections are written: a call that was stopped goes on.
"""

from __future__ import annotations

import importlib
import json
import math
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import xarray as xr

import meanfield
from meanfield.cli import DONE, FAILED, run
from meanfield.comparison import rotations
from meanfield.comparison.comparison import judge
from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.problems.base import Problem
from meanfield.problems.variable import DIFFERS
from meanfield.results.provenance import provenance
from meanfield.results.result import Result
from meanfield.testing.verdicts import Trial
from validation import OUTPUT, ROOT, rows
from validation.pages import markdown_table, sections

FAMILIES = ("contrastive", "alpha_contrastive", "latent_tree", "hidden_manifold", "update_rule")

PROBLEMS = 8
"""Number of random problems of each pair, on which these are spread evenly."""

WRONG = 5
"""Number of comparisons with a wrong prediction, for each problem and number of runs."""

FIRST_SEED = 5000

TOLERANCE = 0.015
"""Largest deviation from 5 %, besides three standard errors."""

PAGE = ROOT / "docs/verdicts.md"
ROWS = OUTPUT / "verdicts.jsonl"

INTRODUCTION = (
    "Written by `make verdicts`, which measures it anew: SGD is compared with its own limit, and with wrong ones. "
    "[Compare a prediction with SGD](how-to/compare_with_sgd.md) says what the verdicts mean. Of true pairs 5 % should "
    f"differ. Each row is measured on {PROBLEMS} random problems, with as many comparisons for each number of runs; "
    "of all together stands what chance adds or takes off in 95 of 100 cases. The last column is the share that is "
    "found of predictions that learn twice as fast. A row is of the problems of its commit."
)

SEPARATOR = "; "
"""Between the words of the name of a measurement."""

HEADER = ("pair", "runs", "comparisons", "differ, %", "together, %", "found, %", "commit")


class Share(NamedTuple):
    """Number of comparisons, and of those that differ."""

    differ: int
    count: int

    @property
    def value(self) -> float:
        """Share that differs."""
        return self.differ / self.count

    @property
    def error(self) -> float:
        """Standard error of the share, if 5 % is right."""
        return math.sqrt(FALSE_ALARMS * (1 - FALSE_ALARMS) / self.count)

    @property
    def is_right(self) -> bool:
        """Whether it is that of true pairs, within chance."""
        return abs(self.value - FALSE_ALARMS) < TOLERANCE + 3.0 * self.error

    def __str__(self) -> str:
        return f"{100 * self.value:.1f}"


class Pair(NamedTuple):
    """A method and SGD.

    Parameters
    ----------
    method : str
    problem_of : callable
        Seed to a random problem.
    sizes : tuple of int
        Numbers of runs of a comparison.
    comparisons : int
        Number of comparisons for each of them.
    """

    method: str
    problem_of: Callable[[int], Problem]
    sizes: tuple[int, ...] = (4, 8, 16)
    comparisons: int = 160


class Study(NamedTuple):
    """What is measured in a family.

    Parameters
    ----------
    about : str
        What is compared, in sentences.
    pairs : mapping of str to Pair
    more : callable, optional
        Returns whether what else is measured is right, and it in Markdown.
    """

    about: str
    pairs: Mapping[str, Pair]
    more: Callable[[], tuple[bool, list[str]]] | None = None


class Row(NamedTuple):
    """Shares that differ of a pair, by the number of runs: of true predictions, and of those that are too fast."""

    name: str
    sizes: tuple[int, ...]
    true: list[Share]
    wrong: list[Share]
    commit: str


def total(shares: Iterable[Share]) -> Share:
    """All comparisons together."""
    return Share(*map(sum, zip(*shares, strict=True)))


def groups(runs: xr.Dataset, size: int, count: int) -> Iterator[xr.Dataset]:
    """So many groups of replicas, all of one size."""
    for start in range(0, size * count, size):
        yield runs.isel(replica=slice(start, start + size))


def differ(first: xr.Dataset, others: Iterable[xr.Dataset]) -> Share:
    """Share of pairs that differ."""
    found, places, limit = [], None, Result.of(first)
    for number, other in enumerate(others):
        rotations.SEED = number
        if places is None:  # where snapshots and times are is the same for all, and the problem of runs
            places, problem = Result.of(meanfield.compare(first, other).isel(pair=0)), Result.of(other).problem
        two = [limit, Result.of(other, problem)]
        found.append(judge(*two, places, two).verdict == DIFFERS)
    return Share(sum(found), len(found))


def measure(task: str) -> rows.Row:
    """Shares of true pairs and of wrong ones that differ, on one random problem; see `task_of`."""
    family, name, seed = task.split(SEPARATOR)
    rotations.ROTATIONS = 199
    pair = study_of(family).pairs[name]
    each = pair.comparisons // PROBLEMS
    settings = {"particles.replicas": each * max(pair.sizes), "particles.seed": int(seed)}
    trial = Trial(meanfield.with_values(pair.problem_of(int(seed)), settings))
    runs = meanfield.simulate_sgd(trial.problem, workers=1)
    right, fast = trial.result(pair.method), trial.too_fast(pair.method)
    true = [differ(right, groups(runs, size, each)) for size in pair.sizes]
    wrong = [differ(fast, groups(runs, size, WRONG)) for size in pair.sizes]
    return {"true": true, "wrong": wrong, "commit": json.loads(provenance(0.0))["commit"]}


def task_of(family: str, name: str, seed: int) -> str:
    """Name of the measurement of a pair on the random problem of a seed."""
    return SEPARATOR.join([family, name, str(seed)])


def together(name: str, sizes: tuple[int, ...], found: Sequence[rows.Row]) -> Row:
    """Row of all problems of a pair."""
    true, wrong = (
        [total(Share(*share) for share in shares) for shares in zip(*(row[kind] for row in found), strict=True)]
        for kind in ("true", "wrong")
    )
    row = Row(name, sizes, true, wrong, found[-1]["commit"])
    print(*cells(row), sep="; ", flush=True)
    return row


def cells(row: Row) -> tuple[str, ...]:
    """Row of the table: see `HEADER`; together with what chance adds or takes off in 95 of 100 cases."""
    lists = (row.sizes, row.true, [f"{100 * share.value:.0f}" for share in row.wrong])
    runs, true, wrong = (", ".join(map(str, values)) for values in lists)
    whole = total(row.true)
    return row.name, runs, str(whole.count), true, f"{whole} ± {196 * whole.error:.1f}", wrong, row.commit


def known_lines(section: str) -> dict[str, tuple[str, ...]]:
    """Lines of the table of a section by their pairs."""
    lines = (tuple(line.strip("| ").split(" | ")) for line in section.split("\n") if line.startswith("| "))
    return {line[0]: line for line in lines if len(line) == len(HEADER)}


def of_line(line: tuple[str, ...]) -> Share:
    """All comparisons of a line."""
    count = int(line[2])
    return Share(round(float(line[4].split()[0]) * count / 100), count)


def write_section(family: str, parts: Iterable[str]) -> None:
    """Section of a family on the page of all, in place of an earlier one."""
    written = sections(PAGE) | {family: "\n\n".join([f"## {family}", *parts])}
    PAGE.write_text("\n\n".join(["# How often verdicts are right", INTRODUCTION, *written.values()]).rstrip() + "\n")


def study_of(family: str) -> Study:
    """Study of a family, in the module that declares it."""
    study: Study = importlib.import_module(f"validation.{family}.verdicts").STUDY
    return study


def run_study(family: str, chosen: Sequence[str] = ()) -> bool:
    """Measure all pairs, or chosen ones, write the section of a family, and say whether the rates are as claimed."""
    study = study_of(family)
    names = [name for name in study.pairs if not chosen or name in chosen]
    tasks = {name: [task_of(family, name, FIRST_SEED + number) for number in range(PROBLEMS)] for name in names}
    found = rows.measure(measure, [task for each in tasks.values() for task in each], [ROWS])
    whole_rows = [together(name, study.pairs[name].sizes, [found[task] for task in tasks[name]]) for name in names]
    earlier = sections(PAGE).get(family, "")
    measured = {name: known for name, known in known_lines(earlier).items() if name in study.pairs}
    measured |= {row.name: cells(row) for row in whole_rows}
    lines = [measured[name] for name in study.pairs if name in measured]
    _, table, after = earlier.partition(" |\n\n")  # the last section of the page may end with its table
    right, more = study.more() if study.more and not chosen else (True, [after] if table else [])
    whole = total(map(of_line, lines))
    summary = f"Of true pairs **{whole} %** differ, of {whole.count:,}. {study.about}"
    write_section(family, [summary, markdown_table(HEADER, lines), *more])
    return right and whole.is_right and all(share.is_right for row in whole_rows for share in row.true)


def main() -> int:
    """Run the studies of some families, or of all."""
    parser = ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(FAMILIES)}; all by default")
    parser.add_argument("--pairs", nargs="+", default=[], metavar="PAIR", help="pairs that are measured anew")
    arguments = parser.parse_args()
    families = arguments.families or FAMILIES
    right = [run_study(family, arguments.pairs) for family in families]
    others = [each for each in rows.rows_of(ROWS).items() if each[0].split(SEPARATOR)[0] not in families]
    ROWS.write_text("".join(map(rows.line_of, others)), encoding="utf-8")  # the next call measures anew
    return DONE if all(right) else FAILED


if __name__ == "__main__":
    run(main)
