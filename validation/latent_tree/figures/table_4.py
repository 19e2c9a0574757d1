"""Table 4 of the paper: the largest correlation of a node with the root, before and after training, at depth 5.

Print says InfoNCE with one negative, temperature 0.1, learning rate 0.1, batches of 128, 64000 samples, and polarities
from U[low, 1]. The public code has another loss, that of the means of a batch without a logarithm, and gives polarities
random signs. Both are run: *as printed*, and *public code*, with biases and 1e-4 in the normalisation in either, as the
code has them. Correlations are exact here, by tables of all configurations of the leaves. Points are differences from
print with three combined standard errors.

The first column is a property of the tree and of random weights alone, and both readings give it. With 10 nodes either
loss ends where print does. With 2 nodes training as printed raises correlations, less than print has it but within its
errors; the public code's loss does not raise them at all, which its ten trials with an error of 0.1 barely tell.
"""

from functools import partial

import numpy as np
import xarray as xr

from validation.latent_tree.figures import FOLDER, tables
from validation.latent_tree.figures.printed import LOWS
from validation.latent_tree.figures.trees import READINGS
from validation.study import Statement, Study, run_study

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
    for reading in READINGS:
        one = numbers.sel(reading=reading, latent="s")
        more, gain = one.sgd_mean.diff("nodes").isel(nodes=0), one.sgd_mean.diff("column").isel(column=0)
        more_error = np.sqrt((one.sgd_error**2).sum("nodes"))
        gain_error = np.sqrt((one.sgd_error**2).sum("column"))
        listed = ", ".join(f"{low:g}" for low in LOWS)
        for text, change, error in (
            ("correlations grow with the number of nodes", more, more_error),
            ("correlations grow in training, with 2 and with 10 nodes", gain, gain_error),
        ):
            clear = bool((change > 3.0 * error).all())
            rows = change.transpose("low", ...).values.reshape(len(LOWS), -1)
            shown = ", ".join(" and ".join(f"{value:+.2f}" for value in row) for row in rows)
            holds = True if clear else False if bool((change < -3.0 * error).any()) else None
            found.append(Statement(f"{text}, {reading}", "paper, table 4", holds, f"{shown} for low = {listed}"))
    return found


STUDY = Study(lambda: root(tables.theory()), judge, partial(tables.draw, columns=COLUMNS), simulate, folder=FOLDER)

if __name__ == "__main__":
    run_study(STUDY, __file__)
