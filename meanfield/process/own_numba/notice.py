"""One line on a terminal that says that inner loops are being compiled, which takes long once in an installation."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from typing import Any


class CompilationNotice:
    """Context of a compilation, perhaps within another; it says so once it has lasted longer than two seconds in all.

    Parameters
    ----------
    clock : callable
        Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._depth, self._started, self._spent = 0, 0.0, 0.0
        self._said = False

    @contextmanager
    def __call__(self, function: Any) -> Iterator[None]:
        """Context in which a function is compiled."""
        self._depth += 1
        if self._depth == 1:
            self._started = self._clock()
        elif not self._said and self._spent + self._clock() - self._started > 2.0:  # seconds without a word
            self._said = True
            _say(function)
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._spent += self._clock() - self._started


def _say(function: Any) -> None:
    """Print the line, on a terminal and in the process that a person has started."""
    if sys.stderr.isatty() and parent_process() is None:
        text = f"compiling {function.__name__} of {function.__module__} and other inner loops for this processor: up "
        print(f"{text}to a minute, once; the next run finds them on disk", file=sys.stderr, flush=True)


notice = CompilationNotice()
"""Notice of this process."""
