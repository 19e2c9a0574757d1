"""A study: numbers, a figure, and statements that the numbers decide.

A study is a module with a docstring that says what is claimed, and `STUDY = Study(...)`. Run by itself it writes its
figure beside it and its numbers, with the statements, to data/runs/figures; `make figures` runs those on figures.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.cli import DONE, FAILED, at_least, run
from meanfield.results.figure_files import save_figure
from meanfield.results.files import save
from meanfield.results.provenance import provenance
from validation import OUTPUT

NUMBERS = OUTPUT / "figures"


@dataclass(frozen=True)
class Statement:
    """A claim, and what the numbers say of it.

    Parameters
    ----------
    text : str
        The claim, in our words.
    source : str
        Where it is made: `paper, section IV.A`, `theory, section 7`, `ours`.
    holds : bool or None
        None where the numbers cannot tell.
    number : str
        What decides it.
    """

    text: str
    source: str
    holds: bool | None
    number: str

    def __post_init__(self) -> None:
        if self.holds is not None:
            object.__setattr__(self, "holds", bool(self.holds))  # numpy's truth has no JSON

    def __str__(self) -> str:
        decided = {True: "holds", False: "does not hold", None: "cannot tell"}[self.holds]
        return f"{decided}: {self.text} ({self.source}): {self.number}"


def within_errors(text: str, source: str, away: np.ndarray | xr.DataArray, allowed: float) -> Statement:
    """A claim that holds if numbers are off by fewer standard errors than are allowed."""
    worst = float(np.max(away))
    return Statement(text, source, worst < allowed, f"off by {worst:.1f} standard errors at most")


@dataclass(frozen=True)
class Study:
    """A figure and what it decides.

    Parameters
    ----------
    theory : callable
        The predicted numbers; quick and without chance, so that tests can judge them.
    judge : callable
        Numbers to statements; those on SGD only if its variables, whose names begin with `sgd`, are there.
    draw : callable
        Numbers of theory and SGD to the figure.
    simulate : callable, optional
        SGD that the theory is held against.
    must_hold : bool
        Whether a statement that does not hold is a failure: of the software, not of a paper.
    folder : Path
        Where the numbers go.
    seeds : int
        Number of seeds, where `simulate` takes one: `--seeds` changes it, and the numbers of others are kept.
    """

    theory: Callable[[], xr.Dataset]
    judge: Callable[[xr.Dataset], list[Statement]]
    draw: Callable[[xr.Dataset], Figure]
    simulate: Callable[..., xr.Dataset] | None = None
    must_hold: bool = False
    folder: Path = NUMBERS
    seeds: int = 0

    def numbers(self) -> xr.Dataset:
        """Theory and SGD in one Dataset."""
        theory = self.theory()
        if self.simulate is None:
            return theory
        simulated = self.simulate(self.seeds) if self.seeds else self.simulate()
        return xr.merge([theory, simulated], join="outer", compat="no_conflicts")


def run_study(study: Study, script: str) -> None:
    """Compute, judge, draw and save; what `python -m` with the name of the module does."""
    claim = sys.modules["__main__"].__doc__
    command = ArgumentParser(description=claim, formatter_class=RawDescriptionHelpFormatter)
    if study.seeds:
        command.add_argument("--seeds", type=at_least(2, "seeds"), default=study.seeds, metavar="SEEDS")
    chosen = replace(study, **vars(command.parse_args()))
    run(lambda: _run(chosen, Path(script)))


def _run(study: Study, script: Path) -> int:
    started, name = time.perf_counter(), script.stem
    numbers = study.numbers()
    statements = study.judge(numbers)
    numbers.attrs |= {
        "Conventions": "CF-1.11",
        "title": name.replace("_", " "),
        "statements": json.dumps([asdict(statement) for statement in statements]),
        "provenance": provenance(time.perf_counter() - started),
    }
    study.folder.mkdir(parents=True, exist_ok=True)
    save_figure(study.draw(numbers), script.with_suffix(".png"))
    save(numbers, study.folder / f"{name}.nc")
    print("\n".join(f"{name}: {statement}" for statement in statements))
    return DONE if all(statement.holds for statement in statements) or not study.must_hold else FAILED
