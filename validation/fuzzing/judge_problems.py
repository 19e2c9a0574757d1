"""Judge of problem files: each file is refused with a reason, or every method solves it correctly.

Right is what costs little to know: results obey the schema and `meanfield.results.checks`, and probability is
conserved.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import meanfield
from meanfield.errors import InputError
from meanfield.families.contrastive.problem import Problem as Contrastive
from meanfield.families.hidden_manifold.problem import Problem as HiddenManifold
from meanfield.problems.base import Problem
from meanfield.problems.file import format_problem, load_problem, parse_problem, problem_from
from meanfield.problems.known_families import families, family_of
from meanfield.problems.messages import MOST_CHARACTERS, MOST_LINES, _field_names
from meanfield.results import checks
from meanfield.results.result import Result
from validation import ROOT

SOLVERS = ROOT / "solvers"
SCRIPTS = (*("solve_density", "solve_order_parameters", "simulate_sgd", "find_stationary_states", "analyse_dynamics"),)

PLACES = ("family", r"line \d+", "key", "character", "cannot be read")
KEYS = sorted({key for family in families() for part in family.parts for key in _field_names(part.problem_class)})
NAMES = re.compile(rf"\b({'|'.join([*KEYS, *PLACES])})\b")
"""Pattern of the names in messages about a refused file, which must have one: a key, or a place in the file."""

LONGEST_MESSAGE = (MOST_LINES + 1) * (MOST_CHARACTERS + 10)

QUICK_SETTINGS: dict[str, dict[str, Any]] = {
    "eulerian": {"cells": 48, "steps": 8, "feature_nodes": 5},
    "lagrangian": {"tolerance": 1e-2, "feature_nodes": 5},
}
"""Settings of each scheme of the density with which it is quick."""

SEARCHES = ("critical_points", "optimal_filters", "stationary")
"""Methods that look everywhere, which may take minutes."""

LOST = 1e-9
"""Largest loss of probability by rounding over the few steps of a tiny run."""


class BrokenError(AssertionError):
    """Something that must hold of any file does not."""


def judge(text: bytes, folder: Path, everything: bool = False) -> str:
    """Outcome of a file that is given as a problem file.

    Parameters
    ----------
    text : bytes
        The file.
    folder : Path
        Where it is written.
    everything : bool
        Whether states and dynamics are looked for as well, which takes seconds.

    Returns
    -------
    str
        `refused`, or `solved by` the methods that did not refuse it.

    Raises
    ------
    BrokenError
        If something that must hold does not.
    """
    path = folder / "problem.toml"
    path.write_bytes(text)
    with _no_warnings():
        try:
            problem = load_problem(path)
        except InputError as error:
            _check_message(str(error), path)
            return "refused"
        _check_round_trip(problem)
        return _judge_methods(tiny(problem), everything)


def _check_message(message: str, path: Path) -> None:
    told = message.removeprefix(f"{path}: ")
    if told == message or not NAMES.search(told) or len(message) > LONGEST_MESSAGE:
        raise BrokenError(f"the message does not say where the fault is, or is endless: {message[:300]}")


def _check_round_trip(problem: Problem) -> None:
    text = format_problem(problem)
    if parse_problem(text) != problem or format_problem(parse_problem(text)) != text:
        raise BrokenError("the text of the problem is another problem")


def tiny(problem: Problem) -> Problem:
    """Problem in sizes that every method is quick with."""
    data = problem.model_dump(exclude_none=True, mode="json")
    shorter = min(problem.time.stop, 1.0) / problem.time.stop
    for phase in data.get("phases", []):
        phase["stop"] *= shorter
    if isinstance(problem, HiddenManifold):
        data["time"] = {"stop": min(problem.time.stop, 1.0), "outputs": 3}
        data["order_parameters"] = {"tolerance": 1e-2}
        data["particles"] = {"method": problem.particles.method, "dimension": 24, "replicas": 2}
        return problem_from({"family": "hidden_manifold"} | data, Path())
    if not isinstance(problem, Contrastive):
        data["time"] |= {"stop": min(problem.time.stop, 1.0), "outputs": 3}
        data["training"]["batch_size"] = min(data["training"]["batch_size"], 16)
        data["particles"] |= {"replicas": 2}
        return problem_from({"family": family_of(problem).name} | data, Path())
    data["model"]["batch_size"] = min(problem.model.batch_size, 20)
    data["time"] = {"stop": min(problem.time.stop, 1.0), "outputs": 3}
    given_width = problem.density.half_width is not None
    # Half of the files each, and a file is always judged in the same way.
    scheme = "eulerian" if given_width or len(format_problem(problem)) % 2 else "lagrangian"
    data["density"] = {"scheme": scheme} | QUICK_SETTINGS[scheme]
    if given_width:
        data["density"]["half_width"] = problem.density.half_width
    kept = ("method", "seed", "record", "escape_overlap", "snapshot_precision")
    settings = {key: data["particles"][key] for key in kept if key in data["particles"]}
    data["particles"] = settings | {"dimension": max(12, len(problem.features) + 2), "replicas": 2}
    return problem_from(data, Path())


def _judge_methods(problem: Problem, everything: bool) -> str:
    methods = _methods_of(problem, everything)
    results = {}
    for name, solve in methods.items():
        try:
            results[name] = solve(problem)
        except InputError as error:
            if not str(error):
                raise BrokenError(f"{name}: refused without a reason") from error
    for name, result in results.items():
        _check_result(name, result)
    if not methods:
        return "not solved"
    return "solved by " + ", ".join(results) if results else "accepted, refused by all methods"


def _methods_of(problem: Problem, everything: bool) -> dict[str, Callable[[Any], xr.Dataset]]:
    """Methods that take a problem, without those that take long."""
    if isinstance(problem, HiddenManifold):
        named = ("order_parameters", "density", "particles", *(("fixed_points",) if everything else ()))
        return {name: partial(meanfield.solve, method=name) for name in named}
    if not isinstance(problem, Contrastive):
        named = tuple(name for name in family_of(problem).methods if everything or name not in SEARCHES)
        return {name: partial(meanfield.solve, method=name) for name in named}
    if len(problem.features) > 2:  # nodes of three features are many
        return {}
    methods: dict[str, Callable[[Any], xr.Dataset]] = {
        "order parameters": meanfield.solve_order_parameters,
        "density": meanfield.solve_density,
        "SGD": lambda problem: meanfield.simulate_sgd(problem, workers=1),
    }
    if problem.model.channels > 2 and problem.model.activation_functions.kinks:
        del methods["order parameters"]  # products of panels in three directions take minutes
    if everything:
        methods |= {"dynamics": meanfield.contrastive.analyse_dynamics}
    if everything and len(problem.features) == 1:  # for two a search may take minutes
        methods |= {"states": meanfield.find_stationary_states}
    return methods


def _check_result(name: str, result: xr.Dataset) -> None:
    try:
        checks.check(Result.of(result))
    except InputError as error:
        raise BrokenError(f"{name}: {error}") from error
    if "mass" in result and np.any(np.abs(result["mass"] - 1) > LOST):
        raise BrokenError(f"{name}: probability is not conserved: {result['mass'].values}")


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=RuntimeWarning, module="meanfield")
        yield


def run_script(name: str, *arguments: object) -> tuple[int, str]:
    """Exit code and messages of a script, run in this process.

    Raises
    ------
    BrokenError
        If it ends with anything but an exit code.
    """
    path, before = str(SOLVERS / f"{name}.py"), sys.argv
    out, err = io.StringIO(), io.StringIO()
    sys.argv = [path, *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        return int(ended.code or 0), err.getvalue()
    except BaseException as error:
        raise BrokenError(f"{name} ended with {error!r}") from error
    finally:
        sys.argv = before
    raise BrokenError(f"{name} ended without an exit code")


def judge_script(name: str, folder: Path) -> None:
    """A script must refuse the problem file in a folder that is refused, and leave nothing."""
    before = sorted(folder.iterdir())
    code, message = run_script(name, folder / "problem.toml", "-o", folder / "out.nc")
    if code != 2 or not message.startswith("error: ") or "Traceback" in message:
        raise BrokenError(f"{name}: exit code {code}: {message[:300]}")
    if sorted(folder.iterdir()) != before:
        raise BrokenError(f"{name} leaves {[path.name for path in folder.iterdir()]}")
