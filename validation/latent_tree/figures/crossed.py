"""Losses, temperatures and signs crossed: which of them gives the printed scores of two nodes.

With 2 nodes and polarities from U[0.7, 1], where training changes most: InfoNCE of single samples and the public code's
ratio of means of a batch, at the temperature 0.1 of print and 0.01 of the configuration file, with positive polarities
and random signs. Points are means over the ten trials after 50 epochs with three standard errors, exactly and with the
public code's sums in single precision; the band is print, with one standard error.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, MARKERS
from validation.hidden_manifold.figures.discrepancy import written
from validation.latent_tree.figures import tables
from validation.latent_tree.figures.printed import TRIALS, printed
from validation.latent_tree.figures.runs import CROSSED_LOWS
from validation.latent_tree.figures.trees import CROSSED, READINGS
from validation.study import Statement, Study

SHOWN = ("s", "s0", "s1")
PLACE = {"low": CROSSED_LOWS[0], "nodes": 2}
ARITHMETICS = ("exact", "single precision")
CHANGES = ("InfoNCE instead of the ratio", "the temperature 0.1 instead of 0.01", "positive instead of random signs")


def theory() -> xr.Dataset:
    """Printed means and standard errors."""
    return printed().sel(PLACE).reset_coords(drop=True)


def simulate() -> xr.Dataset:
    """Scores of all trials by reading and arithmetic, after the epochs of print; the first run of each."""
    parts = [
        xr.concat([tables.scores(name, how).sel(PLACE | {"repeat": 0}) for how in ARITHMETICS], "arithmetic")
        for name in CROSSED.values()
    ]
    score = xr.concat([part.reset_coords(drop=True) for part in parts], "reading")
    score = score.sel(epoch=list(tables.EPOCHS.values())).rename(epoch="column")
    places = {"reading": list(CROSSED.values()), "arithmetic": list(ARITHMETICS), "column": list(tables.EPOCHS)}
    return xr.Dataset({"sgd_score": score.assign_coords(places)})


def means(score: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean over trials and its standard error."""
    return score.mean("trial"), score.std("trial", ddof=1) / np.sqrt(score.sizes["trial"])


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Each reading against print, and what single changes do to the root."""
    found = []
    after = numbers.isel(column=slice(1, None))
    mean, error = means(after.sgd_score)
    off = abs(mean - after["mean"]) / np.hypot(error, after["error"])
    for reading in CROSSED.values():
        one = off.sel(reading=reading, arithmetic="exact")
        root = [float(part.sel(reading=reading, arithmetic="exact", latent="s", column="converged"))
                for part in (mean, error)]  # fmt: skip
        single = float(mean.sel(reading=reading, arithmetic=ARITHMETICS[1], latent="s", column="converged"))
        found.append(
            Statement(
                f"{reading}: 10 printed means in and after training",
                "paper, table 6" if reading == CROSSED[READINGS["as printed"]] else "public code",
                bool((one < tables.MOST_SIGMAS).all()),
                f"off by {float(one.max()):.1f} standard errors at most; the root ends at {written(*root)}, "
                f"{single:.2f} in single precision, {float(after['mean'].sel(latent='s', column='converged')):.2f} in "
                "print",
            )
        )
    last = numbers.sgd_score.sel(arithmetic="exact", latent="s", column="converged").values
    each = last.reshape(2, 2, 2, TRIALS)  # loss, temperature, sign
    for axis, text in enumerate(CHANGES):
        change = -np.diff(each, axis=axis).squeeze(axis).mean(axis=(0, 1))
        value, off_ = float(change.mean()), float(change.std(ddof=1) / np.sqrt(TRIALS))
        found.append(
            Statement(
                f"{text}: this raises the root's correlation in the end",
                "ours",
                value > 3 * off_ if abs(value) > 3 * off_ else None,
                f"by {written(value, off_)} in the mean of the four others",
            )
        )
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """A panel for each of the upper latents."""
    figure, row = plt.subplots(1, 3, figsize=(11.0, 4.2), layout="constrained", sharey=True)
    mean, error = means(numbers.sgd_score.sel(column="converged"))
    names = list(CROSSED.values())
    for axes, latent in zip(row, SHOWN, strict=True):
        wanted = numbers.sel(latent=latent, column="converged")
        low, high = (float(wanted["mean"] + sign * wanted["error"]) for sign in (-1, 1))
        axes.axvspan(low, high, color="0.88", label="print")
        for place, how in enumerate(ARITHMETICS):
            style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "ms": 5, "capsize": 2}
            x, width = (part.sel(latent=latent, arithmetic=how) for part in (mean, error))
            axes.errorbar(x, np.arange(len(names)) + 0.2 * place, xerr=3 * width, label=how, **style)
        axes.set(title=latent, xlabel="mean of the correlation", xlim=(0.0, 1.0))
    row[0].set_yticks(range(len(names)), names)
    row[0].invert_yaxis()
    handles, labels = row[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


STUDY = Study(theory, judge, draw, simulate)
