"""Dispatch of command lines: the module of a command is found by its name, and run."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser
from collections.abc import Sequence

import meanfield
from meanfield import cli
from meanfield.commands.table import COMMANDS
from meanfield.errors import InputError

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
