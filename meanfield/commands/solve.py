"""Solve a problem by one of the methods of its family.

Methods that can go on with an interrupted run keep their states in the folder OUT.nc.checkpoint meanwhile: give the
same command again.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from meanfield.cli import at_least
from meanfield.commands.solving import add_problem_and_output, add_restart, solve_and_save
from meanfield.errors import InputError


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command, and the methods of all families that are installed."""
    parser.description = f"{parser.description}\n{_listed_methods()}"
    parser.add_argument("method", metavar="METHOD", help="a method of the family of the problem")
    add_problem_and_output(parser)
    add_restart(parser)
    parser.add_argument(
        "--workers", type=at_least(1, "threads"), metavar="N", help="threads, where a method has them; one per core"
    )


def run(arguments: Namespace) -> int:
    """Solve the problem, and save the result."""
    if Path(arguments.method).is_file():
        raise InputError(f"'{arguments.method}' is a file; the method comes first, and the problem file behind it")
    options = {} if arguments.workers is None else {"workers": arguments.workers}
    return solve_and_save(arguments, arguments.method, **options)


def _listed_methods() -> str:
    """Lines that list all methods below their families."""
    from meanfield.problems.known_families import families

    lines = []
    for family in families():
        width = max(map(len, family.methods))
        lines += ["", f"methods of the family {family.name}:"]
        about = {name: method.purpose or family.kinds[method.kinds[0]].title for name, method in family.methods.items()}
        lines += [f"  {name:{width}}  {title}" for name, title in about.items()]
    return "\n".join(lines)
