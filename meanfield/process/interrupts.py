"""Ctrl-C, or SIGTERM where it is taken as Ctrl-C: blocks that it must not end half-way, callbacks that swallow it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

SIGNALS = signal.SIGINT, signal.SIGTERM


@contextmanager
def uninterrupted() -> Iterator[Sequence[object]]:
    """Postpone Ctrl-C until the end of the block.

    For blocks that an exception at any place would leave with a lock taken, or with a thread that waits for another one
    for ever. They should be short, or look at the signals that wait, which the block is given, and end early.
    """
    if threading.current_thread() is not threading.main_thread():  # Ctrl-C is the main thread's business
        yield ()
        return
    handlers = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    waiting: list[tuple[int, FrameType | None]] = []
    try:
        for number in handlers:
            signal.signal(number, lambda *received: waiting.append(received))
        yield waiting
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for received in waiting[:1]:
            handlers[signal.Signals(received[0])](*received)


@contextmanager
def swallowed_interrupts_again() -> Iterator[None]:
    """Repeat a Ctrl-C that fell into a finalizer or a callback of a weak reference, from which Python lets nothing out.

    Python reports such an exception with a traceback and goes on, and the run would not end.
    """
    before = sys.unraisablehook

    def report(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            # Seconds: the callback, which takes microseconds, has returned then.
            again = threading.Timer(0.01, signal.raise_signal, (signal.SIGINT,))
            again.daemon = True  # a run that ends meanwhile needs no Ctrl-C
            again.start()
        else:
            before(unraisable)

    sys.unraisablehook = report
    try:
        yield
    finally:
        sys.unraisablehook = before
