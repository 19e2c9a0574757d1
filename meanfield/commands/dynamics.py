"""Analyse what the reduced ODEs do: fixed points and what attracts, what is learnt from nothing, how SGD fluctuates.

Fixed points come with their kinds, the part of the portrait that each attracts, and the spread of SGD about
them; random starts with the time of escape and the feature that wins. The ODEs close for priors with linear phi (none,
l2); for others find_stationary_states.py finds the states of the density. Where the problem starts does not matter.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from meanfield.commands.outputs import check_outputs
from meanfield.commands.solving import add_problem_and_output, save_and_draw
from meanfield.process.start_up import start_up


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_problem_and_output(parser)
    parser.add_argument("--figure", type=Path, metavar="F.png", help="figure to write; png, pdf or svg")


def run(arguments: Namespace) -> int:
    """Analyse the problem, save the analysis, and draw it."""
    with start_up():
        from meanfield import load_problem, solve
        from meanfield.plotting import plot_dynamics
    check_outputs([arguments.problem], [arguments.output], arguments.figure)
    return save_and_draw(arguments, solve(load_problem(arguments.problem), "dynamics"), plot_dynamics)
