"""A study: numbers, a figure, and statements that the numbers decide.

A study is a module with a docstring that says what is claimed, and `STUDY = Study(...)`. `python -m validation NAME`
writes its figure beside it and its numbers, with the statements, to a folder in data/runs; `make figures` runs those on
figures.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import ModuleType

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
    folder : Path, optional
        Where the numbers go: by default to `FOLDER` of the package, or to `NUMBERS` if it has none.
    seeds : int
        Number of seeds, where `simulate` takes one: `--seeds` changes it, and the numbers of others are kept.
    """

    theory: Callable[[], xr.Dataset]
    judge: Callable[[xr.Dataset], list[Statement]]
    draw: Callable[[xr.Dataset], Figure]
    simulate: Callable[..., xr.Dataset] | None = None
    must_hold: bool = False
    folder: Path | None = None
    seeds: int = 0

    def numbers(self) -> xr.Dataset:
        """Theory and SGD in one Dataset."""
        theory = self.theory()
        if self.simulate is None:
            return theory
        simulated = self.simulate(self.seeds) if self.seeds else self.simulate()
        return xr.merge([theory, simulated], join="outer", compat="no_conflicts")


def run_study(module: ModuleType, arguments: Sequence[str]) -> None:
    """Compute, judge, draw and save the study of a module, with the arguments behind its name."""
    study: Study = module.STUDY
    command = ArgumentParser(
        prog=f"python -m {module.__name__.replace('.', ' ', 1)}",
        description=module.__doc__,
        formatter_class=RawDescriptionHelpFormatter,
    )
    if study.seeds:
        command.add_argument("--seeds", type=at_least(2, "seeds"), default=study.seeds, metavar="SEEDS")
    chosen = replace(study, **vars(command.parse_args(arguments)))
    folder = study.folder or getattr(sys.modules[str(module.__package__)], "FOLDER", NUMBERS)
    run(lambda: _run(chosen, Path(str(module.__file__)), folder))


def _run(study: Study, script: Path, folder: Path) -> int:
    started, name = time.perf_counter(), script.stem
    numbers = study.numbers()
    statements = study.judge(numbers)
    numbers.attrs |= {
        "Conventions": "CF-1.11",
        "title": name.replace("_", " "),
        "statements": json.dumps([asdict(statement) for statement in statements]),
        "provenance": provenance(time.perf_counter() - started),
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_figure(study.draw(numbers), script.with_suffix(".png"))
    save(numbers, folder / f"{name}.nc")
    print("\n".join(f"{name}: {statement}" for statement in statements))
    return DONE if all(statement.holds for statement in statements) or not study.must_hold else FAILED
