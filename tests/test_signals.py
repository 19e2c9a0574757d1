"""A test does not depend on how it was started: Ctrl-C reaches it and its children in the background of a shell."""

import signal
import subprocess
import sys

import pytest

from tests import ROOT


def test_ctrl_c_reaches_this_process():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])
def test_signals_reach_children(number):
    code = "import signal, sys; sys.exit(signal.getsignal(int(sys.argv[1])) is signal.SIG_IGN)"
    assert subprocess.run([sys.executable, "-c", code, str(int(number))], check=False).returncode == 0


def test_signals_that_were_ignored_by_the_shell_reach_the_tests():
    """The tests above, in a pytest that is started with signals ignored."""
    tests = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "reach and not shell", __file__]
    ignoring = ["sh", "-c", 'trap "" INT TERM ALRM; exec "$@"', "sh", *tests]
    ended = subprocess.run(ignoring, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert "4 passed" in ended.stdout
