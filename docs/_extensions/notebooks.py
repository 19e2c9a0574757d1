"""The list of notebooks, which are run when the site is built."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "notebooks"


def page() -> str:
    """An entry of the table of contents for every notebook."""
    names = "\n".join(f"notebooks/{path.stem}" for path in sorted(FOLDER.glob("*.ipynb")))
    return f"```{{toctree}}\n:hidden:\n:caption: Notebooks\n\n{names}\n```" if names else ""
