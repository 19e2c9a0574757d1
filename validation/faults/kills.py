"""kill -9 at random moments: the earlier file or the new one is there, whole, and the same command goes on."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import numpy as np

from validation.faults.children import run_child
from validation.faults.scripts import Script, stage
from validation.faults.trials import Tally, folder, names
from validation.faults.writers import Writer

FAULT = "kill -9"


def kill_writer(writer: Writer, count: int, random: np.random.Generator) -> Tally:
    """Kill a process that writes version 1 over version 0, at moments spread over the time that it takes."""
    tally = Tally(FAULT, writer.name)
    with folder() as place:
        path = place / writer.file
        contents = {_written(writer, path, version): f"version {version}" for version in (1, 0)}
        duration = statistics.median(_seconds(writer, path) for _ in range(3))
        for moment in random.uniform(0, duration, count):
            ended = run_child(lambda: _write_on_and_on(writer, path), at=moment)
            found = contents.get(path.read_bytes(), "DAMAGED")
            tally.add(
                {"version 0": "earlier file", "version 1": "new file"}.get(found, found),
                "" if found != "DAMAGED" else f"killed after {moment:.4f} s: the file is damaged",
                inside=ended.writing > 0,
            )
            writer.write(path, 0)
            if names(place) != [writer.file]:
                tally.wrong.append(f"after the next write there are {names(place)}")
    return tally


def _written(writer: Writer, path: Path, version: int) -> bytes:
    writer.write(path, version)
    return path.read_bytes()


def _seconds(writer: Writer, path: Path) -> float:
    """How long a child takes for version 0."""
    started = time.perf_counter()
    run_child(lambda: writer.write(path, 0))
    return time.perf_counter() - started


def _write_on_and_on(writer: Writer, path: Path) -> None:
    while True:
        for version in (1, 0):
            writer.write(path, version)


def kill_script(script: Script, count: int, random: np.random.Generator) -> Tally:
    """Kill a script at moments spread over the time that it takes, and give the same command again."""
    tally, theirs = Tally(FAULT, f"`{script.name}.py`"), stage(script)
    for moment in random.uniform(0, theirs.duration, count):
        with folder() as place:
            theirs.set_up(place)
            ended = run_child(script.work(place), at=moment)
            kinds, damage = theirs.found(place)
            resumed = run_child(script.work(place))
            again, _ = theirs.found(place)
            tally.add(
                kinds,
                damage,
                "" if (resumed.code, again) == (0, "new result") else f"again: {resumed.code}, {again}, {resumed.err}",
                theirs.left(place),
                inside=ended.writing > 0,
            )
            tally.outcomes["went on from a state"] += "going on" in resumed.err
    return tally
