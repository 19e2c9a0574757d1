"""Predicted times, memory and sizes against measured ones: examples of all families, more problems, and random ones.

First everything is predicted, as by `meanfield validate`. Then each method is the command in a fresh process on one
core, as users run it, and its time is the processor time of that process, start included, which other programs change
less than the clock; a run that compiled something is repeated. Runs that are predicted to take more than 20 s are
left out; one that takes ten times the prediction plus 20 s is stopped, and counts as that long. Memory is
the resident peak.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from meanfield.cli import DONE, at_least, parser, run
from meanfield.explanation.prediction import Prediction, predictions
from meanfield.extend import Family
from meanfield.problems.file import load_problem
from meanfield.problems.known_families import family_of
from meanfield.results.provenance import describe_machine
from validation import ROOT
from validation.pages import markdown_table
from validation.predictions.problems import write_problems

LONGEST_RUN = 20.0
"""Largest predicted time in seconds of a run that is made."""

PYTHON_MEMORY = 300e6
"""Bytes that Python and its packages take."""

RANDOM_PROBLEMS = 50
"""Number of random problems, of the first seeds."""

FACTORS = (2, 3, 10)

SLOW_PREDICTION = 5.0
"""Processor seconds that a prediction should not take itself."""


class Plan(NamedTuple):
    """A method of a problem, with its prediction."""

    problem: str
    file: Path
    family: str
    method: str
    prediction: Prediction


class Run(NamedTuple):
    """Cost of a run: processor seconds, bytes at the peak, bytes of the file (NaN where there is none)."""

    plan: Plan
    seconds: float
    memory: float
    file: float

    @property
    def ratio(self) -> float:
        """Predicted by measured time."""
        return self.plan.prediction.seconds / self.seconds

    @property
    def cells(self) -> tuple[str, ...]:
        """As in `HEADER`."""
        plan, predicted = self.plan, self.plan.prediction
        memory, file = (PYTHON_MEMORY + predicted.memory) / self.memory, predicted.file / self.file
        times = f"{predicted.seconds:.2f}", f"{self.seconds:.2f}", f"{self.ratio:.2f}"
        return plan.family, plan.problem, plan.method, *times, f"{memory:.2f}", f"{file:.2f}"


HEADER = ("family", "problem", "method", "predicted, s", "measured, s", "ratio", "memory", "file")


def plans_of(name: str, file: Path) -> tuple[list[Plan], float]:
    """Plans of all methods that apply to a problem, and the processor seconds that predicting took."""
    started = time.process_time()
    problem = load_problem(file)
    family: Family = family_of(problem)
    methods = [method for method, declared in family.methods.items() if declared.cost]
    found = [
        Plan(name, file, family.name, method, prediction)
        for method, prediction in zip(methods, predictions(problem), strict=True)
        if prediction.applies
    ]
    return found, time.process_time() - started


def measure(plan: Plan, core: int, folder: Path) -> Run | None:
    """The command on one core, once more if it compiled; None for a run that ends without a result."""
    while True:
        compiled = _compiled()
        found = _measure(plan, core, folder)
        if _compiled() == compiled:
            return found


def _measure(plan: Plan, core: int, folder: Path) -> Run | None:
    result = folder / f"{core}.nc"
    result.unlink(missing_ok=True)
    most = int(LONGEST_RUN + 10 * plan.prediction.seconds)

    def limit() -> None:
        os.sched_setaffinity(0, {core})
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))

    process = subprocess.Popen(
        [sys.executable, "solvers/solve.py", plan.method, str(plan.file), "-o", str(result)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=limit,
    )
    usage = os.wait4(process.pid, 0)[2]
    seconds = usage.ru_utime + usage.ru_stime
    if not result.exists() and seconds < most - 1:
        return None
    return Run(plan, seconds, 1024.0 * usage.ru_maxrss, result.stat().st_size if result.exists() else np.nan)


def _compiled() -> int:
    """Number of functions that are compiled so far."""
    return sum(1 for folder in ("meanfield", "validation") for _ in (ROOT / folder).rglob("*.nbc"))


def measure_all(plans: Iterable[Plan], folder: Path) -> Iterator[tuple[Plan, Run | None]]:
    """All plans, one on each core at a time, in their order."""
    cores: SimpleQueue[int] = SimpleQueue()
    for core in (available := sorted(os.sched_getaffinity(0))):
        cores.put(core)

    def work(plan: Plan) -> tuple[Plan, Run | None]:
        core = cores.get()
        try:
            return plan, measure(plan, core, folder)
        finally:
            cores.put(core)

    with ThreadPoolExecutor(len(available)) as pool:
        yield from pool.map(work, plans)


def predict_all(files: dict[str, Path], wanted: list[str]) -> Iterator[Plan]:
    """Plans that are short enough to be measured, predicted for one core."""
    available = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(available)})
    for name, file in files.items():
        if wanted and not any(text in name for text in wanted):
            continue
        plans, seconds = plans_of(name, file)
        if seconds > SLOW_PREDICTION:
            print(f"{name}: predicting took {seconds:.1f} s")
        for plan in plans:
            if plan.prediction.seconds <= LONGEST_RUN:
                yield plan
            else:
                print(f"{name}, {plan.method}: not measured, predicted {plan.prediction.seconds:.0f} s")
    os.sched_setaffinity(0, available)


def shares(ratios: Iterable[float]) -> tuple[str, ...]:
    """Shares within factors of 2, 3 and 10, and the largest factor."""
    factor = np.array([max(ratio, 1 / ratio) for ratio in ratios])
    return *(f"{np.mean(factor <= most):.1%}" for most in FACTORS), f"{factor.max():.1f}"


def summary(runs: list[Run]) -> list[tuple[str, ...]]:
    """A row per family and method, and one of all."""
    keys = dict.fromkeys((found.plan.family, found.plan.method) for found in runs)
    groups = {key: [found.ratio for found in runs if (found.plan.family, found.plan.method) == key] for key in keys}
    groups["all", ""] = [found.ratio for found in runs]
    return [(*key, str(len(ratios)), *shares(ratios)) for key, ratios in sorted(groups.items())]


SUMMARY = ("family", "method", "runs", "within 2", "within 3", "within 10", "largest factor")

INTRODUCTION = """# Predicted and measured times

