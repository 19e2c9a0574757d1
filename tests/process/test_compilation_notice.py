"""The line that says that inner loops are being compiled."""

import sys
from types import SimpleNamespace

import pytest
from numba.core.event import Event, EventStatus

from meanfield.process.compilation_notice import CompilationNotice


def kernel():
    """What is compiled."""


def begin():
    return Event("numba:compile", EventStatus.START, {"dispatcher": SimpleNamespace(py_func=kernel)})


def end():
    return Event("numba:compile", EventStatus.END)


@pytest.fixture
def said(monkeypatch, capsys):
    """What a process on a terminal says while it compiles; events come with the time at which they happen."""

    def listen(*events, terminal=True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
        now = []
        notice = CompilationNotice(lambda: now[-1])
        for time, event in events:
            now.append(time)
            notice.notify(event)
        return capsys.readouterr().err

    return listen


def test_a_short_compilation_says_nothing(said):
    assert said((0.0, begin()), (1.0, begin()), (1.1, end()), (1.5, end())) == ""


def test_a_long_compilation_is_announced_once(said):
    text = said((0.0, begin()), (3.0, begin()), (4.0, end()), (5.0, begin()), (6.0, end()), (7.0, end()))
    assert text.count("\n") == 1
    assert text.startswith("compiling kernel of tests.process.test_compilation_notice and other inner loops")


def test_only_time_spent_compiling_counts(said):
    assert said((0.0, begin()), (1.0, end()), (100.0, begin()), (100.5, begin()), (100.6, end()), (100.7, end())) == ""
    assert said((0.0, begin()), (1.9, end()), (100.0, begin()), (100.2, begin()), (100.6, end()), (100.7, end())) != ""


def test_nothing_is_said_elsewhere_than_on_a_terminal(said):
    assert said((0.0, begin()), (3.0, begin()), (4.0, end()), (7.0, end()), terminal=False) == ""
