"""The text of `meanfield COMMAND --help` for every command, with the script that is the same command."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from unittest import mock

from pieces import code, table

from meanfield.commands.dispatch import COMMANDS, run_named

SCRIPTS = Path(__file__).parents[2] / "solvers"


def page() -> str:
    """A table of commands and scripts, then a section for each command."""
    scripts = scripts_by_command()
    rows = [
        [
            f"[{code(f'meanfield {name}')}](#command-{name})",
            code(f"solvers/{scripts[name]}") if name in scripts else "",
            command.title,
        ]
        for name, command in COMMANDS.items()
    ]
    return "\n\n".join([table(["command", "script", "purpose"], rows), *map(section, COMMANDS)])


def scripts_by_command() -> dict[str, str]:
    """The file of each script in `solvers/` by the command that it runs."""
    found = {}
    for path in sorted(SCRIPTS.glob("*.py")):
        command = re.search(r'run_script\("(.+)"\)', path.read_text(encoding="utf-8"))
        assert command is not None, f"{path.name} runs no command"
        found[command[1]] = path.name
    return found


def section(name: str) -> str:
    """The text of `--help` of a command."""
    return f"(command-{name})=\n## meanfield {name}\n\n```text\n{help_of(name)}```"


def help_of(name: str) -> str:
    """The text of `--help`, 100 columns wide; nothing that a command computes with is imported for it."""
    shown = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}),
        contextlib.redirect_stdout(shown),
        contextlib.suppress(SystemExit),
    ):
        run_named([name, "--help"])
    return shown.getvalue()
