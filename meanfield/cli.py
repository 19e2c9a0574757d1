"""Basis of commands and studies: argument parser, exit codes (0 done, 1 failed, 2 bad input), error handling."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable
from typing import NoReturn

from meanfield.errors import InputError
from meanfield.process.interrupts import swallowed_interrupts_again
from meanfield.process.start_up import INTACT, INTERRUPTED, ensure_standard_streams, have_no_reader, say

DONE, FAILED, BAD_INPUT = 0, 1, 2

NO_READER = 128 + 13
"""Exit code where whoever read the output has stopped, as `head` does: that of commands which SIGPIPE ends."""


class Parser(ArgumentParser):
    """Argument parser whose error messages have the form of all others."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and how to learn what is right, and exit with the code of bad input."""
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


def parser(description: str, prog: str | None = None) -> ArgumentParser:
    """An argument parser that shows a docstring as it is written.

    Parameters
    ----------
    prog : str, optional
        The command in the line of usage; the name of the script if nothing is said.
    """
    return Parser(
        prog=prog,
        description=description,
        formatter_class=RawDescriptionHelpFormatter,
        epilog="exit codes: 0 done, 1 failed or interrupted, 2 bad input",
    )


def run(main: Callable[[], int]) -> NoReturn:
    """Run a script: errors of the input become one message and exit code 2, those of the machine code 1.

    The signal with which clusters announce that they will kill a job, SIGTERM, is taken as Ctrl-C. Where nobody reads
    the output any more, as behind `| head`, the script ends without a word.
    """
    ensure_standard_streams()
    os.environ["MPLBACKEND"] = "agg"  # figures go to files, and a notebook's backend may not be installed here
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with swallowed_interrupts_again():
            code = _outcome(main)
    except KeyboardInterrupt:
        say(INTERRUPTED)
        code = FAILED
    finally:
        signal.signal(signal.SIGTERM, before)
    for number in (signal.SIGINT, signal.SIGTERM):  # everything is done; nothing should disturb Python's own end
        atexit.register(signal.signal, number, signal.SIG_IGN)
    sys.exit(code)


def _outcome(main: Callable[[], int]) -> int:
    try:
        try:
            code = main()
        finally:
            sys.stdout.flush()
    except InputError as error:
        say(f"error: {error}")
        return BAD_INPUT
    except MemoryError as error:
        what = f"out of memory ({error})" if str(error) else "out of memory"
        say(f"failed: {what}; ask for less, or use a machine with more; {INTACT}")
        return FAILED
    except OSError as error:
        if isinstance(error, BrokenPipeError) and have_no_reader():
            return NO_READER
        say(f"failed: {error}; {INTACT}")
        return FAILED
    except SystemError as error:
        if _comes_from_ctrl_c(error):
            raise KeyboardInterrupt from None
        raise
    return code


def _comes_from_ctrl_c(error: BaseException | None) -> bool:
    """Whether an exception was caused by Ctrl-C, once or more, while numba handed arguments to compiled code."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None
