"""Ctrl-C and SIGTERM at random moments: exit code 1, a clear line, no traceback, nothing half-written."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np

from validation.faults.children import Ended, run_child
from validation.faults.scripts import SOLVERS, Script, stage
from validation.faults.trials import Tally, folder, names, one_line

LONGEST_GAP = 0.05
"""Seconds between two Ctrl-C's at most."""


def _interrupted(tally: Tally, script: Script, random: np.random.Generator, number: int, twice: bool) -> None:
    """One trial."""
    theirs, moment = stage(script), random.uniform(0, stage(script).duration)
    again = random.uniform(0, LONGEST_GAP) if twice else None
    with folder() as place:
        theirs.set_up(place)
        ended = run_child(script.work(place), moment, number, again)
        kinds, damage = theirs.found(place)
        left = [name for name in names(place) if name.startswith(".")]
        tally.add(
            f"code {ended.code}, {kinds}",
            damage,
            _message(ended, kinds),
            f"left behind: {left}" if left else "",
            inside=ended.writing > 0,
        )
        if kinds == "new result":
            return
        resumed = run_child(script.work(place))
        if (resumed.code, theirs.found(place)[0]) != (0, "new result"):
            tally.wrong.append(f"again: code {resumed.code}, {resumed.err}")


def _message(ended: Ended, kinds: str) -> str:
    """What is wrong with the code or the message; a script that was done by then says nothing."""
    if ended.code == 0 and kinds == "new result":
        return one_line(ended.err or "done")
    wrong = one_line(ended.err, "interrupted")
    return wrong if ended.code == 1 else f"exit code {ended.code}; {wrong}"


def ctrl_c(script: Script, count: int, random: np.random.Generator) -> Tally:
    """One Ctrl-C."""
    tally = Tally("Ctrl-C", f"`{script.name}.py`")
    for _ in range(count):
        _interrupted(tally, script, random, signal.SIGINT, twice=False)
    return tally


def ctrl_c_twice(script: Script, count: int, random: np.random.Generator) -> Tally:
    """A second one shortly after."""
    tally = Tally("Ctrl-C twice", f"`{script.name}.py`")
    for _ in range(count):
        _interrupted(tally, script, random, signal.SIGINT, twice=True)
    return tally


def terminate(script: Script, count: int, random: np.random.Generator) -> Tally:
    """What a cluster sends before it kills."""
    tally = Tally("SIGTERM", f"`{script.name}.py`")
    for _ in range(count):
        _interrupted(tally, script, random, signal.SIGTERM, twice=False)
    return tally


def ctrl_c_of_a_process(script: Script, count: int, random: np.random.Generator) -> Tally:
    """Ctrl-C from the start of Python to its end; a fork of this process has neither."""
    tally, theirs = Tally("Ctrl-C, from start to end of Python", f"`{script.name}.py`"), stage(script)
    duration = min(_duration(script) for _ in range(3))
    for moment in random.uniform(0, duration, count):
        with folder() as place:
            theirs.set_up(place)
            process = _process(script, str(place))
            time.sleep(moment)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
            kinds, damage = theirs.found(place)
            ended = Ended(process.returncode, "", err, 0)
            importing = "interrupted;" not in err and "in run\n" not in err
            if kinds == "earlier result" and importing:
                tally.add("ended by Python while it imported", damage)
            else:
                tally.add(f"code {process.returncode}, {kinds}", damage, _message(ended, kinds))
    return tally


def _duration(script: Script) -> float:
    with folder() as place:
        stage(script).set_up(place)
        started = time.perf_counter()
        _process(script, str(place)).communicate(timeout=60)
        return time.perf_counter() - started


def _process(script: Script, place: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SOLVERS / f"{script.name}.py"), *script.arguments]
    return subprocess.Popen(
        command,
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores Ctrl-C
    )
