"""What starting takes: nothing heavy is imported before it is needed, and Ctrl-C meanwhile ends with one line."""

import json
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


IMPORTED = """
import contextlib, io, json, runpy, sys

heavy, calls, found = json.loads(sys.argv[1]), json.loads(sys.argv[2]), {}
for words in calls:
    sys.argv = words
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
        if words[0].endswith(".py"):
            runpy.run_path(words[0], run_name="__main__")
        else:
            from meanfield.commands.entry import main
            main()
    found[" ".join(words)] = len(out.getvalue()), [name for name in heavy if name in sys.modules]
print(json.dumps(found))
"""
"""For each call how much it prints, and the heavy packages that there are after it."""


def imported(*calls):
    """What a fresh process says that makes these calls one after the other."""
    command = [sys.executable, "-c", IMPORTED, json.dumps(HEAVY), json.dumps(calls)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(ended.stdout)


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = f"import sys, meanfield; print(*set({HEAVY}) & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ended.stdout == "\n"
    calls = [["meanfield", *words.split()] for words in ("--help", "density", "example", "example digits")]
    assert {name: there for name, (_, there) in imported(*calls).items()} == {" ".join(words): [] for words in calls}


def test_commands_and_scripts_explain_themselves_without_anything_heavy():
    calls = [*(["meanfield", name, "--help"] for name in NAMES), *([str(path), "--help"] for path in SCRIPTS.values())]
    found = imported(*calls)
    assert {name: there for name, (_, there) in found.items()} == {" ".join(words): [] for words in calls}
    assert min(printed for printed, _ in found.values()) > 100


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
    if name == "keys":
        return ["contrastive"]
    method = ["density"] if name == "solve" else []
    return [*method, "any", *([] if name in ("cite", "validate") else ["-o", "out.nc"])]


ENDED = 1, "interrupted; what had been saved before is intact\n"


@pytest.mark.parametrize(
    ("name", "number"),
    # Commands begin their imports in places of their own, in which both signals are one exception.
    [*((name, signal.SIGINT) for name in SOLVERS), (SOLVERS[0], signal.SIGTERM)],
)
def test_ctrl_c_while_a_command_imports_ends_with_one_line(stuck, name, number):
    assert interrupted(number, stuck, "-c", COMMAND, name, *arguments_of(name)) == ENDED


# Scripts are lines of one form (tests/commands/test_dispatch.py runs each of them): two of them stand for all.
@pytest.mark.parametrize(
    ("name", "script"),
    [
        pytest.param(name, script, id=name, marks=[pytest.mark.slow] * (name not in ("density", "compare")))
        for name, script in SCRIPTS.items()
    ],
)
def test_ctrl_c_while_a_script_imports_ends_with_one_line(stuck, name, script):
    assert interrupted(signal.SIGINT, stuck, str(script), *arguments_of(name)) == ENDED
