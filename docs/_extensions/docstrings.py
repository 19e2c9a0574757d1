"""Docstrings adapted to reStructuredText before it is parsed, with links to sections of the theory and to sources."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import unwrap
from typing import Any

from sphinx.application import Sphinx

import meanfield

_BAR = re.compile(r"(`[^`]*`)|\|")
_SECTION = re.compile(r"theory\.md, section (\d)")


def translate(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make |q| a length, not a substitution, and sections of the theory links."""
    for index, line in enumerate(lines):
        line = _BAR.sub(lambda found: found[1] or r"\|", line)
        lines[index] = _SECTION.sub(r":ref:`theory.md, section \1 <theory-\1>`", line)


def module_of_source(app: Sphinx, module: str, name: str) -> str | None:
    """The module with the source of a public function, which `meanfield` or a namespace of it wraps, or None."""
    faces = ("meanfield", *(f"meanfield.{name}" for name in (*meanfield.NAMESPACES, "extend")))
    found = getattr(import_module(module), name, None) if module in faces else None
    return None if found is None else unwrap(found).__module__


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both, before docstrings are parsed and sources linked."""
    app.connect("autodoc-process-docstring", translate)
    app.connect("viewcode-follow-imported", module_of_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
