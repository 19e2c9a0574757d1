"""Validate a problem file and explain it in words, with the time, memory and file that each method would take.

Nothing is written. Times come from short trials of the methods on this machine; what does not apply says why, and what
to change. With --latex its equations are printed in place of words.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from meanfield.cli import DONE
from meanfield.commands.solving import add_problem
from meanfield.process.start_up import start_up


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_problem(parser)
    parser.add_argument(
        "--latex",
        nargs="?",
        const="numbers",
        choices=("numbers", "symbols"),
        help="print the equations of the problem as LaTeX, with its numbers, or with a symbol for each",
    )


def run(arguments: Namespace) -> int:
    """Validate the problem, and print its explanation or its equations."""
    with start_up():
        from meanfield import explain, load_problem
    problem = load_problem(arguments.problem)
    print(problem.latex(arguments.latex == "symbols") if arguments.latex else explain(problem))
    return DONE
