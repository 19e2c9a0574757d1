"""Dispatch of command lines: the module of a command is found in a table, which imports none to list them, and run."""

from __future__ import annotations

import importlib
from argparse import REMAINDER, ArgumentParser
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import NamedTuple

import meanfield
from meanfield import cli
from meanfield.errors import InputError


class Command(NamedTuple):
    """A module with a docstring for `--help`, `add_arguments(parser)` and `run(arguments)`, and a line about it."""

    module: str
    title: str

    def load(self) -> ModuleType:
        """Import the module of the command; it imports heavy packages no sooner than it is run."""
        return importlib.import_module(self.module)


COMMANDS: Mapping[str, Command] = {
    "validate": Command("meanfield.commands.validate", "explain a problem file in words, with the cost of each method"),
    "density": Command("meanfield.commands.density", "density of weights and features as it evolves, for any prior"),
    "order-parameters": Command("meanfield.commands.order_parameters", "overlaps from the reduced ODEs"),
    "sgd": Command("meanfield.commands.sgd", "stochastic gradient descent at finite N, in replicas over all cores"),
    "stationary": Command("meanfield.commands.stationary", "stationary states of the density, and their branches"),
    "dynamics": Command("meanfield.commands.dynamics", "fixed points of the reduced ODEs, and what each attracts"),
    "solve": Command("meanfield.commands.solve", "solve a problem of any family by a method of that family"),
    "compare": Command("meanfield.commands.compare", "compare results: a table, a report, a figure, an animation"),
    "report": Command("meanfield.commands.report", "put results on one HTML page that needs no other file"),
    "explore": Command("meanfield.commands.explore", "put results or a sweep on an HTML page with sliders"),
    "cite": Command("meanfield.commands.cite", "print what to cite for results, as BibTeX"),
    "sweep": Command("meanfield.commands.sweep", "solve many problems at once, on all cores or a Dask cluster"),
    "example": Command("meanfield.commands.example", "list problem files and sweep files to begin with, or print one"),
    "keys": Command("meanfield.commands.keys", "list the keys of problem files: type, range, default, meaning"),
    "completion": Command("meanfield.commands.completion", "have a shell complete commands, options and files"),
}
"""Commands by name, in the order in which a newcomer needs them."""


DESCRIPTION = """Training dynamics in the high-dimensional limit: solve problem files, compare and show results.

commands:
{commands}

`meanfield COMMAND --help` explains a command."""


def run_named(command_line: Sequence[str]) -> int:
    """Run the command whose name is the first argument.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    arguments = _parser().parse_args(command_line)
    if arguments.command not in COMMANDS:
        from meanfield.ingredients.nearest import nearest

        hint = nearest(arguments.command, COMMANDS)
        raise InputError(f"unknown command '{arguments.command}'; {hint}; meanfield --help lists all")
    return run_command(arguments.command, arguments.arguments, f"meanfield {arguments.command}")


def run_command(name: str, arguments: Sequence[str], prog: str) -> int:
    """Run a command with its arguments.

    Parameters
    ----------
    arguments : sequence of str
        Arguments of the command.
    prog : str
        Name of the program in the line of usage.

    Returns
    -------
    int
        The exit code.
    """
    command = COMMANDS[name].load()
    parser = cli.parser(command.__doc__ or "", prog)
    command.add_arguments(parser)
    code: int = command.run(parser.parse_args(arguments))
    return code


def _parser() -> ArgumentParser:
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:{width}}  {command.title}" for name, command in COMMANDS.items())
    result = cli.parser(DESCRIPTION.format(commands=listed), "meanfield")
    result.add_argument("--version", action="version", version=f"meanfield {meanfield.__version__}")
    result.usage = "meanfield COMMAND [ARGUMENTS ...]"
    result.add_argument("command", metavar="COMMAND", help="one of the above")
    result.add_argument("arguments", nargs=REMAINDER, help="what the command is given").required = False
    return result
