"""What every script says when it is called with `--help`."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
from pathlib import Path
from unittest import mock

SCRIPTS = Path(__file__).parents[2] / "solvers"


def page() -> str:
    """A section for each script."""
    return "\n\n".join(f"## {path.name}\n\n```text\n{help_of(path)}```" for path in sorted(SCRIPTS.glob("*.py")))


def help_of(path: Path) -> str:
    """The text of `--help`, 100 columns wide."""
    shown = io.StringIO()
    plainly = {"COLUMNS": "100", "NO_COLOR": "1"}
    with (
        mock.patch.object(sys, "argv", [str(path), "--help"]),
        mock.patch.dict(os.environ, plainly),
        contextlib.redirect_stdout(shown),
        contextlib.suppress(SystemExit),
    ):
        runpy.run_path(str(path), run_name="__main__")
    return shown.getvalue()
