"""Every method on random problems: what is complete, what fails and why, seconds, and errors against their estimates.

Problems are those of `random_problems.py`. Each method runs in a child process of its own, on one core, with a limit on
its processor time. Overlaps q and the prior's work r of the density and of SGD are held against references: the reduced
ODEs by another integrator where the prior is linear, otherwise the density at a tenth of the tolerance, and with
--eulerian also its Eulerian scheme. Stationary states are held against their equations by another quadrature.

Writes data/runs/regimes/table.nc, and with --page the page docs/regimes.md; `make regimes` does both. Methods come
first and references last, so that Ctrl-C leaves a table of all that has ended; --resume goes on from there. Runs are
kept beside the table, in table.jsonl: --merge takes those of other calls, so that many problems can be run in blocks.
"""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import ArgumentTypeError, Namespace
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

from meanfield.cli import DONE, FAILED, at_least, parser, run
from meanfield.errors import InputError
from meanfield.process.atomic_files import check_writable
from meanfield.process.cores import available_cores
from meanfield.process.progress import progress_bar
from meanfield.results.files import save
from meanfield.results.provenance import provenance
from validation import OUTPUT, ROOT
from validation.bounded_calls import TIME_LIMIT, Outcome, bounded_calls
from validation.contrastive.random_problems import random_problem, random_text
from validation.contrastive.regime_page import page
from validation.contrastive.regime_runs import METHODS, REFERENCES, Run, run_one, solvers_of
from validation.contrastive.regime_table import statements, table

FOLDER = OUTPUT / "regimes"
PAGE = ROOT / "docs" / "regimes.md"

SOLVERS = (*METHODS, *REFERENCES)
"""Methods and references in the order in which they run."""

CHECKS = 5.0
"""Limit on the processor time of a run with the check of its result, or of a reference, in units of that of a method:
what an independent quadrature takes says nothing of the method."""

WARM_UP = (3, 8)
"""Seeds of problems with and without a nonlinear prior, solved first: what they compile takes no time of runs."""


def seconds_above(least: float, text: str) -> float:
    """The type of an argument that is a number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not least <= value < np.inf:
        raise ArgumentTypeError(f"'{text}': give seconds, a number from {least:g} on")
    return value


def tolerance_of(text: str) -> float:
    """The type of an argument that is a tolerance of the density."""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 1e-10 <= value <= 1e-2:
        raise ArgumentTypeError(f"'{text}': give a tolerance of the density, from 1e-10 to 1e-2")
    return value


def read_runs(path: Path, identity: dict[str, float]) -> dict[tuple[int, str], Run]:
    """Runs of an earlier call with the same tolerance and limit; the last line may be cut.

    Raises
    ------
    InputError
        If it is no file of runs, or of another tolerance or limit.
    """
    lines = _lines_of(path)
    if lines[0] != json.dumps(identity):
        raise InputError(
            f"{path} begins with {lines[0][:80]!r}, so its runs are not of {json.dumps(identity)}; leave it out of"
            " --resume and --merge, or give its --tolerance and --time-limit"
        )
    found = {}
    for line in lines[1:]:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        task = row.pop("seed"), row.pop("solver")
        found[task] = Run(**row)
    return found


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines() or [""]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as runs ({error}); give the .jsonl file beside a table") from error


def known_runs(arguments: Namespace, path: Path, identity: dict[str, float]) -> dict[tuple[int, str], Run]:
    """Runs of earlier calls: of this table, if it resumes, and of those that are merged into it."""
    files = [*([path] if arguments.resume and path.exists() else []), *arguments.merge]
    found: dict[tuple[int, str], Run] = {}
    for file in files:
        found |= read_runs(file, identity)
    return found


def as_run(outcome: Outcome[tuple[int, str], Run], limit: float) -> Run:
    """Run of a child, also of one that took too long or broke."""
    found = outcome.value
    if found is not None and (found.seconds <= limit or outcome.argument[1] in REFERENCES):
        return found
    status = TIME_LIMIT if found is not None or outcome.fault == TIME_LIMIT else f"broken: {outcome.fault}"
    return Run(status, limit, [], [])


def tasks_of(arguments: Namespace) -> list[tuple[int, str]]:
    """Seeds and solvers that are asked for: methods of all problems first, then their references."""
    seeds = range(arguments.seed, arguments.seed + arguments.problems)
    tasks = [
        (seed, name)
        for seed in seeds
        for name in solvers_of(random_problem(seed), arguments.methods, arguments.eulerian)
    ]
    return sorted(tasks, key=lambda task: SOLVERS.index(task[1]))


def row_of(task: tuple[int, str], run: Run) -> str:
    """Line of the file of runs, as `read_runs` takes it."""
    return json.dumps({"seed": task[0], "solver": task[1]} | asdict(run))


def run_all(arguments: Namespace) -> dict[tuple[int, str], Run]:
    """All runs, or those that ended before Ctrl-C; each is written to a file as it ends, for --resume."""
    tasks = tasks_of(arguments)
    identity = {"tolerance": arguments.tolerance, "time_limit": arguments.time_limit}
    path = arguments.output.with_suffix(".jsonl")
    before = known_runs(arguments, path, identity)
    rows = [row_of(task, run) for task, run in before.items()]
    path.write_text("\n".join([json.dumps(identity), *rows]) + "\n")
    runs = {task: before[task] for task in tasks if task in before}
    left = [task for task in tasks if task not in before]
    cores = usable_cores()[: arguments.workers]
    work = partial(_run_task, tolerance=arguments.tolerance)
    if left:
        warm_up(cores[0], arguments.methods)
    try:
        with progress_bar(len(left), "regimes", unit="run") as bar, path.open("a") as file:
            for outcome in bounded_calls(work, left, CHECKS * arguments.time_limit, cores):
                one = runs[outcome.argument] = as_run(outcome, arguments.time_limit)
                file.write(row_of(outcome.argument, one) + "\n")
                file.flush()
                if one.status.startswith("broken"):
                    bar.write(f"seed {outcome.argument[0]}, {outcome.argument[1]}: {one.status}", file=sys.stderr)
                bar.update()
    except KeyboardInterrupt:
        print(f"interrupted after {len(runs)} of {len(tasks)} runs; --resume does the others", file=sys.stderr)
    return runs


def _run_task(task: tuple[int, str], tolerance: float) -> Run:
    return run_one(*task, tolerance)


def usable_cores() -> list[int]:
    """Cores that this process may use."""
    if not hasattr(os, "sched_getaffinity"):
        return list(range(available_cores()))
    return sorted(os.sched_getaffinity(0))[: available_cores()]


def warm_up(core: int, methods: list[str]) -> None:
    """Solve an example by everything on one core, so that no thread is left for the children to miss."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    tasks = [(seed, name) for seed in WARM_UP for name in solvers_of(random_problem(seed), methods)]
    print(f"compiling by {len(tasks)} runs, for minutes where nothing is compiled yet", file=sys.stderr)
    if any(run_one(*task, 1e-3).status == "interrupted" for task in tasks):  # Ctrl-C ends a run, and others begin
        raise KeyboardInterrupt


