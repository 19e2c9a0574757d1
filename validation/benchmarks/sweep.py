"""Overhead of a sweep over the work at its points: processes, a file for each of them, and one Dataset of all."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from meanfield import load_sweep, run_sweep
from meanfield.problems.known_families import family_of
from meanfield.sweep.points import points_of
from validation import ROOT
from validation.benchmarks.table import Row, Table
from validation.benchmarks.timing import CORES

SWEEP = load_sweep(ROOT / "data/sweeps/phase_diagram.toml")
EVERY = 10
"""Stride of the points that are also solved in a loop."""


def wall_time(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def tables() -> Iterator[Table]:
    points = points_of(SWEEP)
    (solve,) = (family_of(SWEEP.problem).method(name) for name in SWEEP.methods)
    problems = [point.problem for point in points[::EVERY] if point.problem is not None]
    solve(problems[0])  # compiles
    alone = wall_time(lambda: [solve(problem) for problem in problems]) / len(problems)
    with tempfile.TemporaryDirectory() as folder:
        first, again = (wall_time(lambda: run_sweep(SWEEP, folder)) / len(points) for _ in range(2))
    rows = (
        Row("a point, times cores", 1e3 * first * CORES, "ms", "in a loop", 1e3 * alone),
        Row("the same once more, when all is done: a point", 1e3 * again, "ms"),
    )
    how = f"{len(points)} cheap points of phase_diagram.toml on {CORES} cores; wall time, start of processes included"
    yield Table("A sweep", how, rows)
