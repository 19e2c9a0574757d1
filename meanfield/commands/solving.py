"""Common steps of the commands that solve a problem: arguments, checks of output paths, saving of what was computed."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.cli import DONE, FAILED
from meanfield.errors import InputError
from meanfield.process.start_up import start_up

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def add_problem(parser: ArgumentParser) -> None:
    """Add the argument that names a problem file."""
    parser.add_argument("problem", type=Path, metavar="PROBLEM.toml", help="problem file; data/problems has examples")


def add_problem_and_output(parser: ArgumentParser) -> None:
    """Add the arguments of every solver: a problem file and an output file."""
    add_problem(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.nc", help="netCDF file to write")


def add_restart(parser: ArgumentParser) -> None:
    """Add the argument of commands that go on with an unfinished run."""
    parser.add_argument("--restart", action="store_true", help="begin anew, and forget what an earlier run left there")


def solve_and_save(arguments: Namespace, method: str, **options: Any) -> int:
    """Solve a problem, save what was computed, and print where it is.

    A method that can go on with an interrupted run keeps its states in a folder beside the output meanwhile.

    Parameters
    ----------
    arguments : Namespace
        With the arguments of `add_problem_and_output`, and with a `restart` where methods resume.
    method : str
        A method of the family of the problem.
    **options
        What it takes besides the problem.

    Returns
    -------
    int
        The exit code.

    Raises
    ------
    InputError
        If the output cannot be written or is the problem file, the problem file is at fault, or the method does not
        apply to the problem.
    """
    with start_up():
        from meanfield import Checkpoint, load_problem, save, solve
        from meanfield.commands.outputs import check_outputs
        from meanfield.problems.family import resolve
        from meanfield.problems.known_families import family_of
    check_outputs([arguments.problem], [arguments.output])
    problem = load_problem(arguments.problem)
    declared = family_of(problem).method(method)
    if options.get("workers") is not None and not declared.threads:
        raise InputError(f"--workers: the method '{method}' takes no number of threads; leave it out")
    restart = getattr(arguments, "restart", False)
    if restart and not declared.resumes:
        raise InputError(f"--restart: the method '{method}' always begins anew; leave it out")
    with start_up():
        solver = resolve(declared.solve)
    for name in options.keys() - signature(solver).parameters.keys() - {"workers"}:
        raise InputError(f"--{name}: the method '{method}' of this problem's family does not take it; leave it out")
    if not declared.resumes:
        dataset = solve(problem, method, **options)
        save(dataset, arguments.output)
        return say_where(arguments, dataset, resumable=False)
    with Checkpoint(f"{arguments.output}.checkpoint", restart=restart) as checkpoint:
        begun = checkpoint.begun
        if begun and not restart:
            print(f"going on with the unfinished run in {checkpoint.folder}", file=sys.stderr)
        try:
            dataset = solve(problem, method, record=checkpoint, **options)
        except InputError:
            if not begun:
                checkpoint.remove()
            raise
        save(dataset, arguments.output)
        if dataset.attrs["status"] != "interrupted":
            checkpoint.remove()
    return say_where(arguments, dataset, resumable=True)


def save_and_draw(arguments: Namespace, dataset: xr.Dataset, plot: Callable[[xr.Dataset], Figure]) -> int:
    """Save an analysis, draw it where a figure is asked for, print its summary, and return the exit code.

    Parameters
    ----------
    arguments : Namespace
        With the arguments of `add_problem_and_output`, and `figure`.
    """
    from meanfield import save
    from meanfield.commands.outputs import write_figures
    from meanfield.results.figure_files import save_figure

    save(dataset, arguments.output)
    code, written = write_figures(arguments.output, {arguments.figure: lambda path: save_figure(plot(dataset), path)})
    print(summary_of(dataset), end="")
    print_warning(arguments, dataset)
    print(written)
    return code if dataset.attrs["status"] == "complete" else FAILED


def summary_of(dataset: xr.Dataset) -> str:
    """Summary of a result in a line or more; empty for kinds of results that declare none."""
    from meanfield.problems.family import resolve
    from meanfield.results.result import Result

    summary = Result.of(dataset).kind.summary
    return f"{resolve(summary)(dataset)}\n" if summary else ""


def print_warning(arguments: Namespace, dataset: xr.Dataset) -> None:
    """Print the warning of a result, if it has one."""
    from meanfield.results.schema import WARNING

    if dataset.attrs.get(WARNING):
        print(f"{arguments.problem}: warning: {dataset.attrs[WARNING]}", file=sys.stderr)


def say_where(arguments: Namespace, dataset: xr.Dataset, resumable: bool) -> int:
    """Print where a result is and what became of its run, and return the exit code."""
    status = dataset.attrs["status"]
    print_warning(arguments, dataset)
    if status == "complete":
        what = f"{dataset.attrs['method']}{_final_overlap(dataset)}"
        print(f"{summary_of(dataset)}wrote {arguments.output} ({what})")
        return DONE
    print(f"{arguments.problem}: {status}", file=sys.stderr)
    print(f"what was computed before that is in {arguments.output}", file=sys.stderr)
    if resumable and status == "interrupted":
        print("to go on, give the same command again", file=sys.stderr)
    return FAILED


def _final_overlap(dataset: xr.Dataset) -> str:
    """Final overlap of a result in time; empty for other results and for families without an overlap."""
    name = next((name for name in ("q_mean", "q") if name in dataset and "time" in dataset[name].dims), None)
    if name is None:
        return ""
    last = dataset[name].isel(time=-1)
    mean = last.mean("replica") if "replica" in last.dims else last
    values = ", ".join(f"{value:.4f}" for value in mean.values.flat)
    return f", q({float(dataset['time'][-1]):g}) = {values}"
