"""The scripts as a person runs them, in a child, and whether their files are the earlier ones or the new ones."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, cached_property, partial
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

import meanfield
from meanfield.cli import DONE
from meanfield.ensembles import ensemble
from validation import ROOT
from validation.faults.children import Ended, Starting, run_child
from validation.faults.trials import Fault, Tally, folder, left_behind, names, unless
from validation.faults.writers import TEXT

SOLVERS = ROOT / "solvers"
SGD = TEXT.replace("dimension = 64", "dimension = 2500\nsnapshots = [0.0, 1.0]").replace("plain", "projected")
"""Problem with a simulation that takes long enough to be killed in."""

LARGE = (
    TEXT.replace("cells = 200", "cells = 20000\nsteps = 20")
    .replace("stop = 1.0", "stop = 0.0002")
    .replace("dimension = 64", "dimension = 200000\nsnapshots = [0.0, 0.0002]")
    .replace("plain", "projected")
)
"""Problem that takes tens of MB by either method."""

NO_DISK = "needs root, to mount a disk"
"""Note on trials that need a disk of their own."""

SAVE_EVERY = 0.01
"""Time in seconds between two states of this simulation."""


class Script(NamedTuple):
    """A script, its arguments in a folder that has the inputs, and what it writes there."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        return f"`{self.name}.py`"

    @property
    def resumes(self) -> bool:
        """Whether it keeps states to go on from, which take as much room as its result."""
        return self.name == "simulate_sgd"

    def work(self, folder: Path) -> Callable[[], int]:
        """Work that runs the script in a folder."""
        return Starting(_run, self, folder)


def _solver(name: str, *more: str) -> Script:
    problem = "sgd.toml" if name == "simulate_sgd" else "small.toml"
    outputs = ("out.nc", *more[1:])
    return Script(name, (problem, "-o", "out.nc", *more), outputs)


SCRIPTS = (
    _solver("solve_density"),
    _solver("solve_order_parameters"),
    _solver("simulate_sgd"),
    _solver("find_stationary_states"),
    _solver("analyse_dynamics", "--figure", "out.png"),
    Script("compare", ("one.nc", "two.nc", "-o", "out.nc", "--figure", "out.png"), ("out.nc", "out.png")),
    Script("report", ("one.nc", "-o", "out.html"), ("out.html",)),
)


LARGE_SCRIPTS = (
    Script("solve_density", ("large.toml", "-o", "out.nc"), ("out.nc",)),
    Script("simulate_sgd", ("large.toml", "-o", "out.nc"), ("out.nc",)),
)
"""Scripts on a problem that takes tens of MB."""


def _run(script: Script, folder: Path) -> int:
    os.chdir(folder)
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    path = str(SOLVERS / f"{script.name}.py")
    often = partial(meanfield.Checkpoint, save_every=SAVE_EVERY)
    with (
        mock.patch.object(sys, "argv", [path, *script.arguments]),
        mock.patch.object(meanfield, "Checkpoint", often),
        mock.patch.object(ensemble, "CALL_SECONDS", SAVE_EVERY / 2),
    ):
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0


