"""Standard streams of a command: there are three, whatever was closed before it began, and they take any text."""

from __future__ import annotations

import os
import select
import sys
from io import TextIOWrapper

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
