"""What commands share that solve a problem: their arguments, checks of outputs, and saving what there is."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.cli import DONE, FAILED
from meanfield.errors import InputError
from meanfield.process.start_up import start_up

if TYPE_CHECKING:
    import xarray as xr

    from meanfield import Checkpoint


def add_problem(parser: ArgumentParser) -> None:
    """Add the argument that names a problem file."""
    parser.add_argument("problem", type=Path, metavar="PROBLEM.toml", help="problem file; data/problems has examples")


def add_problem_and_output(parser: ArgumentParser) -> None:
    """Add the arguments of every solver: a problem file and an output file."""
    add_problem(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.nc", help="netCDF file to write")


def checked_outputs(arguments: Namespace) -> list[Path]:
    """The files that `output` and `figure` name, before anything is computed.

    Raises
    ------
    InputError
        If one of them cannot be written, or the figure's ending names no format.
    """
    with start_up():
        from meanfield.results.files import check_figure_path, check_writable
    check_writable(arguments.output)
    if arguments.figure is None:
        return [arguments.output]
    check_figure_path(arguments.figure)
    return [arguments.output, arguments.figure]


def checked_problem(arguments: Namespace) -> Any:
    """The problem, once it is known that its result can be written.

    Raises
    ------
    InputError
        If the output cannot be written, or the problem file is at fault.
    """
    with start_up():
        from meanfield import load_problem
        from meanfield.results.files import check_writable
    check_writable(arguments.output)
    return load_problem(arguments.problem)


def checkpoint_beside(output: Path) -> Checkpoint:
    """The checkpoint of a run, in a folder beside the file of its result."""
    with start_up():
        from meanfield import Checkpoint
    return Checkpoint(Path(f"{output}.checkpoint"))


def solve_and_save(
    arguments: Namespace, problem: Any, solve: Callable[[Any], xr.Dataset], checkpoint: Checkpoint | None = None
) -> int:
    """Solve a problem, save what there is, and say where it is.

    Parameters
    ----------
    arguments : Namespace
        With the arguments of `add_problem_and_output`.
    problem : Problem
        From `checked_problem`.
    solve : callable
        A method: problem to Dataset.
    checkpoint : Checkpoint, optional
        Where the method keeps its states; it stays for an interrupted run to go on with.

    Returns
    -------
    int
        The exit code.
    """
    with start_up():
        from meanfield import save
    with checkpoint or nullcontext():
        begun = checkpoint is not None and checkpoint.begun
        if checkpoint is not None and begun:
            print(f"going on with the unfinished run in {checkpoint.folder}", file=sys.stderr)
        try:
            dataset = solve(problem)
        except InputError:
            if checkpoint is not None and not begun:
                checkpoint.remove()
            raise
        save(dataset, arguments.output)
        if checkpoint is not None and dataset.attrs["status"] != "interrupted":
            checkpoint.remove()
    return _say_where(arguments, dataset, checkpoint is not None)


def _say_where(arguments: Namespace, dataset: xr.Dataset, resumable: bool) -> int:
    status = dataset.attrs["status"]
    if status == "complete":
        print(f"wrote {arguments.output} ({dataset.attrs['method']}{_final_overlap(dataset)})")
        return DONE
    print(f"{arguments.problem}: {status}", file=sys.stderr)
    print(f"what was computed before that is in {arguments.output}", file=sys.stderr)
    if resumable and status == "interrupted":
        print("to go on, give the same command again", file=sys.stderr)
    return FAILED


def _final_overlap(dataset: xr.Dataset) -> str:
    """The overlap in the end; nothing for results that are not in time, or of families without an overlap."""
    name = next((name for name in ("q_mean", "q") if name in dataset and "time" in dataset[name].dims), None)
    if name is None:
        return ""
    last = dataset[name].isel(time=-1)
    mean = last.mean("replica") if "replica" in last.dims else last
    values = ", ".join(f"{value:.4f}" for value in mean.values.flat)
    return f", q({float(dataset['time'][-1]):g}) = {values}"
