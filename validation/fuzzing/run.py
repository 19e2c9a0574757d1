"""Fuzz problem files and result files: ten thousand of each, with fixed seeds. `make fuzz` runs it on all cores.

Prints what was made and what became of it. Ends with code 1 where something that must hold of any file did not; the
file is then kept in data/runs/fuzzing. What becomes of a file does not depend on the number of cores.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import xarray as xr
from hypothesis import HealthCheck, Phase, given, seed, settings

import meanfield
from meanfield.cli import DONE, FAILED, at_least, parser, run
from meanfield.process.progress import progress_bar
from meanfield.results.provenance import describe_machine
from validation import OUTPUT, ROOT
from validation.fuzzing.judge_problems import SCRIPTS, judge, judge_script
from validation.fuzzing.judge_results import RUNS, damaged, judge_comparison, judge_damaged, judge_made_up, made_up
from validation.fuzzing.problem_texts import EXAMPLES, as_text, mangled_file, spoilt_tables
from validation.fuzzing.trap import in_child, set_trap
from validation.pages import markdown_table

KEPT_FILES = OUTPUT / "fuzzing"

SECONDS = 120
"""Processor time in seconds that one file may take: other work on the machine does not count."""

FILES_OF_A_PROCESS = 100
"""Number of files that one child process judges, unless one of them ends it."""

Case = tuple[str, bytes]
Judge = Callable[[bytes, int, Path], str]


@dataclass
class Findings:
    """Outcomes of fuzzing some files."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of files by their kind and outcome."""
    faults: list[str] = field(default_factory=list)
    """Files that broke something: the path of each, and the fault."""

    def add(self, other: Findings) -> None:
        """Take in what became of others."""
        self.outcomes += other.outcomes
        self.faults += other.faults


def spoilt_tables_as_files(count: int) -> Iterator[Case]:
    """From hypothesis; the same ones in every run of the same code, from which it takes constants."""
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
    set_trap()
    random = Random(number)
    intact = folder / random.choice(RUNS).name
    if not intact.exists():
        meanfield.save(xr.load_dataset(next(path for path in RUNS if path.name == intact.name)), intact)
    whole = intact.read_bytes()
    return judge_damaged(damaged(whole, random)[1], whole, folder / "run.nc")


def judge_dataset(nothing: bytes, number: int, folder: Path) -> str:
    set_trap()
    outcome = judge_made_up(made_up(Random(number))[2], folder / "run.nc")
    if outcome != "not writable" and number % 20 == 0:
        judge_comparison(folder / "run.nc")
    return outcome


def fuzz_batch(cases: list[Case], first: int, judge_case: Judge, name: str) -> Findings:
    """Outcomes of a few of the files, of which the first has this number."""
    findings, next_one = Findings(), 0
    with tempfile.TemporaryDirectory() as top:
        shutil.copytree(ROOT / "data" / "reference", Path(top) / "reference")  # named by an example
        folder, record = Path(top) / "problems", Path(top) / "record"
        folder.mkdir()
        while next_one < len(cases):
            record.write_text("")

            def work(start: int = next_one) -> None:
                for index in range(start, len(cases)):
                    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends the process
                    outcome = judge_case(cases[index][1], first + index, folder)
                    with record.open("a") as file:
                        file.write(outcome + "\n")

            fault = in_child(work, SECONDS * len(cases))
            done = record.read_text().splitlines()
            findings.outcomes.update(zip((kind for kind, _ in cases[next_one:]), done, strict=False))
            next_one += len(done)
            if fault:
                kept = keep(f"{name}-{first + next_one}", cases[next_one], folder)
                findings.faults.append(f"{kept} ({cases[next_one][0]}):\n{fault}")
                findings.outcomes[cases[next_one][0], "BROKEN"] += 1
                next_one += 1
    return findings


def keep(name: str, case: Case, folder: Path) -> Path:
    """Save what broke something, where there is a file of it."""
    KEPT_FILES.mkdir(parents=True, exist_ok=True)
    written, target = folder / "run.nc", KEPT_FILES / f"{name}{'.toml' if case[1] else '.nc'}"
    if case[1]:
        target.write_bytes(case[1])
    elif written.exists():
        shutil.copy(written, target)
    return target


