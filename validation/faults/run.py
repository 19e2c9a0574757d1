"""Kill, fill, corrupt and interrupt everything that writes a file, and count what comes of it.

Moments, places and limits are random with a fixed seed. As root it mounts small disks in memory for a while.

Writes docs/faults.md; ends with code 1 if anything was lost, unclear or could not go on.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from tqdm import tqdm

from meanfield.cli import DONE, FAILED, parser, run
from meanfield.results.provenance import describe_machine
from validation import ROOT
from validation.faults import damaged, elsewhere, full_disk, interrupts, kills, memory, read_only, sweeps
from validation.faults.scripts import LARGE_SCRIPTS, SCRIPTS
from validation.faults.sweeps import SWEEPS
from validation.faults.trials import Fault, Tally
from validation.faults.writers import FILMS, WRITERS
from validation.pages import markdown_table

SEED = 20261121
READERS = tuple(script for script in SCRIPTS if script.arguments[0].endswith(".nc"))
SGD = next(script for script in SCRIPTS if script.resumes)
PLAN: tuple[tuple[Fault, tuple[Any, ...], int], ...] = (
    (kills.kill_writer, (*WRITERS, *FILMS), 50),
    (kills.kill_script, SCRIPTS, 50),
    (sweeps.kill_sweep, SWEEPS, 50),
    (sweeps.kill_worker, SWEEPS, 10),
    (interrupts.ctrl_c, SCRIPTS, 20),
    (sweeps.interrupt_sweep, SWEEPS, 10),
    (interrupts.ctrl_c_twice, SCRIPTS, 5),
    (interrupts.terminate, SCRIPTS, 5),
    (interrupts.ctrl_c_of_a_process, SCRIPTS[1:2], 10),
    (full_disk.fill_disk, WRITERS, 20),
    (full_disk.limit_files, WRITERS, 10),
    (full_disk.fill_disk_of_script, SCRIPTS, 5),
    (full_disk.full_standard_output, SCRIPTS, 1),
    (read_only.read_only_disk, SCRIPTS, 1),
    (read_only.read_only_folder, SCRIPTS, 1),
    (read_only.folder_removed, SCRIPTS, 1),
    (read_only.replaced_by_folder, SCRIPTS, 1),
    (damaged.cut_short, READERS, 50),
    (damaged.overwritten, READERS, 50),
    (damaged.state_damaged, (SGD,), 50),
    (elsewhere.being_read, WRITERS, 5),
    (elsewhere.two_writers, WRITERS, 20),
    (elsewhere.being_written, READERS, 1),
    (elsewhere.same_command_twice, (SGD,), 10),
    (memory.too_little, LARGE_SCRIPTS, 10),
)
"""Plan of the trials: the fault, the writers, and the number of trials."""


def tallies() -> Iterator[Tally]:
    """All of the plan."""
    for i, (fault, subjects, count) in enumerate(tqdm(PLAN, disable=None, leave=False, desc="faults")):
        for j, subject in enumerate(subjects):
            yield fault(subject, count, np.random.default_rng([SEED, i, j]))


HEADER = "fault", "writer", "tried", "while writing", "what was there afterwards, and how often", "holds"


def page(found: list[Tally], seconds: float) -> str:
    """The table, for people."""
    rows = [
        (tally.fault, tally.writer, tally.tried or tally.note, tally.inside or "", _outcomes(tally),
         "**no**" if tally.wrong else "yes" if tally.tried else "")
        for tally in found
    ]  # fmt: skip
    wrong = [f"- {tally.fault}, {tally.writer}: {what}" for tally in found for what in tally.wrong]
    rights, trials = "with" if os.geteuid() == 0 else "without", sum(tally.tried for tally in found)
    parts = [
        INTRODUCTION,
        f"Machine: {describe_machine()} {trials} trials, {rights} root, in {seconds / 60:.0f} minutes.",
        markdown_table(HEADER, rows),
        *(["## What did not hold", "\n".join(wrong)] if wrong else []),
        NOTES,
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _outcomes(tally: Tally) -> str:
    return "; ".join(f"{outcome}: {count}" for outcome, count in tally.outcomes.most_common() if count)


INTRODUCTION = """# Fault injection

Written by `make faults`, which tries it anew. Each trial begins with an earlier result in the place of the new one. It
holds if the earlier result or the new one is there afterwards, whole; if a script that fails says why in a line or two,
without a traceback, with exit code 1 or, for bad input, 2; if the same command then gives the same numbers as an
undisturbed run; and if no other file is left behind.

*While writing* counts trials in which the fault came while a file was being written: from the making of its temporary
folder to its renaming. Moments of signals are spread evenly over the time that the work takes, places of damage over
the file, room on a disk between none and enough."""

NOTES = """## What the words mean

- **kill -9** also stands for the kernel that kills a process when memory runs out, and for a cluster that does when
  time is up. What a killed writer leaves is a hidden folder `.NAME.0.part`, which the next writer of that name deletes.
  A simulation by SGD goes on from its checkpoint, with the same bits.
- **Ctrl-C**: `solve_density.py` and `simulate_sgd.py` save what they have computed ("first part of the new result").
  SIGTERM, which clusters send before they kill, is taken as Ctrl-C. While a command imports, in the first second or
  two, it ends at once, with one line; nothing is written by then.
- **full disk**: a disk in memory of which all but a part is taken. With *file size limit* files cannot grow beyond a
  size, which needs no root.
- **a worker killed**: one of two processes that solve the points of a sweep. In the kill of a sweep, it is the process
  that began it; points that are there are not computed again.
- **input overwritten**: up to 64 bytes at a random place.
- **state damaged**: `simulate_sgd.py` is killed, and one bit flips in one of the files that it would go on from.
- **the same run twice at once**: a checkpoint folder belongs to one process at a time; the second is refused. Of two
  writers of one file the last one wins, and readers see one or the other, whole.
- **out of memory**: limits of the address space, from nothing beyond what the process has to 64 MiB."""


def main() -> int:
    """Try, count, write the page."""
    parser(__doc__ or "").parse_args()
    started, found = time.perf_counter(), []
    for tally in tallies():
        found.append(tally)
        print(f"{tally.fault:<38}{tally.writer:<36}{tally.tried:>4}  {_outcomes(tally)}", flush=True)
        for what in tally.wrong:
            print(f"    {what}", file=sys.stderr)
    (ROOT / "docs/faults.md").write_text(page(found, time.perf_counter() - started))
    return FAILED if any(tally.wrong for tally in found) else DONE


if __name__ == "__main__":
    run(main)
