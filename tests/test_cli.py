"""How scripts end when something goes wrong: an exit code and a message."""

import signal

import pytest

from meanfield import cli


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError(28, "No space left on device", "out.nc"),
            "failed: [Errno 28] No space left on device: 'out.nc'; what",
        ),
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


def test_a_signal_that_is_ignored_is_ignored_during_imports():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with cli.start_up():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_after_imports_is_an_exception_again():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with cli.start_up():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
