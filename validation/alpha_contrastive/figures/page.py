"""Writes docs/alpha_contrastive_figures.md: the studies of Tian's figures and table, from their files."""

from __future__ import annotations

import textwrap
from pathlib import Path

from meanfield.cli import run
from validation import ROOT
from validation.alpha_contrastive.figures import FOLDER
from validation.alpha_contrastive.figures.runs import GROUPS, load_runs
from validation.alpha_contrastive.figures.table_1 import table_page
from validation.pages import in_order, write_page

FIGURES = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "alpha_contrastive_figures.md"

HEAD = """# Figures on contrastive learning with importance

Figures 1, 4, 5 and 8 to 13 and table 1 of Tian (2022), *Understanding the role of nonlinearity in training dynamics of
contrastive learning*, and five studies of our own: what is claimed, and what the numbers say. Figures 2, 3, 6 and 7
are sketches; figure 9 is decided with figure 4, and figure 13 with figure 12. The
[theory](theory/alpha_contrastive.md) says what is exact, and the [errata](errata/tian_2022.md) list what is wrong in
print.

**In short.** ReLU has many local optima, as the paper says, and most of them are not what it analyses: they are on
walls, where a point is about to be switched off, and no eigenvectors. A non-uniform importance has more of them at
small temperatures, because it answers to the filter; held fixed, as the paper has it, none is left there. Two layers
learn patterns with ReLU and InfoNCE as figure 4 shows. But linear filters do not fail for the reason given, since the
top does not have rank one, and noise tokens are kept out by weight decay: without it the loss is lower, and filters
match them nearly as well as at the start.

**Protocol.** One layer: exact, with plain SGD beside it. Two layers: ten places, 40 generators that mark five each, 20
tokens, batches of 128, 5000 of them, momentum 0.9, weight decay 0.005, temperature 0.1. Not printed, and taken from the
command of the public code: learning rate 0.02 (the text has 0.002), 50 outputs of length 1, and batch normalisation by
the statistics of each view behind the activation, whose gradients pass through the mean.
{counts}

**Verdicts.** A statement *of the paper* is confirmed or contradicted, one of this documentation (*theory*) or of the
software (*ours*) holds or fails, and either is undecided where three standard errors do not tell; these are over cells
of the grid and seeds. Numbers in brackets are standard errors in units of the last digit; bars in figures are standard
deviations over seeds, where there are several.

`make figures` makes this page, the figures, and a netCDF file of the numbers behind each in
data/runs/alpha_contrastive/figures; `python -m validation.alpha_contrastive.figures.runs infonce_1` makes the runs of
one seed that figure 4 shows, and `python -m validation alpha_contrastive.figures.figure_4` the figure.
"""


def counts() -> str:
    """Numbers of runs of SGD of two layers, and the time that they take."""
    found = {group: load_runs(group) for group in GROUPS}
    sizes = {group: runs["plus"].size for group, runs in found.items()}
    minutes = sum(float(runs["seconds"].sum()) for runs in found.values()) / 60.0
    seeds = ", ".join(f"{runs.sizes['seed']} of `{group}`" for group, runs in found.items())
    text = f"Seeds: {seeds}; {sum(sizes.values())} trained networks, which took {minutes:.0f} min of processor time."
    return textwrap.fill(text, 120)


if __name__ == "__main__":
    run(lambda: write_page(PAGE, HEAD.format(counts=counts()), in_order(FOLDER), FIGURES, table_page))
