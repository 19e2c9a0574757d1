"""Print what a shell needs to complete commands, options and names of files when Tab is pressed.

For instance `meanfield completion bash > ~/.local/share/bash-completion/completions/meanfield`, once: shells that are
started afterwards complete. It takes the package shtab.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from meanfield import cli
from meanfield.cli import DONE
from meanfield.commands.dispatch import COMMANDS
from meanfield.errors import InputError


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh"], help="the shell that shall complete")


def run(arguments: Namespace) -> int:
    """Print the completion script of the shell.

    Raises
    ------
    InputError
        If shtab is missing.
    """
    try:
        from shtab import FILE, complete
    except ImportError as error:
        raise InputError("completion is made by shtab: pip install 'meanfield-dynamics[completion]'") from error
    print(complete(_whole_parser(FILE), arguments.shell))
    return DONE


def _whole_parser(files: object) -> ArgumentParser:
    """One parser of all commands, in which arguments that are paths carry the mark of `files`."""
    whole = cli.parser("", "meanfield")
    commands = whole.add_subparsers()
    for name, command in COMMANDS.items():
        parser = commands.add_parser(name, help=command.title)
        command.load().add_arguments(parser)
        for action in parser._actions:
            if action.type is Path:
                action.complete = files  # type: ignore[attr-defined]
    return whole
