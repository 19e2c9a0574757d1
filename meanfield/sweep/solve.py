"""Work at the points of a sweep, done by a worker: solve problems one by one, on one thread, and reduce the results.

Problems come as plain data and results go back as plain arrays, so that it does not matter whether the worker is a
process beside ours or on a machine with another disk.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.ingredients.objects import lent, unpacked
from meanfield.problems.base import Problem
from meanfield.problems.file import problem_from
from meanfield.problems.known_families import family_of
from meanfield.process.cores import at_most
from meanfield.process.progress import no_progress_bars
from meanfield.results.made_by import MadeBy, changes, made_by
from meanfield.results.provenance import provenance
from meanfield.sweep.origins import of_reductions
from meanfield.sweep.reductions import Variables, own_reductions, reduced

COMPLETE = "complete"


@dataclass(frozen=True)
class Work:
    """Work at every point of a sweep.

    Parameters
    ----------
    methods : dict
        Names of the reductions to keep, by method.
    taken : tuple of str
        Names that variables cannot have.
    folder, problem_folder : Path or None
        Where modules of reductions, and files and modules of problems, are looked for.
    by_value : bytes
        Functions that workers cannot import; see `meanfield.sweep.origins`.
    """

    methods: Mapping[str, Sequence[str]]
    taken: tuple[str, ...]
    folder: Path | None = None
    problem_folder: Path | None = None
    by_value: bytes = b""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a point.

    Parameters
    ----------
    name : str
        Name of the point.
    status : str
        `complete` or `failed: why`.
    variables : dict
        Variables that the reductions keep; none of methods that failed.
    provenance : str
        JSON text.
    made_by : mapping, optional
        What made it; see `meanfield.sweep.origins`. None where it is not known.
    lasting : bool
        Whether the same would happen again: not if it was the machine that failed.
    seconds : float
        Time that the point took.
    """

    name: str
    status: str
    variables: Variables = field(default_factory=dict)
    provenance: str = ""
    made_by: MadeBy | None = None
    lasting: bool = True
    seconds: float = 0.0


def checked(outcome: Outcome, origin: MadeBy) -> Outcome:
    """Outcome of a worker, or a failure that is none of the point where it had other functions, files or versions."""
    if outcome.made_by is None:  # no worker lived long enough to say
        return replace(outcome, made_by=origin)
    others = changes(origin, outcome.made_by, ("here", "there"))
    if not others:
        return outcome
    text = f"failed: its worker has other functions, files or versions: {'; '.join(others)}"
    return Outcome(outcome.name, text, lasting=False)


def solve_points(work: Work, problems: Sequence[tuple[str, dict[str, Any]]]) -> list[Outcome]:
    """Solve problems, given by name and data; no failure of one of them reaches the others."""
    with at_most(1), no_progress_bars(), lent(unpacked(work.by_value) if work.by_value else {}):
        return [_solve_point(work, name, data) for name, data in problems]


def _solve_point(work: Work, name: str, data: dict[str, Any]) -> Outcome:
    started = time.perf_counter()
    variables: Variables = {}
    faults = []
    try:
        problem = problem_from(data, work.problem_folder)
        own = own_reductions(work.methods, work.folder)
        origin = made_by(problem) | of_reductions(work.methods, own)
    except (InputError, ValueError) as error:  # it was one where the sweep was begun
        return Outcome(name, f"failed: this worker cannot make the problem: {error}", lasting=False)
    for method, names in work.methods.items():
        prefix = f"{method}_" if len(work.methods) > 1 else ""
        try:
            dataset = _solve(problem, method)
            status = dataset.attrs["status"]
            if status == "interrupted":
                raise KeyboardInterrupt
            if status != COMPLETE:
                faults.append((method, status.removeprefix("failed: ")))
                continue
            # with the name of the method where there are several; coordinates belong to all methods
            found = reduced(dataset, names, own)
            kept = {name if each.dims == (name,) else prefix + name: each for name, each in found.items()}
            _check_fit(kept, variables, work.taken)
            variables |= kept
        except (OSError, MemoryError) as error:
            what = str(error) or type(error).__name__
            return Outcome(name, f"failed: {method}: {what}", lasting=False)
        except InputError as error:
            faults.append((method, str(error)))
        except Exception as error:  # whatever a user's function raises, or a solver that has met its limits
            faults.append((method, f"{type(error).__name__}: {error}"))
    seconds = time.perf_counter() - started
    status = "failed: " + "; ".join(f"{method}: {fault}" for method, fault in faults) if faults else COMPLETE
    return Outcome(name, status, variables, provenance(seconds), origin, seconds=seconds)


def _solve(problem: Problem, name: str) -> xr.Dataset:
    """Result of a method on one thread."""
    method = family_of(problem).method(name)
    found: xr.Dataset = method(problem, **({"workers": 1} if method.threads else {}))
    return found


def _check_fit(kept: Variables, others: Variables, taken: Sequence[str]) -> None:
    """Refuse variables that do not fit into one Dataset with the axes and with those of other methods."""
    sizes = {dim: size for variable in others.values() for dim, size in variable.sizes.items()}
    for name, variable in kept.items():
        for word in (name, *map(str, variable.dims)):
            if word in taken:
                raise ValueError(f"'{word}' is the name of an axis of the sweep too; give the axis another name")
        for dim, size in variable.sizes.items():
            if sizes.setdefault(dim, size) != size:
                raise ValueError(f"'{name}' has {size} entries along '{dim}', and others have {sizes[dim]}; keep less")
        if name in others and not np.array_equal(variable.values, others[name].values):
            raise ValueError(f"'{name}' is not that of another method; keep it of one of them")
