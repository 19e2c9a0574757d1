"""Writes docs/figures.md: every study with its claim, its figure and what it decides, from the files of the studies."""

from __future__ import annotations

from pathlib import Path

from meanfield.cli import run
from validation import ROOT
from validation.pages import in_order, write_page
from validation.study import NUMBERS

FIGURES = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "figures.md"

HEAD = """# Figures

Every figure of Meng and Wang (2024), and further studies: what is claimed, what the numbers say. `make figures` makes
this page, the figures, and a netCDF file of the numbers behind each in data/runs/figures; the figures of another paper
are on [a page of their own](hidden_manifold_figures.md), and so are [studies of several
channels](several_channels_study.md).

Two kinds of statements are judged. A statement *of the paper* is confirmed or contradicted by the equations that follow
from its model, and by SGD, which takes no side; one that is contradicted is no failure of the software, and the
[errata](errata.md) have what holds in its place, with a proof. A statement of this documentation (*theory*) or of the
software (*ours*) holds or fails. The last column says why.
"""


if __name__ == "__main__":
    run(lambda: write_page(PAGE, HEAD, in_order(NUMBERS), FIGURES))
