"""A sweep that is killed, interrupted, or loses a worker: points that are there stay, and the rest is done later."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import psutil
import xarray as xr

import meanfield
from meanfield import cli
from meanfield.cli import DONE, FAILED
from meanfield.problems.file import parse_problem
from meanfield.sweep import Sweep, workers
from validation.faults.children import Ended, Starting, run_child
from validation.faults.trials import Fault, Tally, fault, folder, one_line, unless
from validation.faults.writers import TEXT

POINTS = 12
WORKERS = 2


SWEEPS = ("`run_sweep`: points, merged file",)


@cache
def _sweep() -> Sweep:
    axis = {"key": "model.learning_rate", "values": np.linspace(0.01, 0.3, POINTS).tolist()}
    return Sweep.model_validate(
        {"problem": parse_problem(TEXT), "axes": [axis], "methods": {"density": ["final"]}, "title": "faults"}
    )


def _run(out: Path) -> int:
    """Run the sweep of the script; its processes are forked, so that they need not import anything."""
    workers.START_METHOD = "fork"
    try:
        cli.run(partial(_solve, out))
    except SystemExit as ended:
        return int(ended.code or 0)
    return DONE


def _solve(out: Path) -> int:
    if meanfield.run_sweep(_sweep(), out, WORKERS).attrs["status"] == "complete":
        return DONE
    print("interrupted", file=sys.stderr)
    return FAILED


@cache
def _undisturbed() -> tuple[dict[str, bytes], float]:
    """The numbers of the sweep, and the seconds that it takes."""
    meanfield.solve_density(_sweep().problem)  # so that forks find it compiled
    with folder() as place:
        started = time.perf_counter()
        run_child(Starting(_run, place / "out"))
        return _bits(meanfield.load(place / "out" / "sweep.nc")), time.perf_counter() - started


def _bits(result: xr.Dataset) -> dict[str, bytes]:
    return {str(name): variable.values.tobytes() for name, variable in result.variables.items()}


def _look(out: Path) -> tuple[str, str]:
    """Content of the folder of a sweep, and its faults."""
    points = sorted(out.glob("points/*.nc"))
    try:
        complete = [meanfield.load(point).attrs["status"] == "complete" for point in points]
        merged = (out / "sweep.nc").is_file() and bool(meanfield.load(out / "sweep.nc").sizes)
    except meanfield.InputError as error:
        return "DAMAGED", str(error)
    wrong = "" if all(complete) else "a point that is not complete"
    return f"{'all' if len(points) == POINTS else 'a part of'} points{', and the merged file' if merged else ''}", wrong


def _goes_on(out: Path) -> str:
    """Wait for workers of a killed sweep to end, and run it again; what is wrong with the result."""
    there = {point.name: point.stat().st_mtime_ns for point in out.glob("points/*.nc")}
    ended = _run_when_free(out)
    if ended.code != DONE:
        return f"again: code {ended.code}, {ended.err[-300:]}"
    if any((out / "points" / name).stat().st_mtime_ns != when for name, when in there.items()):
        return "a point was computed twice"
    if list(out.glob(".*")) or list(out.glob("points/.*")):
        return f"left behind: {[*out.glob('.*'), *out.glob('points/.*')]}"
    return "" if _bits(meanfield.load(out / "sweep.nc")) == _undisturbed()[0] else "other numbers"


def _run_when_free(out: Path) -> Ended:
    """Forked workers share the lock of the process that began them, and end a moment after it."""
    while True:
        ended = run_child(Starting(_run, out))
        if "is in use by" not in ended.err:
            return ended
        time.sleep(0.01)


def _disturbed(title: str, begin: Callable[[Path, float], Ended], judge: Callable[[Ended], str]) -> Fault:
    """A sweep to which something happens at some moment, and the same once more."""

    @fault(title)
    def trials(tally: Tally, subject: str, count: int, random: np.random.Generator) -> None:
        for moment in random.uniform(0, _undisturbed()[1], count):
            with folder() as place:
                ended = begin(place / "out", moment)
                kinds, wrong = _look(place / "out")
                outcome = kinds if ended.code < 0 else f"code {ended.code}, {kinds}"
                tally.add(outcome, wrong, judge(ended), _goes_on(place / "out"), inside=ended.writing > 0)

    return trials


kill_sweep = _disturbed("kill -9", lambda out, moment: run_child(Starting(_run, out), at=moment), lambda ended: "")
"""Of the process that began it."""

interrupt_sweep = _disturbed(
    "Ctrl-C",
    lambda out, moment: run_child(Starting(_run, out), moment, signal.SIGINT),
    lambda ended: one_line(ended.err, "interrupted") if ended.code else "",
)

kill_worker = _disturbed(
    "a worker killed",
    lambda out, moment: run_child(partial(_run_and_kill_a_worker, out, moment)),
    lambda ended: unless(ended.code == DONE, f"exit code {ended.code}: {ended.err[-300:]}"),
)
"""Kill -9 of one of the processes that do the work; the sweep is to end as if nothing had happened."""


def _run_and_kill_a_worker(out: Path, moment: float) -> int:
    def kill() -> None:
        time.sleep(moment)
        for worker in psutil.Process().children()[:1]:
            worker.kill()

    threading.Thread(target=kill, daemon=True).start()
    return _run(out)
