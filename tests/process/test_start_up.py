"""Answers to signals while a command starts, and after that."""

import signal

import pytest

from meanfield.process.start_up import start_up


def test_a_signal_that_is_ignored_is_ignored_during_imports():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with start_up():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_after_imports_is_an_exception_again():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with start_up():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
