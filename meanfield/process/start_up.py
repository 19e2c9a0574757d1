"""Ctrl-C while a command starts: one line, and the end of the process.

What starts a command imports this module first, which therefore imports next to nothing itself.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
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
