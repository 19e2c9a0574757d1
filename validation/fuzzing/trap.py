"""A child process in which nothing that a result names may be imported, opened or run."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any

from meanfield.results.provenance import provenance

TRAP = "fuzzing_trap"
"""Name of a module, and part of the name of a file, that results name and nothing may open."""

FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen")


class Sprung(BaseException):
    """Something was done that a result may not cause; no `except Exception` of a reader hides it."""


@cache
def set_trap() -> None:
    """Watch this process for the rest of its life: audit hooks cannot be removed."""
    provenance(0.0)  # asks git once

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        named = event in ("import", "open", "pickle.find_class") and TRAP in str(arguments[0])
        if named or event in FORBIDDEN:
            raise Sprung(f"{event} {arguments!r:.300}")

    sys.addaudithook(watch)


def in_child(work: Callable[[], None], seconds: float) -> str:
    """Fault in a fork of this process, empty without one."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def watched() -> None:
        try:
            work()
        except BaseException:
            sender.send(traceback.format_exc())
        else:
            sender.send("")

    child = context.Process(target=watched)
    child.start()
    sender.close()
    answer = f"no answer within {seconds:g} s"
    try:
        if receiver.poll(seconds):
            answer = receiver.recv()
    except EOFError:
        child.join()
        answer = f"the process crashed (exit code {child.exitcode})"
        if child.exitcode == -signal.SIGPROF:
            answer = "more processor time than it may take"
    child.kill()
    child.join()
    return answer
