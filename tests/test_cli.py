"""How scripts end when something goes wrong: an exit code and a message."""

import os
import signal
import subprocess
import sys

import pytest

from meanfield import cli


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError(28, "No space left on device", "out.nc"),
            "failed: [Errno 28] No space left on device: 'out.nc'; what",
        ),
        (BrokenPipeError(32, "Broken pipe"), "failed: [Errno 32] Broken pipe; what"),  # of another one than the output
        (MemoryError(), "failed: out of memory; ask for less, or use a machine with more; what had been saved before"),
    ],
)
def test_faults_of_the_machine_end_with_code_1_and_one_message(error, message, capsys):
    def fail():
        raise error

    with pytest.raises(SystemExit) as ended:
        cli.run(fail)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(message)


def _with_cause(error, cause):
    error.__cause__ = cause
    return error


NUMBA = _with_cause(SystemError("numba"), KeyboardInterrupt())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), NUMBA, _with_cause(SystemError("again"), NUMBA)])
def test_ctrl_c_ends_with_code_1_and_one_message(error, capsys):
    def interrupted():
        raise error

    with pytest.raises(SystemExit) as ended:
        cli.run(interrupted)
    assert ended.value.code == 1
    assert capsys.readouterr().err == "interrupted; what had been saved before is intact\n"


def test_sigterm_is_taken_as_ctrl_c_while_a_script_runs(capsys):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        cli.run(lambda: signal.raise_signal(signal.SIGTERM) or 0)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("interrupted")
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["example", "sparse_prior"], ["--help"]])
def test_a_reader_that_stops_ends_a_command_without_a_word(arguments, unbuffered):
    """As `| head` does. Where nothing waits to be written, argparse has dropped what it could not write."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-c", "from meanfield.commands.entry import main; main()", *arguments]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(writing)
    assert ended.stderr == b""
    assert ended.returncode == cli.NO_READER or (unbuffered and arguments == ["--help"])
