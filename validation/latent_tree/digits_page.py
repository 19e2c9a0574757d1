"""Writes docs/latent_tree_digits.md: the study on digits, with its table of accuracies, from its file."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from meanfield.cli import DONE, run
from validation import ROOT
from validation.latent_tree.digits import EARLY, FOLDER, LATE, MIDDLE
from validation.pages import markdown_table, study_section

PAGE = ROOT / "docs" / "latent_tree_digits.md"

HEAD = """# Contrastive losses on real images

Tables 2 and 3 of the [paper](errata/tian_2020.md), and what it says of covariance operators, as far as a small dense
network and scikit-learn's digits can decide them. `make figures` makes this page, its figure and a netCDF file of the
numbers in data/runs/latent_tree; `python -m validation.latent_tree.digits` makes the figure and the numbers by itself,
in some minutes of one core. The same on images of your own: [how to](how-to/images.md).

**In short.** The identities hold to rounding on real images, and norms of operators grow during training, with and
without normalisation of outputs. The residue of InfoNCE is small for weak views at the start only: with shifts it is
most of the gradient at first and still a third of it or more in the end, and without normalisation it is more than all
of it after ten epochs. The loss with exact weights is four to five points behind InfoNCE here. Differences that the
paper prints for noise and beta are of one point, which fifteen seeds do not tell from chance; the paper has five.
"""

CAPTION = """*Top left: accuracy of the linear probe, means over seeds. Top right: differences of two losses, seed by
seed, at three epochs. Bottom: the residue of InfoNCE as a share of the gradient of each layer, and the norm of the
operator of the simple loss by the connections of outputs before they are normalised, in runs with InfoNCE.*
"""


def accuracies(numbers: xr.Dataset) -> str:
    """Table of accuracies in percent, mean and standard deviation over seeds."""
    epochs = (0.0, EARLY, MIDDLE, LATE)
    rows = []
    for row in numbers["row"].values:
        values = 100.0 * numbers["sgd_accuracy"].sel(row=row, epoch=list(epochs))
        pairs = zip(values.mean("seed").values, values.std("seed", ddof=1).values, strict=True)
        rows.append([row, *(f"{mean:.1f}({spread:.1f})" for mean, spread in pairs)])
    return markdown_table(["accuracy, %", *(f"epoch {epoch:g}" for epoch in epochs)], rows)


def main() -> int:
    """Write the page."""
    path = FOLDER / "digits.nc"
    with xr.open_dataset(path) as numbers:
        note = f"{CAPTION}\n{accuracies(numbers)}"
    PAGE.write_text("\n".join([HEAD, study_section(path, Path(__file__).resolve().parent, note)]))
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return DONE


if __name__ == "__main__":
    run(main)
