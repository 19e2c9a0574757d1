"""Files and folders that another process uses at the same time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import netCDF4
import numpy as np
import xarray as xr

from meanfield.cli import BAD_INPUT, DONE
from validation.faults.children import run_child
from validation.faults.scripts import Script, stage
from validation.faults.trials import Tally, folder, names, one_line
from validation.faults.writers import Writer


def being_read(writer: Writer, count: int, random: np.random.Generator) -> Tally:
    """The earlier file is open, netCDF in xarray too, while it is replaced: its reader sees the earlier one."""
    tally = Tally("earlier file open for reading", writer.name)
    with folder() as place:
        path = place / writer.file
        for _ in range(count):
            writer.write(path, 0)
            before = path.read_bytes()
            with path.open("rb") as reader, _also_netcdf(path):
                ended = run_child(lambda: writer.write(path, 1))
                seen = reader.read()
            tally.add(
                f"code {ended.code}",
                "" if ended.code == DONE else ended.err,
                "" if seen == before else "the reader saw other bytes",
                "" if path.read_bytes() != before else "the file was not replaced",
                "" if names(place) == [path.name] else f"left behind: {names(place)}",
                inside=True,
            )
    return tally


@contextmanager
def _also_netcdf(path: Path) -> Iterator[None]:
    if path.suffix != ".nc":
        yield
        return
    with xr.open_dataset(path, engine="netcdf4") as run:
        yield
        run.load()


def being_written(script: Script, count: int, random: np.random.Generator) -> Tally:
    """An input is open for writing in another process, by plain netCDF4, which locks it."""
    tally, theirs = Tally("input open for writing", f"`{script.name}.py`"), stage(script)
    for _ in range(count):
        with folder() as place:
            theirs.set_up(place)
            opener = _forked(lambda place=place: _keep_open(place / script.arguments[0], place / "opened"))
            while not (place / "opened").exists():
                time.sleep(1e-3)
            ended = run_child(script.work(place))
            os.kill(opener, signal.SIGKILL)
            os.waitpid(opener, 0)
            kinds, damage = theirs.found(place)
            wrong = "" if ended.code == BAD_INPUT else f"exit code {ended.code}"
            tally.add(f"code {ended.code}, {kinds}", damage, wrong, one_line(ended.err, script.arguments[0]))
    return tally


def _keep_open(path: Path, sign: Path) -> None:
    with netCDF4.Dataset(path, "a"):
        sign.touch()
        time.sleep(600)


def two_writers(writer: Writer, count: int, random: np.random.Generator) -> Tally:
    """Two processes write to one path at once; whoever looks sees a whole file at any time."""
    tally = Tally("two writers at once", writer.name)
    with folder() as place:
        path = place / writer.file
        for version in (1, 0):
            writer.write(path, version)
        contents = {_bytes_of(writer, path, version) for version in (1, 0)}
        children = [_forked(lambda version=version: _write_often(writer, path, version, count)) for version in (1, 0)]
        running, looks, damaged = set(children), 0, 0
        while running:
            looks += 1
            damaged += path.read_bytes() not in contents
            running = {child for child in running if os.waitpid(child, os.WNOHANG) == (0, 0)}
        for _ in range(count):
            tally.add(f"whole at all {looks} looks meanwhile" if not damaged else "DAMAGED", inside=True)
        tally.wrong += [f"{damaged} of {looks} looks saw a damaged file"] * bool(damaged)
        tally.wrong += [f"left behind: {names(place)}"] * (names(place) != [path.name])
    return tally


def _bytes_of(writer: Writer, path: Path, version: int) -> bytes:
    writer.write(path, version)
    return path.read_bytes()


def _write_often(writer: Writer, path: Path, version: int, count: int) -> None:
    for _ in range(count):
        writer.write(path, version)


def _forked(work: Callable[[], object]) -> int:
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return child


def same_command_twice(script: Script, count: int, random: np.random.Generator) -> Tally:
    """A simulation is started while the same one runs; the second is refused, and does the first no harm."""
    tally, theirs = Tally("the same run twice at once", f"`{script.name}.py`"), stage(script)
    for moment in random.uniform(0, 0.5 * theirs.duration, count):
        with folder() as place:
            theirs.set_up(place)
            first = _forked(lambda place=place: run_child(script.work(place)))
            while not (place / "out.nc.checkpoint" / "lock").exists():
                time.sleep(1e-4)
            time.sleep(moment)
            second = run_child(script.work(place))
            os.waitpid(first, 0)
            kinds, damage = theirs.found(place)
            tally.add(
                f"second: code {second.code}; then {kinds}",
                damage,
                "" if second.code == DONE else one_line(second.err, "is in use by", "wait until"),
                "" if kinds == "new result" else kinds,
                theirs.left(place),
            )
    return tally
