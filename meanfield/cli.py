"""What all scripts share: arguments, messages and exit codes (0 done, 1 failed, 2 bad input)."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import xarray as xr

from meanfield.checkpoint import Checkpoint
from meanfield.errors import InputError
from meanfield.problem import Problem
from meanfield.problem_file import load_problem
from meanfield.storage import check_figure_path, check_writable, save

DONE, FAILED, BAD_INPUT = 0, 1, 2


def parser(description: str) -> ArgumentParser:
    """An argument parser that shows a script's docstring as it is written."""
    return ArgumentParser(
        description=description,
        formatter_class=RawDescriptionHelpFormatter,
        epilog="exit codes: 0 done, 1 failed or interrupted, 2 bad input",
    )


def solver_parser(description: str) -> ArgumentParser:
    """The arguments of every solver: a problem file and an output file."""
    result = parser(description)
    result.add_argument("problem", type=Path, metavar="PROBLEM.toml", help="problem file; data/problems has examples")
    result.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.nc", help="netCDF file to write")
    return result


def positive(text: str) -> int:
    """A number of workers, for `type` of an argument."""
    value = int(text)
    if value < 1:
        raise ArgumentTypeError(f"{value} is below 1; give the number of workers")
    return value


def checked_outputs(arguments: Namespace) -> list[Path]:
    """The files that `output` and `figure` name, before anything is computed.

    Raises
    ------
    InputError
        If one of them cannot be written, or the figure's ending names no format.
    """
    check_writable(arguments.output)
    if arguments.figure is None:
        return [arguments.output]
    check_figure_path(arguments.figure)
    return [arguments.output, arguments.figure]


def solve_and_save(
    arguments: Namespace, solve: Callable[[Problem], xr.Dataset], checkpoint: Checkpoint | None = None
) -> int:
    """Read the problem, solve it, save what there is, and say where it is.

    Parameters
    ----------
    arguments : Namespace
        From `solver_parser`.
    solve : callable
        A method: problem to Dataset.
    checkpoint : Checkpoint, optional
        Where the method keeps its states; it stays for an interrupted run to go on with.

    Returns
    -------
    int
        The exit code.
    """
    check_writable(arguments.output)
    problem = load_problem(arguments.problem)
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
    status = dataset.attrs["status"]
    if checkpoint is not None and status != "interrupted":
        checkpoint.remove()
    if status == "complete":
        print(f"wrote {arguments.output} ({dataset.attrs['method']}, {_final_overlap(dataset)})")
        return DONE
    print(f"{arguments.problem}: {status}", file=sys.stderr)
    print(f"what was computed before that is in {arguments.output}", file=sys.stderr)
    if checkpoint is not None and status == "interrupted":
        print("to go on, give the same command again", file=sys.stderr)
    return FAILED


def _final_overlap(dataset: xr.Dataset) -> str:
    last = dataset["q_mean" if "q_mean" in dataset else "q"].isel(time=-1)
    mean = last.mean("replica") if "replica" in last.dims else last
    values = ", ".join(f"{value:.4f}" for value in mean.values)
    return f"q({float(dataset['time'][-1]):g}) = {values}"


def run(main: Callable[[], int]) -> NoReturn:
    """Run a script: errors of the input become one message and exit code 2, those of the machine code 1."""
    try:
        code = main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        code = BAD_INPUT
    except (OSError, MemoryError) as error:
        print(f"failed: {str(error) or 'out of memory'}; what had been saved before is intact", file=sys.stderr)
        code = FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = FAILED
    sys.exit(code)
