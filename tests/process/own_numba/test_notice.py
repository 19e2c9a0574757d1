"""The line that says that inner loops are being compiled."""

import sys

import pytest

from meanfield.process.own_numba.functions import CompilationNotice


def kernel():
    """What is compiled."""


BEGIN, END = "begin", "end"


@pytest.fixture
def said(monkeypatch, capsys):
    """What a process on a terminal says while it compiles; each step comes with the time at which it happens."""

    def listen(*steps, terminal=True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
        now, contexts = [], []
        notice = CompilationNotice(lambda: now[-1])
        for time, step in steps:
            now.append(time)
            if step == BEGIN:
                contexts.append(notice(kernel))
                contexts[-1].__enter__()
            else:
                contexts.pop().__exit__(None, None, None)
        return capsys.readouterr().err

    return listen


def test_a_short_compilation_says_nothing(said):
    assert said((0.0, BEGIN), (1.0, BEGIN), (1.1, END), (1.5, END)) == ""


def test_a_long_compilation_is_announced_once(said):
    text = said((0.0, BEGIN), (3.0, BEGIN), (4.0, END), (5.0, BEGIN), (6.0, END), (7.0, END))
    assert text.count("\n") == 1
    assert text.startswith("compiling kernel of tests.process.own_numba.test_notice and other inner loops")


def test_only_time_spent_compiling_counts(said):
    assert said((0.0, BEGIN), (1.0, END), (100.0, BEGIN), (100.5, BEGIN), (100.6, END), (100.7, END)) == ""
    assert said((0.0, BEGIN), (1.9, END), (100.0, BEGIN), (100.2, BEGIN), (100.6, END), (100.7, END)) != ""


def test_nothing_is_said_elsewhere_than_on_a_terminal(said):
    assert said((0.0, BEGIN), (3.0, BEGIN), (4.0, END), (7.0, END), terminal=False) == ""
