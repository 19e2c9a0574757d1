"""Every end of a call in a child: value, traceback, signal, too much processor time, waiting for ever."""

import os
import signal
import time
from multiprocessing.connection import wait

import pytest

from validation import bounded_calls as module
from validation.bounded_calls import HANGS, TIME_LIMIT, bounded_calls


def work(what):
    if what == "raise":
        raise ValueError("this one")
    if what == "end":
        os.kill(os.getpid(), signal.SIGTERM)
    if what == "leave":
        os._exit(3)
    while what == "compute":
        pass
    if what == "wait":
        time.sleep(60.0)
    return what.upper()


@pytest.fixture
def cores():
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


def test_values_and_faults(cores):
    found = {end.argument: end for end in bounded_calls(work, ["a", "raise", "compute", "end", "leave", "b"], 1, cores)}
    assert {name: end.value for name, end in found.items() if not end.fault} == {"a": "A", "b": "B"}
    assert found["raise"].fault.startswith("Traceback")
    assert "ValueError: this one" in found["raise"].fault
    assert found["compute"].fault == TIME_LIMIT
    assert found["end"].fault == "ended by SIGTERM"
    assert found["leave"].fault == "ended by exit code 3"


def test_a_child_that_waits_is_given_up(cores, monkeypatch):
    monkeypatch.setattr(module, "WALL_TIME", 0.3)
    monkeypatch.setattr(module, "wait", lambda running, timeout: wait(running, 0.1 * timeout))
    began = time.monotonic()
    (found,) = bounded_calls(work, ["wait"], 1, cores)
    assert found.fault == HANGS
    assert time.monotonic() - began < 30.0


def test_a_child_has_one_core(cores):
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system binds no process to a core")
    (found,) = bounded_calls(lambda _: sorted(os.sched_getaffinity(0)), [0], 10, cores[:1])
    assert found.value == cores[:1]
