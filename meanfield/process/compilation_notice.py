"""One line on a terminal that says that inner loops are being compiled, which takes long once in an installation.

Imports numba, and is imported when something else has imported it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from multiprocessing import parent_process
from typing import Any

from numba.core import event

PATIENCE = 2.0
"""Time in seconds for which a process compiles without saying so."""


class CompilationNotice(event.Listener):  # type: ignore[misc]
    """Listener to numba that prints a line once a process has compiled for longer than `PATIENCE`.

    Parameters
    ----------
    clock : callable
        Time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._depth, self._started, self._spent = 0, 0.0, 0.0
        self._said = False

    def on_start(self, event: Any) -> None:
        """A function begins to compile, perhaps for another that is being compiled."""
        self._depth += 1
        if self._depth == 1:
            self._started = self._clock()
        elif not self._said and self._spent + self._clock() - self._started > PATIENCE:
            self._said = True
            self._say(event.data["dispatcher"].py_func)

    def on_end(self, event: Any) -> None:
        """A function has been compiled."""
        self._depth -= 1
        if self._depth == 0:
            self._spent += self._clock() - self._started

    @staticmethod
    def _say(function: Any) -> None:
        """Print the line, on a terminal and in the process that a person has started."""
        if sys.stderr.isatty() and parent_process() is None:
            text = (
                f"compiling {function.__name__} of {function.__module__} and other inner loops for this processor: up "
            )
            print(f"{text}to a minute, once; the next run finds them on disk", file=sys.stderr, flush=True)


def announce_compilation() -> None:
    """Listen to numba for as long as the process lives."""
    event.register("numba:compile", CompilationNotice())  # type: ignore[no-untyped-call]
