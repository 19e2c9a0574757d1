"""Generated parts of pages: a line `<!-- generated: NAME -->` is followed by the text that NAME.page() writes.

Pages that are read without a build hold that text, up to a line `<!-- end: NAME -->`, and `make reference` writes it.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = re.compile(r"^<!-- generated: (\w+) -->$(?:.*?^<!-- end: \1 -->$)?", re.MULTILINE | re.DOTALL)


def filled(text: str) -> str:
    """A page with all that is generated for it."""
    return MARK.sub(lambda mark: importlib.import_module(mark[1]).page(), text)


def rewritten(text: str) -> str:
    """A page with all that is generated for it between its marks, to be kept."""
    return MARK.sub(lambda mark: f"<!-- generated: {mark[1]} -->\n\n{filled(mark[0])}\n\n<!-- end: {mark[1]} -->", text)


def fill(app: Sphinx, page: str, content: list[str]) -> None:
    """Replace the marks of a page."""
    content[0] = filled(content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the step between reading and parsing."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
