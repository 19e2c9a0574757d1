"""Writes docs/latent_tree_digits.md: the study on digits, with its table of accuracies, from its file."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from meanfield.cli import DONE, run
from validation import ROOT
from validation.latent_tree import convolutions
from validation.latent_tree.digits import EARLY, FOLDER, LATE, MIDDLE
from validation.pages import markdown_table, study_section

PAGE = ROOT / "docs" / "latent_tree_digits.md"

HEAD = """# Contrastive losses on real images

Tables 2 and 3 of the [paper](errata/tian_2020.md), and what it says of covariance operators, as far as small networks
and scikit-learn's digits can decide them: a dense one, and a residual one with convolutions. `make figures` makes this
page, its figures and netCDF files of the numbers in data/runs/latent_tree; `python -m validation latent_tree.digits`
and `python -m validation latent_tree.convolutions` make a figure and its numbers each, in some minutes of one core. The
same on images of your own: [how to](how-to/images.md).

**In short.** The identities hold to rounding on real images, and norms of operators grow during training, with and
without normalisation of outputs. The residue of InfoNCE is small for weak views at the start only: with shifts it is
most of the gradient at first and still a third of it or more in the end, and without normalisation it is more than all
of it after ten epochs. The loss with exact weights is four to five points behind InfoNCE here. Differences that the
paper prints for noise and beta are of one point, which fifteen seeds do not tell from chance; the paper has five. With
convolutions and five seeds nothing is decided: beta = 0.2 is two points behind early on, the exact loss nearly two in
the end, and both may be chance.
"""

CAPTION = """*Top left: accuracy of the linear probe, means over seeds. Top right: differences of two losses, seed by
seed, at three epochs. Bottom: the residue of InfoNCE as a share of the gradient of each layer, and the norm of the
operator of the simple loss by the connections of outputs before they are normalised, in runs with InfoNCE.*
"""


CONVOLUTIONS = """*Left: means over seeds. Right: differences from InfoNCE seed by seed, with their standard error;
crosses are those that the paper prints for CIFAR-10, where the number of negatives of the exact loss is not known.*

The same on files of your own, here CIFAR-10 as it is downloaded, beside a problem file `cifar.toml`:

```text
family = "latent_tree"
title = "CIFAR-10, ResNet-18"

[data]
law = "arrays"
format = "cifar10"
images = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"]
held_out = 0.16666666666666666
augmentation = { crop = 0.5, flip = true, intensity = 0.4 }

[network]
widths = [512, 128]
output_normalisation = true
convolution = { channels = [64, 128, 256, 512] }

[loss]
kind = "nt_xent"
temperature = 0.5

[training]
optimiser = "adam"
learning_rate = 0.01
batch_size = 128

[time]
stop = 1955.0
outputs = 6

[particles]
longest_days = 1000.0
```

`.venv/bin/python -m validation.latent_tree.convolutions cifar.toml` trains all rows with five seeds, each on a core,
and writes the table, `cifar.png` and `cifar.nc`; `--seeds 2` takes fewer. An interrupted or killed command goes on
where it was. For STL-10 take `format = "stl10"`, `images = "train_X.bin"`, `labels = "train_y.bin"`, and the learning
rate 0.001. An epoch of 50,000 images has 391 steps, so that 500 epochs, as in print, end at the time 1955. Images are
held out at random, a sixth of all, not by the published split; of colours only the intensity is augmented.

It takes long. On a core of the computer that made this page an epoch of the digits takes 0.4 s under `nt_xent`, 0.7 s
under InfoNCE with two negatives and 0.9 s under the exact loss, and a step of ResNet-18 with 128 images of CIFAR-10
12.5 s under `nt_xent`: 80 minutes an epoch, 14 hours for ten, and four weeks for 500. All rows of a seed take ten times
as long as the first, and images of STL-10, which have nine times as many pixels, ten times as long again.
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
    here = Path(__file__).resolve().parent
    with xr.open_dataset(FOLDER / "convolutions.nc") as numbers:
        tables = f"{CONVOLUTIONS}\n{convolutions.table(numbers)}"
    sections = [study_section(path, here, note), study_section(FOLDER / "convolutions.nc", here, tables)]
    PAGE.write_text("\n".join([HEAD, *sections]))
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return DONE


if __name__ == "__main__":
    run(main)
