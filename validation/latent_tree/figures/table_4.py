"""Table 4 of the paper: the largest correlation of a node with the root, before and after training, at depth 5.

Print says InfoNCE with one negative, temperature 0.1, learning rate 0.1, batches of 128, 64000 samples, polarities
from U[low, 1], 10 trials and some 50 epochs. The public code has another loss, that of the means of a batch without a
logarithm, gives polarities random signs, and takes scores in single precision. Three ways are held against print, each
with 10 trials and 50 epochs on the very trees and initial weights of print: *as printed*, and *public code*, with exact
scores of both, by tables of all configurations of the leaves, and *public code, single precision* with the same
networks and scores as the code takes them. Points are differences from print with three combined standard errors: those
of trials, or, where runs are repeated, of runs of the same trials, rounding included. *Off* lists what is beyond.

With 2 nodes outputs of some networks are constant at the start, or become so: the code's score of these is rounding,
which can be 1. *Rounding* says that its chances depend neither on the order of sums nor on samples nor on last
digits. The code's runs with 2 nodes are repeated, ten times with other samples: in some of them a network learns, in
others not. Before training they differ by samples alone: scores of nearly constant pre-activations jump in a few
runs, of which ten can hold too few, so that their standard error is too small.
"""

from functools import partial

import numpy as np
import xarray as xr

from validation.hidden_manifold.figures.discrepancy import written
from validation.latent_tree.figures import tables
from validation.latent_tree.figures.printed import LOWS
from validation.latent_tree.figures.tables import WAYS
from validation.study import Statement, Study

COLUMNS = ("initial", "converged")


def root(numbers: xr.Dataset) -> xr.Dataset:
    """Numbers of the root."""
    return numbers.sel(latent=["s"], column=list(COLUMNS))


def simulate() -> xr.Dataset:
    """Networks of the root."""
    return root(tables.simulate())


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Printed means, and what the paper concludes from them."""
    found = tables.judge(numbers, COLUMNS)
    for reading in WAYS:
        each = numbers.sgd_score.sel(reading=reading, latent="s")
        for text, change in (
            ("correlations grow with the number of nodes", each.diff("nodes").isel(nodes=0)),
            ("correlations grow in training, with 2 and with 10 nodes", each.diff("column").isel(column=0)),
        ):
            found.append(grows(f"{text}, {reading}", change))
    return found


def grows(text: str, change: xr.DataArray) -> Statement:
    """Whether changes of the same trials are above 0 by three standard errors; below a single one is enough against."""
    rows = change.transpose("trial", "low", ...).values.reshape(change.sizes["trial"], len(LOWS), -1)
    mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    holds = True if (mean > 3.0 * error).all() else False if (mean < -3.0 * error).any() else None
    cells = [" and ".join(map(written, *row)) for row in zip(mean, error, strict=True)]
    return Statement(text, "paper, table 4", holds, f"{', '.join(cells)} for low = {', '.join(map(str, LOWS))}")


STUDY = Study(lambda: root(tables.theory()), judge, partial(tables.draw, columns=COLUMNS), simulate)
