"""What starting takes: nothing heavy is imported before it is needed, and Ctrl-C meanwhile ends with one line."""

import os
import signal
import subprocess
import sys
from functools import partial

import pytest

from tests import ROOT
from tests.commands.names import NAMES, SCRIPTS, SOLVERS

HEAVY = ("numba", "scipy", "xarray", "matplotlib", "fipy", "netCDF4", "pydantic", "pandas", "numpy")
"""Packages that take a noticeable part of a second to import."""

COMMAND = "from meanfield.commands.entry import main; main()"
"""What the installed command `meanfield` does."""


def imported(code):
    """Heavy packages that a fresh process imports."""
    whole = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", whole]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return set(HEAVY) & set(ended.stderr.split())


def called(*words):
    """Code that runs the installed command."""
    return f"sys.argv = {['meanfield', *words]}; {COMMAND}"


@pytest.mark.parametrize(
    "code", ["import meanfield", called("--help"), called("density"), called("example"), called("example", "digits")]
)
def test_nothing_heavy_is_imported_before_it_is_needed(code):
    assert imported(code) == set()


@pytest.mark.parametrize("name", NAMES)
def test_commands_explain_themselves_without_anything_heavy(name):
    assert imported(called(name, "--help")) == set()


@pytest.mark.parametrize(("name", "script"), SCRIPTS.items(), ids=SCRIPTS)
def test_scripts_explain_themselves_without_anything_heavy(name, script):
    path = str(script)
    code = f"import runpy; sys.argv = [{path!r}, '--help']; runpy.run_path({path!r}, run_name='__main__')"
    assert imported(code) == set()


STUCK = """
import sys, time
print("importing", flush=True)
try:
    time.sleep(60)
except BaseException:
    pass  # as some packages do around what they try to import
raise ImportError
"""


@pytest.fixture
def stuck(tmp_path):
    """The environment of processes that stay in the first heavy import."""
    for name in HEAVY:
        (tmp_path / f"{name}.py").write_text(STUCK)
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}


def interrupted(number, environment, *words):
    """Exit code and messages of a process that gets a signal during its first heavy import."""
    process = subprocess.Popen(
        [sys.executable, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A process that is started in the background of a shell inherits that Ctrl-C is ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout.readline() == "importing\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def arguments_of(name):
    """What each command needs to start."""
    method, output = ["density"] if name == "solve" else [], ["-o", "out.nc"] if name != "validate" else []
    return [*method, "any", *output]


ENDED = 1, "interrupted; what had been saved before is intact\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", SOLVERS)
def test_ctrl_c_while_a_command_imports_ends_with_one_line(stuck, name, number):
    assert interrupted(number, stuck, "-c", COMMAND, name, *arguments_of(name)) == ENDED


@pytest.mark.parametrize(("name", "script"), SCRIPTS.items(), ids=SCRIPTS)
def test_ctrl_c_while_a_script_imports_ends_with_one_line(stuck, name, script):
    assert interrupted(signal.SIGINT, stuck, str(script), *arguments_of(name)) == ENDED
