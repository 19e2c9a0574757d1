"""Generated parts of pages: a line `<!-- generated: NAME -->` becomes the text that NAME.page() writes."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)


def filled(text: str) -> str:
    """A page with all that is generated for it."""
    return MARK.sub(lambda mark: importlib.import_module(mark[1]).page(), text)


def fill(app: Sphinx, page: str, content: list[str]) -> None:
    """Replace the marks of a page."""
    content[0] = filled(content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the step between reading and parsing."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
