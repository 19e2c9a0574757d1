"""Find all stationary states of a problem, which of them are stable, and their branches as one number varies.

Without --vary the output holds every state with its density. With it, say --vary prior.strength 0 3, branches of states
are followed over that range, around turning points too; --figure draws them: stable states solid, unstable ones dashed.
There is no time stepping; the initial condition is ignored. With several channels one state stands for all its images
by exchanges and signs; the prior must be linear (none, l2), or there are two channels. Update rules have one student.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from meanfield.cli import at_least
from meanfield.commands.outputs import check_outputs
from meanfield.commands.solving import add_problem_and_output, save_and_draw
from meanfield.errors import InputError
from meanfield.process.start_up import start_up


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_problem_and_output(parser)
    parser.add_argument(
        "--vary", nargs=3, metavar=("KEY", "START", "STOP"), help="a number of the problem and its range"
    )
    parser.add_argument("--points", type=at_least(2, "points"), default=41, metavar="N", help="points of a branch (41)")
    parser.add_argument("--figure", type=Path, metavar="F.png", help="with --vary, figure to write; png, pdf or svg")


def run(arguments: Namespace) -> int:
    """Find the states or their branches, save them, and draw them."""
    with start_up():
        import meanfield
        from meanfield.plotting import plot_branches
        from meanfield.problems.known_families import family_of
    check_outputs([arguments.problem], [arguments.output], arguments.figure)
    if arguments.figure and not arguments.vary:
        raise InputError("--figure draws branches, and there are none without --vary; add --vary KEY START STOP")
    problem: Any = meanfield.load_problem(
        arguments.problem
    )  # one of another family is refused with the words of the method
    if arguments.vary:
        key, start, stop = arguments.vary
        own = meanfield.update_rule if family_of(problem).name == "update_rule" else meanfield.contrastive
        result = own.continue_stationary_states(problem, key, _number(start), _number(stop), arguments.points)
    else:
        result = meanfield.solve(problem, "stationary")
    return save_and_draw(arguments, result, plot_branches)


def _number(text: str) -> float:
    """Number on the command line, as a float."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--vary: '{text}' is no number; give KEY START STOP, such as prior.strength 0 3") from None
