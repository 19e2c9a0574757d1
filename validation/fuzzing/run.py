"""Fuzz problem files and result files: ten thousand of each, with fixed seeds. `make fuzz` runs it.

Prints what was made and what became of it. Ends with code 1 where something that must hold of any file did not; the
file is then kept in data/runs/fuzzing.
"""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import xarray as xr
from hypothesis import HealthCheck, Phase, given, seed, settings

import meanfield
from validation.fuzzing.judge_problems import SCRIPTS, judge, judge_script
from validation.fuzzing.judge_results import RUNS, damaged, judge_comparison, judge_damaged, judge_made_up, made_up
from validation.fuzzing.problem_texts import as_text, mangled_file, spoilt_tables
from validation.fuzzing.trap import in_child

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "data" / "runs" / "fuzzing"

SECONDS = 120
"""For one file; compiling takes most of it where a method is used for the first time."""

TOGETHER = 100
"""Files that one child process judges, unless one of them ends it."""

Case = tuple[str, bytes]
Judge = Callable[[bytes, int, Path], str]


def spoilt_tables_as_files(count: int) -> Iterator[Case]:
    """From hypothesis; the same ones in every run."""
    made: list[Case] = []

    @seed(0)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(spoilt_tables())
    def make(data: dict[str, object]) -> None:
        made.append(("spoilt table", as_text(data)))

    make()
    yield from made[:count]


def judge_problem(text: bytes, number: int, folder: Path) -> str:
    outcome = judge(text, folder, everything=number % 50 == 0)
    if outcome == "refused" and number % 20 == 0:
        judge_script(SCRIPTS[number // 20 % len(SCRIPTS)], folder)
    return outcome.partition(" by ")[0]


def judge_bytes(spoilt: bytes, number: int, folder: Path) -> str:
    random = Random(number)
    sealed = folder / random.choice(RUNS).name
    if not sealed.exists():
        meanfield.save(xr.load_dataset(next(path for path in RUNS if path.name == sealed.name)), sealed)
    whole = sealed.read_bytes()
    return judge_damaged(damaged(whole, random)[1], whole, folder / "run.nc")


def judge_dataset(nothing: bytes, number: int, folder: Path) -> str:
    outcome = judge_made_up(made_up(Random(number))[2], folder / "run.nc")
    if outcome != "not writable" and number % 20 == 0:
        judge_comparison(folder / "run.nc")
    return outcome


def fuzz(cases: list[Case], judge_case: Judge, name: str) -> tuple[Counter[tuple[str, str]], int]:
    """Outcomes by kind of case, and how many broke something."""
    outcomes: Counter[tuple[str, str]] = Counter()
    broken, first = 0, 0
    with tempfile.TemporaryDirectory() as top:
        shutil.copytree(ROOT / "data" / "reference", Path(top) / "reference")  # named by an example
        folder, record = Path(top) / "problems", Path(top) / "record"
        folder.mkdir()
        while first < len(cases):
            record.write_text("")
            batch = range(first, min(first + TOGETHER, len(cases)))

            def work(batch: range = batch) -> None:
                for number in batch:
                    signal.alarm(SECONDS)  # ends the process
                    outcome = judge_case(cases[number][1], number, folder)
                    with record.open("a") as file:
                        file.write(outcome + "\n")

            fault = in_child(work, SECONDS * len(batch))
            done = record.read_text().splitlines()
            outcomes.update(zip((cases[n][0] for n in batch), done, strict=False))
            first += len(done)
            if fault:
                keep(name, first, cases[first], folder, fault)
                outcomes[cases[first][0], "BROKEN"] += 1
                broken, first = broken + 1, first + 1
    return outcomes, broken


def keep(name: str, number: int, case: Case, folder: Path, fault: str) -> None:
    """Save what broke something, and say so."""
    KEPT.mkdir(parents=True, exist_ok=True)
    written = folder / "run.nc"
    target = KEPT / f"{name}-{number}{'.toml' if case[1] else '.nc'}"
    if case[1]:
        target.write_bytes(case[1])
    elif written.exists():
        shutil.copy(written, target)
    print(f"{name} {number} ({case[0]}): {target}\n{fault}", file=sys.stderr)


def main(count: int) -> int:
    """Fuzz with so many files of each sort."""
    suites: dict[str, tuple[list[Case], Judge]] = {
        "problem": (
            [*spoilt_tables_as_files(count // 2), *(mangled_file(number) for number in range(count - count // 2))],
            judge_problem,
        ),
        "damaged result": ([("damaged", b"")] * (count // 2), judge_bytes),
        "made-up result": ([(made_up(Random(n))[1], b"") for n in range(count - count // 2)], judge_dataset),
    }
    faults = 0
    for name, (cases, judge_case) in suites.items():
        started = time.perf_counter()
        outcomes, broken = fuzz(cases, judge_case, name.replace(" ", "-"))
        faults += broken
        print(f"\n{name} files: {len(cases)} in {time.perf_counter() - started:.0f} s, {broken} broke something")
        for (kind, outcome), times in sorted(outcomes.items()):
            print(f"  {kind:<16} {outcome:<32} {times}")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
