"""Pages of examples, each of which is one file `docs/examples/FAMILY/NAME.py` with its figure and its output.

The docstring of a file has a title, a text, and citations: paragraphs that end with a year in parentheses. Comments
`# prints: ...` at its end are what it prints. `make examples` runs files and writes these comments and figures, so that
a build runs nothing. Pages lead to the file and to a notebook, which the end of a build puts beside them.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import runpy
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
FOLDER = DOCS / "examples"
FAMILIES = {
    "contrastive": "Contrastive neurons",
    "update_rule": "Update rules",
    "hidden_manifold": "Teachers and students on a hidden manifold",
    "alpha_contrastive": "Filters, and pairs with an importance",
    "latent_tree": "Deep networks on a tree of latents",
    "tools": "Your own runs, fits and sweeps",
}
"""Folders in the order of the gallery."""

PRINTS = "# prints: "
STYLE = {
    "figure.figsize": (4.4, 3.1),
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "errorbar.capsize": 2,
    "axes.formatter.min_exponent": 3,
    "lines.markersize": 4.5,
    "legend.fontsize": 8.5,
    "legend.framealpha": 0.7,
}
"""Figures that are legible as thumbnails."""

SHADES = 64
"""Colours of a figure, which few need, and with which files are a third as large."""


class Example(NamedTuple):
    """What a file says."""

    title: str
    text: str
    papers: list[str]
    code: str
    output: str


def read(source: str) -> Example:
    """Parts of a file."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    title, *paragraphs = docstring.split("\n\n")
    papers = [" ".join(part.split()) for part in paragraphs[1:] if re.search(r"\(\d{4}\)\.$", part)]
    code = source.split('"""', 2)[2]
    code, *printed = re.split(f"^{PRINTS}", code, flags=re.MULTILINE)
    return Example(title.rstrip("."), "\n\n".join(paragraphs), papers, code.strip() + "\n", "".join(printed))


def paths() -> list[Path]:
    """Files of examples in the order of the gallery."""
    return [path for family in FAMILIES for path in sorted((FOLDER / family).glob("*.py"))]


def run(path: Path) -> str:
    """What an example prints; its figure is the current one."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as shown:
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        runpy.run_path(str(path), run_name="__main__")
    return shown.getvalue()


def keep(path: Path) -> None:
    """Run an example, and store its output and its figure."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from PIL import Image

    from meanfield.plotting import COLOURS

    mpl.use("Agg")
    with mpl.rc_context(STYLE | {"axes.prop_cycle": mpl.cycler(color=COLOURS)}):
        shown, drawn = run(path), io.BytesIO()
        plt.gcf().savefig(drawn)
        plt.close("all")
    Image.open(drawn).convert("RGB").quantize(SHADES).save(path.with_suffix(".png"), optimize=True)
    said = path.read_text(encoding="utf-8").partition(PRINTS)[0]
    path.write_text(said + "".join(PRINTS + line + "\n" for line in shown.splitlines()), encoding="utf-8")


def page_of(source: str, name: str) -> str:
    """The page of an example."""
    made = read(source)
    return "\n\n".join(
        [
            f"# {made.title}",
            made.text,
            f"![{made.title}]({name}.png)",
            f"```python\n{made.code}```",
            f"```text\n{made.output}```",
            f'<p>Download: <a href="{name}.py" download>script</a>, <a href="{name}.ipynb" download>notebook</a></p>',
        ]
    )


def notebook(source: str) -> dict[str, Any]:
    """The notebook of an example."""
    made = read(source)
    words = {"cell_type": "markdown", "id": "text", "metadata": {}, "source": f"# {made.title}\n\n{made.text}"}
    code = {"cell_type": "code", "id": "code", "metadata": {}, "source": made.code.rstrip()}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": [words, code | {"outputs": [], "execution_count": None}],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def fill(app: Sphinx, docname: str, content: list[str]) -> None:
    """Make the page of a file."""
    if docname.startswith("examples/"):
        content[0] = page_of(content[0], Path(docname).name)


def download(app: Sphinx, failed: Exception | None) -> None:
    """Put files and notebooks beside pages."""
    for path in paths():
        source, target = path.read_text(encoding="utf-8"), Path(app.outdir) / path.relative_to(DOCS)
        if target.parent.exists():
            target.write_text(source, encoding="utf-8")
            target.with_suffix(".ipynb").write_text(json.dumps(notebook(source), indent=1), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Take files of examples for pages."""
    app.add_source_suffix(".py", "myst-nb")
    app.connect("source-read", fill)
    app.connect("build-finished", download)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":  # with names of examples, or without for all
    names = {path.stem for path in paths()}
    if unknown := sorted(set(sys.argv[1:]) - names):
        print(f"{', '.join(unknown)}: no such example; there are {', '.join(sorted(names))}", file=sys.stderr)
        sys.exit(2)
    for each in (path for path in paths() if path.stem in sys.argv[1:] or not sys.argv[1:]):
        begin = time.process_time()
        keep(each)
        size = each.with_suffix(".png").stat().st_size / 1000
        print(f"{each.relative_to(DOCS)}: {time.process_time() - begin:.1f} s, {size:.0f} kB")
