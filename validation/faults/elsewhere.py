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
from validation.faults.scripts import Stage, on_scripts
from validation.faults.trials import Tally, fault, folder, left_behind, one_line, unless
from validation.faults.writers import Writer


@fault("earlier file open for reading")
def being_read(tally: Tally, writer: Writer, count: int, random: np.random.Generator) -> None:
    """The earlier file is open, netCDF in xarray too, while it is replaced: its reader sees the earlier one."""
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
                unless(ended.code == DONE, ended.err),
                unless(seen == before, "the reader saw other bytes"),
                unless(path.read_bytes() != before, "the file was not replaced"),
                left_behind(place, path.name),
                inside=True,
            )


@contextmanager
def _also_netcdf(path: Path) -> Iterator[None]:
    if path.suffix != ".nc":
        yield
        return
    with xr.open_dataset(path, engine="netcdf4") as run:
        yield
        run.load()


@on_scripts("input open for writing")
def being_written(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
    """An input is open for writing in another process, by plain netCDF4, which locks it."""
    name = theirs.script.arguments[0]
    opener = _forked(lambda: _keep_open(place / name, place / "opened"))
    while not (place / "opened").exists():
        time.sleep(1e-3)
    ended = theirs.run(place)
    os.kill(opener, signal.SIGKILL)
    os.waitpid(opener, 0)
    kinds, damage = theirs.found(place)
    wrong = unless(ended.code == BAD_INPUT, f"exit code {ended.code}")
    tally.add(f"code {ended.code}, {kinds}", damage, wrong, one_line(ended.err, name))


def _keep_open(path: Path, sign: Path) -> None:
    with netCDF4.Dataset(path, "a"):
        sign.touch()
        time.sleep(600)


@fault("two writers at once")
def two_writers(tally: Tally, writer: Writer, count: int, random: np.random.Generator) -> None:
    """Two processes write to one path at once; whoever looks sees a whole file at any time."""
    with folder() as place:
        path = place / writer.file
        contents = writer.contents(path)
        children = [_forked(lambda version=version: _write_often(writer, path, version, count)) for version in (1, 0)]
        running, looks, damaged = set(children), 0, 0
        while running:
            looks += 1
            damaged += path.read_bytes() not in contents
            running = {child for child in running if os.waitpid(child, os.WNOHANG) == (0, 0)}
        for _ in range(count):
            tally.add(f"whole at all {looks} looks meanwhile" if not damaged else "DAMAGED", inside=True)
        wrong = unless(not damaged, f"{damaged} of {looks} looks saw a damaged file"), left_behind(place, path.name)
        tally.wrong += filter(None, wrong)


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


@on_scripts("the same run twice at once")
def same_command_twice(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
    """A simulation is started while the same one runs; the second is refused, and does the first no harm."""
    moment = random.uniform(0, 0.5 * theirs.duration)
    first = _forked(lambda: theirs.run(place))
    while not (place / "out.nc.checkpoint" / "lock").exists():
        time.sleep(1e-4)
    time.sleep(moment)
    second = theirs.run(place)
    os.waitpid(first, 0)
    kinds, damage = theirs.found(place)
    tally.add(
        f"second: code {second.code}; then {kinds}",
        damage,
        "" if second.code == DONE else one_line(second.err, "is in use by", "wait until"),
        unless(kinds == "new result", kinds),
        theirs.left(place),
    )
