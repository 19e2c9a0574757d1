"""Children of this process, forked so that nothing is imported anew, which get signals at chosen moments."""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

from meanfield import cli
from meanfield.process import atomic_files

HANGING_AFTER = 120.0
"""Time in seconds after which a child counts as hanging."""

BEGUN, WRITING = 0, 1
"""Indices of the bytes that a child shares with its parent: whether it has begun, and how many files it is writing."""


class Starting(partial[int]):
    """Work that has begun when a script has: before, signals meet what no script is answerable for."""


class Ended(NamedTuple):
    """How a child ended: its exit code (or minus a signal), what it said, and how many files it was writing."""

    code: int
    out: str
    err: str
    writing: int


def run_child(
    work: Callable[[], int | None], at: float | None = None, number: int = signal.SIGKILL, again: float | None = None
) -> Ended:
    """Run `work` in a child.

    Parameters
    ----------
    work : callable
        Its return value is the exit code (None: 0).
    at : float, optional
        Seconds after it began at which it gets a signal.
    number : int
        Which one.
    again : float, optional
        Seconds after which it gets the same signal once more.
    """
    shared = mmap.mmap(-1, 2)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            _be_child(work, shared, out, err)
        while not shared[BEGUN]:
            time.sleep(1e-5)
        writing = 0
        if at is not None:
            time.sleep(at)
            writing = shared[WRITING]
            os.kill(child, number)
            if again is not None:
                time.sleep(again)
                os.kill(child, number)
        code = _wait(child)
        out.seek(0)
        err.seek(0)
        if code is None:
            raise TimeoutError(f"a child hangs for {HANGING_AFTER} s: {err.read()}")
        return Ended(code, out.read(), err.read(), writing)


def _wait(child: int) -> int | None:
    """The exit code, or None if it hangs."""
    deadline = time.monotonic() + HANGING_AFTER
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(5e-4)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _be_child(work: Callable[[], int | None], shared: mmap.mmap, out: IO[str], err: IO[str]) -> None:
    """Run the work of the child, which never returns into the code of the parent."""
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    atomic_files._workplace = _counted(shared)
    cli._outcome, cli.run = _announced(shared), _shielded(cli.run)
    faulthandler.dump_traceback_later(0.9 * HANGING_AFTER, file=err)
    code = 1
    try:
        shared[BEGUN] = not isinstance(work, Starting)
        code = work() or 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)


def _announced(shared: mmap.mmap) -> Callable[[Callable[[], int]], int]:
    """Say that a script has begun: its answers to signals are in place."""
    outcome = cli._outcome

    def announced(main: Callable[[], int]) -> int:
        shared[BEGUN] = 1
        return outcome(main)

    return announced


def _shielded(run: Callable[[Callable[[], int]], NoReturn]) -> Callable[[Callable[[], int]], None]:
    """What follows the end of a script is not Python's end, but ours."""

    def shielded(main: Callable[[], int]) -> None:
        try:
            run(main)
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)

    return shielded


def _counted(shared: mmap.mmap) -> Callable[[Path], contextlib.AbstractContextManager[Path]]:
    """Count the files that are being written, from before there is one until it has its place."""
    workplace = atomic_files._workplace

    @contextmanager
    def counted(path: Path) -> Iterator[Path]:
        shared[WRITING] += 1
        try:
            with workplace(path) as folder:
                yield folder
        finally:
            shared[WRITING] -= 1

    return counted
