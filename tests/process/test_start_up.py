"""Answers to signals while a command starts, and after that."""

import os
import signal
import subprocess
import sys

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


RUN = "from meanfield.commands.entry import main; main()"


def exit_code(code, *words, closed=(), environment=None, **streams):
    """Exit code of Python on some code, started with some of its standard streams closed."""

    def close():
        for descriptor in closed:
            os.close(descriptor)

    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, preexec_fn=close, env=environment, check=False, **streams).returncode


@pytest.mark.parametrize(
    ("words", "code", "closed"),
    [  # all of them, and each of them where something is written to it
        *((words, code, (0, 1, 2)) for words, code in ((["example", "sparse_prior"], 0), (["--help"], 0))),
        *((["exmaple"], 2, closed) for closed in ((0,), (2,), (0, 1, 2))),
        *((words, 0, (1,)) for words in (["example", "sparse_prior"], ["--help"])),
    ],
)
def test_commands_do_not_need_streams(words, code, closed):
    assert exit_code(RUN, *words, closed=closed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == code


def test_a_file_gets_no_descriptor_of_a_stream():
    """Else what a library prints would be written to a result."""
    opens = "from meanfield import cli; cli.run(lambda: 0 if open('/dev/null').fileno() > 2 else 1)"
    assert exit_code(opens, closed=(0, 1, 2)) == 0


@pytest.mark.parametrize("streams", [("stderr",), ("stdout", "stderr")])
def test_bad_input_is_bad_input_where_nobody_reads_that(streams):
    reading, writing = os.pipe()
    os.close(reading)
    assert exit_code(RUN, "exmaple", **dict.fromkeys(streams, writing)) == 2
    os.close(writing)


def test_letters_that_an_output_lacks_are_escaped():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    code = "from meanfield import cli; cli.run(lambda: print('q\\xb2') or 0)"
    assert exit_code(code, environment=environment, stdout=subprocess.DEVNULL) == 0
