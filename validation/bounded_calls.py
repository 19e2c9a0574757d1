"""Calls in child processes, each on a core of its own with a limit on its processor time.

A limit on processor time, unlike one on wall time, does not depend on what else the machine does. Children are forks of
this process: what it has imported and compiled they need not. A call that crashes ends its child and nothing else.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

WALL_TIME = 20.0
"""Wall time in units of the limit on processor time after which a child counts as hanging."""

TIME_LIMIT, HANGS = "time limit", "hangs"
"""Faults of calls that took too much processor time, and of calls that wait for ever."""


@dataclass(frozen=True)
class Outcome(Generic[T, R]):
    """End of one call: its value, or its fault.

    Parameters
    ----------
    argument : object
    value : object
        What the function returned; None after a fault.
    fault : str
        `TIME_LIMIT`, `HANGS`, the signal that ended the child, or the traceback of an exception; otherwise empty.
    """

    argument: T
    value: R | None
    fault: str


@dataclass(frozen=True)
class _Call(Generic[T]):
    """Child at work."""

    argument: T
    child: ForkProcess
    core: int
    deadline: float


def bounded_calls(
    function: Callable[[T], R], arguments: Sequence[T], seconds: float, cores: Sequence[int]
) -> Iterator[Outcome[T, R]]:
    """Outcomes of a function at all arguments, in the order in which calls end.

    Parameters
    ----------
    function : callable
        Its values travel through a pipe: they must pickle.
    arguments : sequence
    seconds : float
        Limit on the processor time of a call.
    cores : sequence of int
        Cores of the children, one each.
    """
    context = multiprocessing.get_context("fork")
    waiting, free = list(reversed(arguments)), list(cores)
    running: dict[Connection, _Call[T]] = {}
    try:
        while waiting or running:
            while waiting and free:
                receiver, sender = context.Pipe(duplex=False)
                argument, core = waiting.pop(), free.pop()
                child = context.Process(target=_be_child, args=(function, argument, seconds, core, sender))
                child.start()
                sender.close()
                running[receiver] = _Call(argument, child, core, time.monotonic() + WALL_TIME * seconds)
            wait(running, timeout=1.0)
            for receiver in [*running]:
                call = running[receiver]
                if receiver.poll() or time.monotonic() > call.deadline:
                    del running[receiver]
                    free.append(call.core)
                    yield _outcome(call, receiver)
    finally:
        for call in running.values():
            call.child.kill()


def _outcome(call: _Call[T], receiver: Connection) -> Outcome[T, Any]:
    """Outcome that a child sent before it ended; one that sent nothing by now hangs."""
    value, fault = None, HANGS
    if receiver.poll():
        try:
            value, fault = receiver.recv()
        except EOFError:
            call.child.join()
            code = call.child.exitcode or 0
            fault = TIME_LIMIT if code == -signal.SIGXCPU else f"ended by {_name_of(code)}"
    call.child.kill()
    call.child.join()
    receiver.close()
    return Outcome(call.argument, value, fault)


def _name_of(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _be_child(function: Callable[[T], Any], argument: T, seconds: float, core: int, sender: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is answered by the parent
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    limit = math.ceil(seconds)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    try:
        answer = function(argument), ""
    except Exception:
        answer = None, traceback.format_exc()
    with contextlib.suppress(OSError):  # the parent may have given up
        sender.send(answer)
