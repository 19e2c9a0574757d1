"""Inputs and states that are cut short or changed: refused with one line, without a crash, with no file left open."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from meanfield.cli import BAD_INPUT, DONE
from validation.faults.children import run_child
from validation.faults.scripts import Script, stage
from validation.faults.trials import Tally, folder, one_line

BLOCK = 64
"""Bytes that are overwritten at most."""


def cut_short(script: Script, count: int, random: np.random.Generator) -> Tally:
    """The first input ends anywhere."""
    tally = Tally("input cut short", f"`{script.name}.py`")
    for _ in range(count):
        with folder() as place:
            _trial(tally, script, place, lambda whole: whole[: random.integers(len(whole))], must_fail=True)
    return tally


def overwritten(script: Script, count: int, random: np.random.Generator) -> Tally:
    """A block of it anywhere holds other bytes."""
    tally = Tally("input overwritten", f"`{script.name}.py`")

    def overwrite(whole: bytes) -> bytes:
        first, size = random.integers(len(whole)), random.integers(1, BLOCK)
        return (whole[:first] + random.bytes(size) + whole[first + size :])[: len(whole)]

    for _ in range(count):
        with folder() as place:
            _trial(tally, script, place, overwrite, must_fail=False)
    return tally


def state_damaged(script: Script, count: int, random: np.random.Generator) -> Tally:
    """A bit of what a killed run had saved flips, before the same command is given again."""
    tally, theirs = Tally("state damaged", f"`{script.name}.py`"), stage(script)
    for moment in random.uniform(0, theirs.duration, count):
        with folder() as place:
            theirs.set_up(place)
            run_child(script.work(place), at=moment)
            files = [path for path in sorted(place.glob("*.checkpoint/*")) if path.is_file() and path.stat().st_size]
            if not files:
                tally.add("killed before there was any, or after its end")
                continue
            path = random.choice(np.array(files))
            _flip(path, random)
            ended = run_child(script.work(place))
            kinds, damage = theirs.found(place)
            # The new result is there already if the kill came between its saving and the end of the folder.
            refused = ended.code == BAD_INPUT and not one_line(ended.err, "delete the folder")
            gone_on = (ended.code, kinds) == (DONE, "new result")
            tally.add(
                f"code {ended.code}, {kinds}",
                damage,
                "" if refused or gone_on else f"{path.name}: {ended.code}, {kinds}, {ended.err}",
            )
    return tally


def _flip(path: Path, random: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    content[random.integers(len(content))] ^= 1 << int(random.integers(8))
    path.write_bytes(content)


def _trial(tally: Tally, script: Script, place: Path, damage: Callable[[bytes], bytes], must_fail: bool) -> None:
    theirs, path = stage(script), place / script.arguments[0]
    theirs.set_up(place)
    path.write_bytes(damage(path.read_bytes()))
    ended = run_child(partial(_with_open_files, script.work(place), path))
    kinds, _ = theirs.found(place)
    if ended.code == DONE and not must_fail:
        tally.add("not noticed by HDF5, or of no consequence")
        return
    tally.add(
        f"code {ended.code}, {kinds}",
        one_line(ended.err, path.name),
        "" if ended.code == BAD_INPUT else f"exit code {ended.code}",
        "" if kinds == "earlier result" else kinds,
        ended.out and f"left open: {ended.out}",
    )


def _with_open_files(work: Callable[[], int], path: Path) -> int:
    """Run a script, and say which inputs are open after it."""
    sys.stdout = io.StringIO()
    code = work()
    gc.collect()
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    still_open = [target for link in links if link.is_symlink() and str(path) in (target := os.readlink(link))]
    os.write(1, "".join(still_open).encode())
    return code
