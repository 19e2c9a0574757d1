"""Standard streams that are closed, have no reader, or an encoding of few letters."""

import os
import subprocess
import sys

import pytest

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