Written by `make predictions`, which measures everything anew. Before a run `meanfield validate` says
[how long it will take](how-to/plan_a_run.md). Here each method of the examples of all families, of more problems, and
of {count} random contrastive ones is predicted, and then run as users run it: the command, in a fresh process, on one
core. Times are of the processor, start of Python included. Runs that are predicted to take more than {longest:g} s are
left out.

Machine: {machine}"""

WORST = """## Furthest off

The twenty runs whose times are predicted worst. A ratio is predicted by measured; memory includes what Python takes."""

WORST_ROWS = 20


def page(runs: list[Run], count: int) -> str:
    """Page of the site."""
    worst = sorted(runs, key=lambda found: min(found.ratio, 1 / found.ratio))[:WORST_ROWS]
    parts = [
        INTRODUCTION.format(count=count, longest=LONGEST_RUN, machine=describe_machine()),
        markdown_table(SUMMARY, summary(runs)),
        WORST,
        markdown_table(HEADER, [found.cells for found in worst]),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Predict, measure, compare."""
    command = parser(__doc__ or "")
    command.add_argument("--random", type=at_least(0, "problems"), default=RANDOM_PROBLEMS, metavar="N")
    command.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="problems whose name has one of these")
    command.add_argument("--page", type=Path, metavar="OUT.md", help="where the page of the site goes")
    arguments = command.parse_args()
    runs = []
    with TemporaryDirectory() as folder:
        plans = list(predict_all(write_problems(Path(folder), arguments.random), arguments.only))
        print(f"{len(plans)} runs, predicted {sum(plan.prediction.seconds for plan in plans):.0f} s", flush=True)
        for plan, found in measure_all(plans, Path(folder)):
            cells = found.cells[1:] if found else (plan.problem, plan.method, "no result")
            print(
                "".join(f"{cell:<{width}}" for cell, width in zip(cells, (26, 18, 8, 8, 8, 8, 8), strict=False)),
                flush=True,
            )
            runs += [found] if found else []
    for row in summary(runs):
        print("  ".join(row))
    if arguments.page:
        arguments.page.write_text(page(runs, arguments.random), encoding="utf-8")
    return DONE


if __name__ == "__main__":
    run(main)