class Stage:
    """The inputs of a script, what it writes, and what was there before.

    Parameters
    ----------
    script : Script
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self._folder = tempfile.TemporaryDirectory(prefix="meanfield-inputs-")
        self._inputs = Path(self._folder.name)
        self._write_inputs("0.06")
        self.old = self._outputs()
        self._write_inputs("0.05")
        self.new = self._outputs()
        self.size = sum(map(len, self.new.values()))
        """Number of bytes that the script writes at the end."""

    def _write_inputs(self, learning_rate: str) -> None:
        for name, text in {"small": TEXT, "sgd": SGD, "large": LARGE}.items():
            (self._inputs / f"{name}.toml").write_text(text.replace("0.05", learning_rate))
        if "one.nc" in self.script.arguments:
            problem = meanfield.load_problem(self._inputs / "small.toml")
            meanfield.save(meanfield.solve_density(problem), self._inputs / "one.nc")
            meanfield.save(meanfield.simulate_sgd(problem), self._inputs / "two.nc")

    def _outputs(self) -> dict[str, bytes]:
        """Run it in this process, so that children find everything compiled."""
        here = Path.cwd()
        with contextlib.redirect_stdout(io.StringIO()):
            code = _run(self.script, self._inputs)
        os.chdir(here)
        assert code == 0, f"{self.script.name} ends with code {code} where nothing is wrong"
        return {name: (self._inputs / name).read_bytes() for name in self.script.outputs}

    @cached_property
    def duration(self) -> float:
        """Seconds that it takes in a child."""
        return statistics.median(self._timed() for _ in range(3))

    def _timed(self) -> float:
        started = time.perf_counter()
        self.run(self._inputs)
        return time.perf_counter() - started

    def set_up(self, folder: Path) -> None:
        """Inputs, and the results of an earlier run of another problem."""
        shutil.copytree(self._inputs, folder, dirs_exist_ok=True)
        for name, content in self.old.items():
            (folder / name).write_bytes(content)

    def run(
        self, folder: Path, at: float | None = None, number: int = signal.SIGKILL, again: float | None = None
    ) -> Ended:
        """Run it there in a child, which may get signals as in `run_child`."""
        return run_child(self.script.work(folder), at, number, again)

    def run_again(self, folder: Path) -> tuple[Ended, str]:
        """Give the same command once more, and say what is wrong unless it ends with the new result."""
        ended = self.run(folder)
        kinds, _ = self.found(folder)
        right = (ended.code, kinds) == (DONE, "new result")
        return ended, unless(right, f"again: {ended.code}, {kinds}, {ended.err}")

    def found(self, folder: Path) -> tuple[str, str]:
        """Which results are in a folder, and what is wrong with them."""
        kinds = [self._kind(folder / name, name) for name in self.script.outputs]
        return " + ".join(dict.fromkeys(kinds)), "".join(kind for kind in kinds if kind.startswith("DAMAGED"))

    def _kind(self, path: Path, name: str) -> str:
        if not path.exists():
            return "DAMAGED: no file"
        content = path.read_bytes()
        if content == self.old[name]:
            return "earlier result"
        if name.endswith(".nc"):
            return self._kind_of_run(path, name)
        return "new result" if content == self.new[name] else f"DAMAGED: {name}"

    def _kind_of_run(self, path: Path, name: str) -> str:
        """Kind of a run whose files differ in when they were made."""
        try:
            result = meanfield.load(path)
        except meanfield.InputError as error:
            return f"DAMAGED: {error}"
        if result.attrs.get("status") == "interrupted":
            return "first part of the new result"
        with tempfile.NamedTemporaryFile(suffix=".nc") as file:
            file.write(self.new[name])
            file.flush()
            expected = meanfield.load(file.name)
        return "new result" if result.drop_attrs().equals(expected.drop_attrs()) else "DAMAGED: other numbers"

    def left(self, folder: Path) -> str:
        """Files in a folder that should not be there; empty if there are none."""
        return left_behind(folder, *names(self._inputs))


@cache
def stage(script: Script) -> Stage:
    """The stage of a script; made once."""
    return Stage(script)


Trial = Callable[[Tally, Stage, Path, np.random.Generator], None]
Place = Callable[[], AbstractContextManager[Path | None]]


def on_scripts(title: str, place: Place = folder) -> Callable[[Trial], Fault]:
    """Make a fault of one trial on a script, in a place of its own with inputs and an earlier result."""

    def made(trial: Trial) -> Fault:
        def trials(tally: Tally, script: Script, count: int, random: np.random.Generator) -> None:
            theirs = stage(script)
            for _ in range(count):
                with place() as there:
                    if there is None:
                        tally.note = NO_DISK
                        return
                    theirs.set_up(there)
                    trial(tally, theirs, there, random)

        return Fault(title, trials)

    return made
