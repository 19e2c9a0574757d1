"""kill -9 at random moments: the earlier file or the new one is there, whole, and the same command goes on."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import numpy as np

from validation.faults.children import run_child
from validation.faults.scripts import Stage, on_scripts
from validation.faults.trials import Tally, fault, folder, left_behind, unless
from validation.faults.writers import Writer

FAULT = "kill -9"


@fault(FAULT)
def kill_writer(tally: Tally, writer: Writer, count: int, random: np.random.Generator) -> None:
    """Kill a process that writes version 1 over version 0, at moments spread over the time that it takes."""
    with folder() as place:
        path = place / writer.file
        contents = writer.contents(path)
        duration = statistics.median(_seconds(writer, path) for _ in range(3))
        for moment in random.uniform(0, duration, count):
            ended = run_child(lambda: _write_on_and_on(writer, path), at=moment)
            found = contents.get(path.read_bytes(), "DAMAGED")
            damage = unless(found != "DAMAGED", f"killed after {moment:.4f} s: the file is damaged")
            writer.write(path, 0)
            tally.add(found, damage, left_behind(place, writer.file), inside=ended.writing > 0)


def _seconds(writer: Writer, path: Path) -> float:
    """How long a child takes for version 0."""
    started = time.perf_counter()
    run_child(lambda: writer.write(path, 0))
    return time.perf_counter() - started


def _write_on_and_on(writer: Writer, path: Path) -> None:
    while True:
        for version in (1, 0):
            writer.write(path, version)


@on_scripts(FAULT)
def kill_script(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
    """Kill a script at moments spread over the time that it takes, and give the same command again."""
    ended = theirs.run(place, at=random.uniform(0, theirs.duration))
    kinds, damage = theirs.found(place)
    resumed, wrong = theirs.run_again(place)
    tally.add(kinds, damage, wrong, theirs.left(place), inside=ended.writing > 0)
    tally.outcomes["went on from a state"] += "going on" in resumed.err
