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
from validation.faults.scripts import Stage, on_scripts
from validation.faults.trials import Fault, Tally, one_line, unless

BLOCK = 64
"""Largest number of bytes that are overwritten."""


def _damaged(title: str, damage: Callable[[bytes, np.random.Generator], bytes], must_fail: bool) -> Fault:
    """The first input has other bytes."""

    @on_scripts(title)
    def trial(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
        path = place / theirs.script.arguments[0]
        path.write_bytes(damage(path.read_bytes(), random))
        ended = run_child(partial(_with_open_files, theirs.script.work(place), path))
        kinds, _ = theirs.found(place)
        if ended.code == DONE and not must_fail:
            tally.add("not noticed by HDF5, or of no consequence")
            return
        tally.add(
            f"code {ended.code}, {kinds}",
            one_line(ended.err, path.name),
            unless(ended.code == BAD_INPUT, f"exit code {ended.code}"),
            unless(kinds == "earlier result", kinds),
            ended.out and f"left open: {ended.out}",
        )

    return trial


def _cut(whole: bytes, random: np.random.Generator) -> bytes:
    return whole[: random.integers(len(whole))]


def _overwrite(whole: bytes, random: np.random.Generator) -> bytes:
    first, size = random.integers(len(whole)), random.integers(1, BLOCK)
    return (whole[:first] + random.bytes(size) + whole[first + size :])[: len(whole)]


cut_short = _damaged("input cut short", _cut, must_fail=True)
overwritten = _damaged("input overwritten", _overwrite, must_fail=False)


def _with_open_files(work: Callable[[], int], path: Path) -> int:
    """Run a script, and say which inputs are open after it."""
    sys.stdout = io.StringIO()
    code = work()
    gc.collect()
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    still_open = [target for link in links if link.is_symlink() and str(path) in (target := os.readlink(link))]
    os.write(1, "".join(still_open).encode())
    return code


@on_scripts("state damaged")
def state_damaged(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
    """A bit of what a killed run had saved flips, before the same command is given again."""
    theirs.run(place, at=random.uniform(0, theirs.duration))
    files = [path for path in sorted(place.glob("*.checkpoint/*")) if path.is_file() and path.stat().st_size]
    if not files:
        tally.add("killed before there was any, or after its end")
        return
    path = random.choice(np.array(files))
    _flip(path, random)
    ended = theirs.run(place)
    kinds, damage = theirs.found(place)
    # The new result is there already if the kill came between its saving and the end of the folder.
    refused = ended.code == BAD_INPUT and not one_line(ended.err, "--restart")
    gone_on = (ended.code, kinds) == (DONE, "new result")
    wrong = unless(refused or gone_on, f"{path.name}: {ended.code}, {kinds}, {ended.err}")
    tally.add(f"code {ended.code}, {kinds}", damage, wrong)


def _flip(path: Path, random: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    content[random.integers(len(content))] ^= 1 << int(random.integers(8))
    path.write_bytes(content)
