"""What a command takes care of before it does anything else: Ctrl-C while it starts, and its standard streams.

What starts a command imports this module first, which therefore imports next to nothing itself.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType

INTACT = "what had been saved before is intact"
"""Message that earlier results are unharmed, as they are after every failure, because files are replaced as a whole."""

INTERRUPTED = f"interrupted; {INTACT}"
"""Last line of a run that Ctrl-C ended before it could save anything."""


@contextmanager
def start_up() -> Iterator[None]:
    """Context of slow imports: Ctrl-C and SIGTERM end the process at once, with one line.

    An exception might be swallowed by whatever code of whatever package is being run by an import, or come out of it as
    another one with a traceback; and there is nothing to save yet. A signal that is ignored stays ignored.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    taken = [number for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)]
    for number in taken:
        signal.signal(number, _end_at_once)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, handlers[number])


def _end_at_once(number: int, frame: FrameType | None) -> None:
    os.write(2, f"{INTERRUPTED}\n".encode())
    os._exit(1)  # meanfield.cli.FAILED, which may be what is being imported


STANDARD = {"stdin": "r", "stdout": "w", "stderr": "w"}
"""Modes of the streams, in the order of their file descriptors."""


def ensure_standard_streams() -> None:
    """Put the null device in place of streams that are closed, as behind `>&-`, and escape what an encoding lacks.

    Without their descriptors the next files that are opened would get these, and what a library prints would be written
    to a result.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < len(STANDARD):
        pass
    os.close(descriptor)
    for name, mode in STANDARD.items():
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # for the rest of the process
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print a line on standard error, if anybody reads it."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _send_nowhere(2)


def have_no_reader() -> bool:
    """Whether nobody reads standard output or error any more; the rest then goes nowhere, so that Python ends well."""
    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    gone = [descriptor for descriptor, event in poll.poll(0) if event & select.POLLERR]
    for descriptor in gone:
        _send_nowhere(descriptor)
    return bool(gone)


def _send_nowhere(descriptor: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
