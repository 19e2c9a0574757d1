"""Simulate a problem by SGD at finite N, in replicas over all cores.

How steps are taken, N, the number of replicas, the seed, and what is kept come from the problem file's [particles]
table. The numbers do not depend on the number of workers. While it runs, results and states are kept in the folder
OUT.nc.checkpoint: a run that was interrupted or killed goes on when the same command is given again.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from meanfield.cli import at_least
from meanfield.commands.solving import add_problem_and_output, add_restart, solve_and_save


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_problem_and_output(parser)
    add_restart(parser)
    parser.add_argument(
        "--workers", type=at_least(1, "threads"), default=None, metavar="N", help="threads; by default one per core"
    )


def run(arguments: Namespace) -> int:
    """Run the simulation, and save its result."""
    chosen = {} if arguments.workers is None else {"workers": arguments.workers}
    return solve_and_save(arguments, "particles", **chosen)
