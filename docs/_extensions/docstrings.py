"""Docstrings adapted to reStructuredText before it is parsed: bars, and links to sections of the theory."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_BAR = re.compile(r"(`[^`]*`)|\|")
_SECTION = re.compile(r"theory\.md, section (\d)")


def translate(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make |q| a length, not a substitution, and sections of the theory links."""
    for index, line in enumerate(lines):
        line = _BAR.sub(lambda found: found[1] or r"\|", line)
        lines[index] = _SECTION.sub(r":ref:`theory.md, section \1 <theory-\1>`", line)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the step, before docstrings are parsed."""
    app.connect("autodoc-process-docstring", translate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
