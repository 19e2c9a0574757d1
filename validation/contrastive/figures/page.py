"""Writes docs/figures.md: every study with its claim, its figure and what it decides, from the files of the studies."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import xarray as xr

from meanfield.cli import DONE, run
from validation import ROOT
from validation.pages import markdown_table
from validation.study import NUMBERS

FIGURES = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "figures.md"

HEAD = """# Figures

Every figure of Meng and Wang (2024), and further studies: what is claimed, what the numbers say. `make figures` makes
this page, the figures, and a netCDF file of the numbers behind each in data/runs/figures.

Two kinds of statements are judged. A statement *of the paper* is confirmed or contradicted by the equations that follow
from its model, and by SGD, which takes no side; one that is contradicted is no failure of the software, and the
[errata](errata.md) have what holds in its place, with a proof. A statement of this documentation (*theory*) or of the
software (*ours*) holds or fails. The last column says why.
"""


def section(numbers: Path) -> str:
    """A study on the page."""
    name = numbers.stem
    claim = ast.get_docstring(ast.parse((FIGURES / f"{name}.py").read_text())) or ""
    with xr.open_dataset(numbers) as dataset:
        statements = json.loads(dataset.attrs["statements"])
    rows = [(s["text"], s["source"], verdict(s["source"], s["holds"]), s["number"]) for s in statements]
    table = markdown_table(("statement", "made in", "verdict", "number"), rows)
    title = name.replace("_", " ").capitalize()
    return f"## {title}\n\n{claim}\n\n![{title}](../validation/contrastive/figures/{name}.png)\n\n{table}\n"


def verdict(source: str, holds: bool) -> str:
    """Verdict in a word: the paper is confirmed or contradicted, the software's own statements hold or fail."""
    if source.startswith("paper"):
        return "confirmed" if holds else "**contradicted**"
    return "holds" if holds else "**fails**"


def main() -> int:
    """Write the page: the paper's figures in its order, then our own."""
    order = sorted(NUMBERS.glob("*.nc"), key=lambda path: (not path.stem.startswith("figure_"), _number(path.stem)))
    PAGE.write_text("\n".join([HEAD, *map(section, order)]))
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return DONE


def _number(name: str) -> tuple[int, str]:
    """Figure 10a comes after figure 9."""
    digits = "".join(filter(str.isdigit, name))
    return int(digits or 0), name


if __name__ == "__main__":
    run(main)
