"""Ctrl-C and SIGTERM at random moments: exit code 1, a clear line, no traceback, nothing half-written."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

from validation.faults.children import Ended
from validation.faults.scripts import SOLVERS, Script, Stage, on_scripts, stage
from validation.faults.trials import Fault, Tally, folder, names, one_line, unless

LONGEST_GAP = 0.05
"""Longest time in seconds between two Ctrl-C's."""


def _interrupted(title: str, number: int, twice: bool = False) -> Fault:
    """A signal, or two shortly after each other, and the same command again if there is no result."""

    @on_scripts(title)
    def trial(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
        moment = random.uniform(0, theirs.duration)
        ended = theirs.run(place, moment, number, random.uniform(0, LONGEST_GAP) if twice else None)
        kinds, damage = theirs.found(place)
        left = [name for name in names(place) if name.startswith(".")]
        tally.add(
            f"code {ended.code}, {kinds}",
            damage,
            _message(ended, kinds),
            unless(not left, f"left behind: {left}"),
            theirs.run_again(place)[1] if kinds != "new result" else "",
            inside=ended.writing > 0,
        )

    return trial


def _message(ended: Ended, kinds: str) -> str:
    """Fault of the exit code or the message; a script that was done by then says nothing."""
    if ended.code == 0 and kinds == "new result":
        return one_line(ended.err or "done")
    wrong = one_line(ended.err, "interrupted")
    return wrong if ended.code == 1 else f"exit code {ended.code}; {wrong}"


ctrl_c = _interrupted("Ctrl-C", signal.SIGINT)
ctrl_c_twice = _interrupted("Ctrl-C twice", signal.SIGINT, twice=True)
terminate = _interrupted("SIGTERM", signal.SIGTERM)
"""Signal that a cluster sends before it kills."""


@on_scripts("Ctrl-C, from start to end of Python")
def ctrl_c_of_a_process(tally: Tally, theirs: Stage, place: Path, random: np.random.Generator) -> None:
    """Ctrl-C from the start of Python to its end; a fork of this process has neither."""
    moment = random.uniform(0, _duration(theirs.script))
    process = _process(theirs.script, place)
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    kinds, damage = theirs.found(place)
    importing = "interrupted;" not in err and "in run\n" not in err
    if kinds == "earlier result" and importing:
        tally.add("ended by Python while it imported", damage)
    else:
        message = _message(Ended(process.returncode, "", err, 0), kinds)
        tally.add(f"code {process.returncode}, {kinds}", damage, message)


@cache
def _duration(script: Script) -> float:
    """Seconds from the start of Python to its end, at least."""
    return min(_timed(script) for _ in range(3))


def _timed(script: Script) -> float:
    with folder() as place:
        stage(script).set_up(place)
        started = time.perf_counter()
        _process(script, place).communicate(timeout=60)
        return time.perf_counter() - started


def _process(script: Script, place: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SOLVERS / f"{script.name}.py"), *script.arguments],
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores Ctrl-C
    )
