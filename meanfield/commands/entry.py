"""Entry points of the command `meanfield` and of the scripts: Ctrl-C is handled before anything else is imported."""

from __future__ import annotations

import sys

from meanfield.process.start_up import start_up


def main() -> None:
    """Run the installed command `meanfield`, and exit with its exit code."""
    with start_up():
        from meanfield import cli
        from meanfield.commands.dispatch import run_named
    cli.run(lambda: run_named(sys.argv[1:]))


def run_script(name: str) -> None:
    """Run a command as a script of its own, such as `solvers/solve_density.py`, and exit with its exit code."""
    with start_up():
        from pathlib import Path

        from meanfield import cli
        from meanfield.commands.dispatch import run_command
    cli.run(lambda: run_command(name, sys.argv[1:], Path(sys.argv[0]).name))
