"""The faults of `make faults`, a few times each; as often as there, in the slow suite.

Children are forks of this process. Whatever the moment of a signal, nothing may be wrong, so that there are no false
alarms: a test that fails once has found something.
"""

import os

import numpy as np
import pytest

from meanfield.process.atomic_files import save_text
from validation.faults import (
    damaged,
    elsewhere,
    full_disk,
    interrupts,
    kills,
    memory,
    read_only,
    scripts,
    writers,
)
from validation.faults.run import PLAN

SCRIPT = {script.name: script for script in scripts.SCRIPTS}
COMPARE = scripts.Script("compare", ("one.nc", "two.nc", "-o", "out.nc"), ("out.nc",))
TEXT = writers.Writer("`save_text`", "out.txt", lambda path, version: save_text(f"{version}\n" * 10_000, path))
SAVE, COMPRESSED, PIECES, PNG, PDF, STATE, PAGE, GIF = writers.WRITERS
FEW = [
    # Figures, animations and compressed files are written by the same lines as others here, pages by those of any text.
    *[(kills.kill_writer, writer, 1) for writer in (SAVE, PIECES, STATE, TEXT)],
    # Whole runs and sweeps are killed, and go on, in tests/ensembles/test_run.py and tests/sweep/test_run.py.
    (interrupts.ctrl_c, SCRIPT["solve_density"], 1),
    (interrupts.terminate, SCRIPT["solve_order_parameters"], 1),
    (full_disk.limit_files, SAVE, 2),
    (full_disk.fill_disk, SAVE, 1),
    (full_disk.fill_disk_of_script, SCRIPT["simulate_sgd"], 1),
    (full_disk.full_standard_output, SCRIPT["solve_density"], 1),
    (read_only.read_only_disk, SCRIPT["solve_density"], 1),
    (read_only.read_only_folder, SCRIPT["simulate_sgd"], 1),
    (read_only.folder_removed, SCRIPT["solve_density"], 1),
    (read_only.replaced_by_folder, SCRIPT["solve_density"], 1),
    # Damaged inputs and states are refused in tests/validation/fuzzing/test_files.py and test_execution.py.
    pytest.param((damaged.cut_short, COMPARE, 1), marks=pytest.mark.slow),
    pytest.param((damaged.state_damaged, SCRIPT["simulate_sgd"], 1), marks=pytest.mark.slow),
    (elsewhere.being_read, SAVE, 1),
    (elsewhere.two_writers, SAVE, 1),
    (elsewhere.being_written, COMPARE, 1),
    (elsewhere.same_command_twice, SCRIPT["simulate_sgd"], 1),
]


def _name(case):
    fault, subject, _ = case
    return f"{fault.title}, {subject}"


def lose_nothing(case, seed=7):
    fault, subject, count = case
    tally = fault(subject, count, np.random.default_rng(seed))
    if tally.note:
        pytest.skip(tally.note)
    assert tally.tried == count
    assert tally.wrong == []


@pytest.mark.parametrize("case", FEW, ids=_name)
def test_nothing_is_lost(case):
    lose_nothing(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [(f, subject, n) for f, subjects, n in PLAN for subject in subjects], ids=_name)
def test_nothing_is_lost_often(case):
    lose_nothing(case)


# What is said and left by one that is out of memory is guarded by tests/test_cli.py.
@pytest.mark.slow
def test_nothing_is_lost_where_memory_is_too_little():
    """This seed leaves 7 MB, which is too little; 20 MB, as most others leave, are enough."""
    lose_nothing((memory.too_little, scripts.LARGE_SCRIPTS[0], 1), seed=30)


def test_a_writer_that_is_not_atomic_is_found_out():
    """The trials themselves: a file that is written in place is damaged by a kill."""

    def write(path, version):
        with path.open("wb") as file:
            for _ in range(200):
                file.write(bytes([version]) * 10_000)
                file.flush()
                os.sched_yield()

    tally = kills.kill_writer(writers.Writer("in place", "x", write), 4, np.random.default_rng(7))
    assert tally.outcomes["DAMAGED"] > 0
    assert tally.wrong