def fuzz(pool: ProcessPoolExecutor, cases: list[Case], judge_case: Judge, name: str) -> Findings:
    """Outcomes of all files; what breaks something is shown when it is found."""
    findings = Findings()
    batches: dict[Future[Findings], int] = {}
    for first in range(0, len(cases), FILES_OF_A_PROCESS):
        some = cases[first : first + FILES_OF_A_PROCESS]
        batches[pool.submit(fuzz_batch, some, first, judge_case, name.replace(" ", "-"))] = len(some)
    with progress_bar(len(cases), name, unit="file") as bar:
        for batch in as_completed(batches):
            found = batch.result()
            for fault in found.faults:
                bar.write(fault, file=sys.stderr)
            findings.add(found)
            bar.update(batches[batch])
    return findings


def compile_methods() -> None:
    """Solve examples by everything: what is compiled then is not compiled in the time that files have."""
    with tempfile.TemporaryDirectory() as folder:
        for path in EXAMPLES:
            judge(path.read_bytes(), Path(folder), everything=True)


def suites(count: int) -> dict[str, tuple[list[Case], Judge]]:
    """Files of each sort, so many problem files and so many results."""
    tables, others = count // 2, count - count // 2
    return {
        "problem files": (
            [*spoilt_tables_as_files(tables), *(mangled_file(number) for number in range(others))],
            judge_problem,
        ),
        "damaged results": ([("damaged", b"")] * tables, judge_bytes),
        "made-up results": ([(made_up(Random(number))[1], b"") for number in range(others)], judge_dataset),
    }


def page(found: dict[str, Findings], seconds: float) -> str:
    """Page of the outcomes of all files, for people."""
    rows = [
        (name, kind, outcome, times)
        for name, findings in found.items()
        for (kind, outcome), times in sorted(findings.outcomes.items())
    ]
    faults = sum(len(findings.faults) for findings in found.values())
    total = sum(findings.outcomes.total() for findings in found.values())
    parts = [
        INTRODUCTION,
        f"Machine: {describe_machine()} {total} files in {seconds / 60:.0f} minutes; {faults} broke something.",
        markdown_table(("files", "what was done", "what became of them", "how many"), rows),
        NOTES,
    ]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """# Fuzzing

Written by `make fuzz`, which makes and tries them anew. Problem files are nearly right tables from hypothesis, a
quarter of them of several channels, with edge values, lost and misspelt keys (other tables once the code has changed,
from which hypothesis takes constants), and examples that were mangled, the same ones each time. A file is either
refused with one readable message that names a key or a place, or every method solves it, in a tiny size, to a sound
result that conserves probability; of some, scripts are run and must leave nothing. Results are files of every method
with damaged bytes, and Datasets that somebody changed and saved. A damaged file must be refused; a changed one is
refused, or comparison, figures and descriptions take it. There may be no traceback, no other number than was saved, and
nothing that a result names may be imported, opened or run: processes that read results are watched for that."""

NOTES = """- **bury**: very deep, very long, or very many. **encode**: another encoding.
- **solved**: by all methods that do not refuse it with a reason; **accepted, refused**: by each of them.
- **nothing changed**: the damage wrote the same bytes again, or none.
- **named**: the problem in a result takes a function from a module, or samples from a file, which none may open.
- **not writable**: netCDF cannot hold what was made up."""


def main() -> int:
    """Fuzz, count, write the page."""
    command = parser(__doc__ or "")
    command.add_argument("--count", type=at_least(2, "files"), default=10_000, help="problem files, and results")
    command.add_argument("--page", type=Path, metavar="OUT.md", help="where the counts go as a page of the site")
    arguments = command.parse_args()
    began, found = time.perf_counter(), {}
    compile_methods()
    # Processes of this pool fork others, which a copy of this one, with its threads, could not.
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        for name, (cases, judge_case) in suites(arguments.count).items():
            started = time.perf_counter()
            found[name] = fuzz(pool, cases, judge_case, name)
            seconds = time.perf_counter() - started
            print(f"\n{name}: {len(cases)} in {seconds:.0f} s, {len(found[name].faults)} broke something")
            for (kind, outcome), times in sorted(found[name].outcomes.items()):
                print(f"  {kind:<16} {outcome:<32} {times}", flush=True)
    if arguments.page:
        arguments.page.write_text(page(found, time.perf_counter() - began), encoding="utf-8")
    return FAILED if any(findings.faults for findings in found.values()) else DONE


if __name__ == "__main__":
    run(main)
