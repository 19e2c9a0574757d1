"""Progress bars: shown on a terminal for work of more than a second, silent elsewhere."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import RLock
from typing import Any, TypeVar

from tqdm import tqdm

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

_HIDDEN = ContextVar("_HIDDEN", default=False)

_UPDATES_LEFT: ContextVar[list[int] | None] = ContextVar("_UPDATES_LEFT", default=None)
"""Number of updates of bars after which Ctrl-C comes, for tests; None if it does not."""


class _Bar(tqdm):  # type: ignore[misc]
    """Progress bar with a lock of its process alone.

    Forks share that of tqdm, and one that is killed while it holds it keeps it for ever: the next bar of any other
    would wait for it.
    """

    def update(self, n: float = 1) -> bool | None:
        """Advance the bar; see `interrupted_after`."""
        left = _UPDATES_LEFT.get()
        if left is not None:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        shown: bool | None = super().update(n)
        return shown


def _own_lock() -> None:
    _Bar.set_lock(RLock())


_own_lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own_lock)  # the one it inherits may be held by a thread that it has not


def progress_bar(total: float, label: str, unit: str = "output", done: int = 0) -> tqdm[None]:
    """Progress bar on standard error that appears after a second, and only on a terminal.

    Parameters
    ----------
    done : int
        Where it begins.
    """
    hidden = _HIDDEN.get() or None
    scaled = total >= 1e5  # larger totals are shown with k, M, G
    return _Bar(
        total=total, desc=label, unit=unit, delay=1.0, disable=hidden, leave=False, unit_scale=scaled, initial=done
    )


def counted(items: Sequence[T], label: str, unit: str) -> Iterator[T]:
    """The items one by one, with a bar that counts those that are done."""
    with progress_bar(len(items), label, unit) as bar:
        for item in items:
            yield item
            bar.update()


@contextmanager
def counted_calls(label: str) -> Iterator[Callable[[Function], Function]]:
    """Context with a bar of the calls of the functions that its decorator wraps, where nobody knows how many follow."""
    with progress_bar(math.inf, label, " evaluations") as bar:

        def counting(function: Function) -> Function:
            @wraps(function)
            def call(*arguments: Any) -> Any:
                found = function(*arguments)
                bar.update()
                return found

            return call  # type: ignore[return-value]

        yield counting


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Context without bars in this thread: where many problems are solved at once, one bar counts them all."""
    token = _HIDDEN.set(True)
    try:
        yield
    finally:
        _HIDDEN.reset(token)


@contextmanager
def interrupted_after(updates: int) -> Iterator[None]:
    """Context in which Ctrl-C comes after some updates of progress bars in this thread, for tests."""
    token = _UPDATES_LEFT.set([updates])
    try:
        yield
    finally:
        _UPDATES_LEFT.reset(token)
