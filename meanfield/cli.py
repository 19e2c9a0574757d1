"""What all scripts share: arguments, messages and exit codes (0 done, 1 failed, 2 bad input)."""

from __future__ import annotations

import atexit
import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import xarray as xr

from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.errors import InputError
from meanfield.problems.file import load_problem
from meanfield.results.files import check_figure_path, check_writable, save

DONE, FAILED, BAD_INPUT = 0, 1, 2

INTACT = "what had been saved before is intact"
"""Holds after everything that can go wrong, because files are replaced as a whole; `make faults` tries it."""


class Parser(ArgumentParser):
    """An argument parser whose errors read like all others."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and how to learn what is right, and end with the code of bad input."""
        self.print_usage(sys.stderr)
        self.exit(BAD_INPUT, f"error: {message}; --help explains all arguments\n")


def at_least(least: int, what: str) -> Callable[[str], int]:
    """The type of an argument that is a whole number from `least` on, for instance `at_least(1, "threads")`."""

    def whole_number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ArgumentTypeError(
                f"'{text}' is no whole number; give the number of {what}, {least} or more"
            ) from None
        if value < least:
            raise ArgumentTypeError(f"{value} is below {least}; give the number of {what}, {least} or more")
        return value

    return whole_number


def parser(description: str) -> ArgumentParser:
    """An argument parser that shows a script's docstring as it is written."""
    return Parser(
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
    arguments: Namespace, solve: Callable[[Any], xr.Dataset], checkpoint: Checkpoint | None = None
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
        print(f"wrote {arguments.output} ({dataset.attrs['method']}, {_final_overlap(dataset)})")
        return DONE
    print(f"{arguments.problem}: {status}", file=sys.stderr)
    print(f"what was computed before that is in {arguments.output}", file=sys.stderr)
    if resumable and status == "interrupted":
        print("to go on, give the same command again", file=sys.stderr)
    return FAILED


def _final_overlap(dataset: xr.Dataset) -> str:
    last = dataset["q_mean" if "q_mean" in dataset else "q"].isel(time=-1)
    mean = last.mean("replica") if "replica" in last.dims else last
    values = ", ".join(f"{value:.4f}" for value in mean.values)
    return f"q({float(dataset['time'][-1]):g}) = {values}"


def run(main: Callable[[], int]) -> NoReturn:
    """Run a script: errors of the input become one message and exit code 2, those of the machine code 1.

    The signal with which clusters announce that they will kill a job, SIGTERM, is taken as Ctrl-C.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = _outcome(main)
    except KeyboardInterrupt:
        print(f"interrupted; {INTACT}", file=sys.stderr)
        code = FAILED
    finally:
        signal.signal(signal.SIGTERM, before)
    for number in (signal.SIGINT, signal.SIGTERM):  # everything is done; nothing should disturb Python's own end
        atexit.register(signal.signal, number, signal.SIG_IGN)
    sys.exit(code)


def _outcome(main: Callable[[], int]) -> int:
    try:
        code = main()
        sys.stdout.flush()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except MemoryError as error:
        what = f"out of memory ({error})" if str(error) else "out of memory"
        print(f"failed: {what}; ask for less, or use a machine with more; {INTACT}", file=sys.stderr)
        return FAILED
    except OSError as error:
        print(f"failed: {error}; {INTACT}", file=sys.stderr)
        return FAILED
    except SystemError as error:
        if _comes_from_ctrl_c(error):
            raise KeyboardInterrupt from None
        raise
    return code


def _comes_from_ctrl_c(error: BaseException | None) -> bool:
    """Whether it was Ctrl-C, or several, while numba handed arguments to compiled code."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None