def main() -> int:
    """Run, judge, print; write the table and the page."""
    command = parser(__doc__ or "")
    command.add_argument("--problems", type=at_least(1, "problems"), default=400, metavar="N")
    command.add_argument("--seed", type=at_least(0, "the first seed"), default=0, help="seed of the first problem")
    command.add_argument("--methods", nargs="+", choices=[*METHODS], default=[*METHODS], metavar="METHOD")
    command.add_argument("--tolerance", type=tolerance_of, default=1e-6, help="tolerance of the density")
    command.add_argument(
        "--time-limit", type=partial(seconds_above, 1.0), default=60.0, help="processor time of a run in seconds"
    )
    command.add_argument("--workers", type=at_least(1, "workers"), default=available_cores(), help="runs at a time")
    command.add_argument(
        "--output", type=Path, default=FOLDER / "table.nc", metavar="OUT.nc", help="where the table goes"
    )
    command.add_argument(
        "--eulerian", action="store_true", help="hold densities against the Eulerian scheme, too (slow)"
    )
    command.add_argument("--resume", action="store_true", help="keep the runs of a call that was stopped")
    command.add_argument(
        "--merge", type=Path, nargs="+", default=[], metavar="RUNS.jsonl", help="take runs of other calls, too"
    )
    command.add_argument("--page", type=Path, metavar="OUT.md", help="where the page of the site goes")
    command.add_argument("--show", type=at_least(0, "a seed"), metavar="SEED", help="print the problem file of a seed")
    arguments = command.parse_args()
    if arguments.show is not None:
        print(random_text(arguments.show))
        return DONE
    began = time.perf_counter()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    check_writable(arguments.output)
    runs = run_all(arguments)
    holding = statements(data := table(runs, arguments.methods), arguments.tolerance)
    data.attrs |= {
        "Conventions": "CF-1.11",
        "title": "Every method on random problems",
        "statements": json.dumps([asdict(statement) for statement in holding]),
        "provenance": provenance(time.perf_counter() - began),
    }
    save(data, arguments.output)
    text = page(data, arguments, holding)
    print(text)
    if arguments.page:
        arguments.page.write_text(text, encoding="utf-8")
    return DONE if all(statement.holds for statement in holding) else FAILED


if __name__ == "__main__":
    run(main)
