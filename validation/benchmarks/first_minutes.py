"""How long a new installation takes to its first results, while nothing that is compiled is on disk yet.

Each row is a process of its own that begins with an empty cache of compiled code, but with bytecode. What counts is
processor time, of all threads, from the start of Python on; other programs still make it longer, by up to three times,
because compilers wait for memory. The demo starts processes of its own, whose time counts, too.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from validation import ROOT
from validation.benchmarks.table import Row, Table

PROBLEM = ROOT / "data/problems/no_prior.toml"
"""Problem to which all methods apply."""

SOLVERS = {"density": "solve_density", "SGD": "simulate_sgd", "ODE": "solve_order_parameters"}

MOST_SECONDS = 30.0
"""Processor time in seconds that first results of all three methods may take together."""


def solving(*methods: str) -> list[str]:
    """Command that solves the problem by methods, one after the other."""
    solves = "".join(f"meanfield.{SOLVERS[method]}(problem);" for method in methods)
    return [sys.executable, "-c", f"import meanfield; problem = meanfield.load_problem({str(PROBLEM)!r}); {solves}"]


def processor_and_wall_time(command: list[str], folder: str) -> tuple[float, float]:
    """Times in seconds that a command and its children take."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = os.environ | {"NUMBA_CACHE_DIR": folder, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return used, time.perf_counter() - started


def rows() -> Iterator[Row]:
    everything = solving(*SOLVERS)
    commands = {f"first {method}": solving(method) for method in SOLVERS}
    commands |= {"all three in one process": everything}
    commands |= {"the demo": [sys.executable, "-m", "validation.contrastive.demo"]}
    for what, command in commands.items():
        with tempfile.TemporaryDirectory() as folder:
            used, wall = processor_and_wall_time(command, folder)
            required = f"at most {MOST_SECONDS:g} s" if command is everything else ""
            yield Row(what, used, "s", required=required, note=f"{wall:.0f} s on the clock")
            if command is everything:
                used, wall = processor_and_wall_time(command, folder)
                yield Row("the same, once compiled", used, "s", note=f"{wall:.0f} s on the clock")


def tables() -> Iterator[Table]:
    yield Table("First results of no_prior.toml", "an empty cache each; processor time of all threads", tuple(rows()))
