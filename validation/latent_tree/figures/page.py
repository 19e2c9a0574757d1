"""Writes docs/latent_tree_figures.md: the studies of figures, tables and theorems of Tian et al., from their files."""

from __future__ import annotations

import textwrap
from pathlib import Path

import xarray as xr

from meanfield.cli import run
from validation import ROOT
from validation.latent_tree.figures import FOLDER, norms, runs
from validation.latent_tree.figures.tables import table_page
from validation.pages import in_order, write_page

FIGURES = Path(__file__).resolve().parent
PAGE = ROOT / "docs" / "latent_tree_figures.md"

HEAD = """# Figures on latent trees

Figures 3, 11, 13 and 14, tables 4 and 6, theorems 5 and 6 and equation (15) of Tian, Yu, Chen and Ganguli (2020),
*Understanding self-supervised learning with dual deep networks*, and latents with many values: what is claimed, and
what the numbers say. The other figures are sketches. The [theory](theory/latent_tree.md) says what is exact, and the
[errata](errata/tian_2020.md) list what is wrong in print.

**In short.** The ten trials of print are those that its public code draws from the seeds 1 to 10: on these trees and
initial weights, with random signs, exact correlations with 10 nodes are the printed ones to their digits before
training, and near them after an epoch with the code's loss; with positive polarities, as printed, they are not. With 2
nodes the public code's runs differ much, as in some of them networks learn and in others become constant, which its
sums in single precision can give a correlation of 1: by ten runs print is above it in few places. Norms of operators
grow, but not all near the leaves, and part of that is the growth of weights. The explanation is another matter: below
the root many gaps shrink, against (15), because operators between latents of a level are left out; the Jacobian is far
from constant; only the lowest level is slower than the others; the number of nodes in theorem 5 is too small, as its
bound (112) is not one.

**Protocol.** As printed: depth 5, two children, batches of 128, learning rate 0.1, temperature 0.1, one negative,
normalised outputs, 64000 samples per epoch, 10 trials, 50 epochs. From the public code, as print does not say: seeds,
biases, uniform weights within 1/sqrt(inputs), 1e-4 in the normalisation, fresh samples in every epoch, the score: the
best |correlation| of a pre-activation with the latent. Scores, operators and gradients are exact, by tables of all
configurations of the leaves, where nothing else is said; SGD that trains hundreds of networks is in single precision.
{counts}

**Verdicts.** A statement *of the paper* is confirmed or contradicted, one of the errata or *ours* holds or fails, and
either is undecided where numbers do not tell. Printed means are confirmed if all of a column are within three combined
standard errors, rounding included; a mean of ten trials is not, by chance, once in 70 looks. As trials are those of
print, these errors are too large where they are those of trials; where runs are repeated they are those of runs.
Numbers in brackets are standard errors in units of the last digit.

`make figures` makes this page, the figures, and a netCDF file of the numbers behind each in
data/runs/latent_tree/figures; `python -m validation.latent_tree.figures.runs` and `norms` train the networks that
tables and two figures share, and `python -m validation latent_tree.figures.figure_3` makes one of the figures.
"""


def counts() -> str:
    """Numbers of networks, and the time that they take."""
    trees, operators = xr.load_dataset(runs.NUMBERS), xr.load_dataset(norms.NUMBERS)
    minutes = (float(trees.seconds.sum()) + float(operators.seconds)) / 60.0
    single = operators.sizes["reading"] * operators.sizes["setting"] * operators.sizes["seed"]
    text = (
        f"For the tables {trees.sizes['case'] * trees.sizes['trial']} networks are trained, ten in each case, as many "
        f"as print has, to epoch {runs.EPOCHS[-1]}. For figures 13 and 14 {single} are trained. "
        f"Training takes {minutes:.0f} min of processor time, most of all that the studies take."
    )
    return textwrap.fill(text, 120)


if __name__ == "__main__":
    run(lambda: write_page(PAGE, HEAD.format(counts=counts()), in_order(FOLDER), FIGURES, table_page))
