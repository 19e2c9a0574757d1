"""Docstrings write |q| for a length, which reStructuredText would take for a substitution."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_BAR = re.compile(r"(`[^`]*`)|\|")


def escape_bars(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make bars outside of code mean themselves."""
    lines[:] = [_BAR.sub(lambda found: found[1] or r"\|", line) for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the step, before docstrings are parsed."""
    app.connect("autodoc-process-docstring", escape_bars)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
