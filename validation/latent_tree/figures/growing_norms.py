"""What figures 13 and 14 show: medians over seeds of the norms of covariance operators in training."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, LINES, MARKERS
from validation.latent_tree.figures.norms import NUMBERS
from validation.latent_tree.figures.trees import READINGS
from validation.study import Statement

PANELS = {"depth": "depth $L$", "low": "least polarity", "nodes": "nodes per latent"}
"""What varies in a panel, and how it is called."""


def simulate(latents: Sequence[str]) -> xr.Dataset:
    """Norms of some latents."""
    data = xr.load_dataset(NUMBERS).sel(latent=list(latents))
    return data[["norm"]].rename(norm="sgd_norm")


def theory() -> xr.Dataset:
    """No theory predicts these curves."""
    return xr.Dataset()


def along(numbers: xr.Dataset, key: str) -> xr.Dataset:
    """Settings in which one number varies and the others are those of the first setting, in increasing order."""
    base = numbers.isel(setting=0)
    kept = [k for k in range(numbers.sizes["setting"]) if all(numbers[o][k] == base[o] for o in PANELS if o != key)]
    return numbers.isel(setting=kept).sortby(key)


def median(numbers: xr.Dataset, reading: str, contraction: str = "paper") -> xr.DataArray:
    """Median norm over seeds."""
    return numbers.sgd_norm.sel(reading=reading, contraction=contraction).median("seed")


def judge(numbers: xr.Dataset, source: str) -> list[Statement]:
    """Whether norms grow in every setting, and whether the contraction matters."""
    found = []
    for reading in READINGS:
        value = median(numbers, reading)
        growth = (value.isel(epoch=-1) / value.isel(epoch=0)).stack(entry=("setting", "latent")).dropna("entry")
        each = numbers.sgd_norm.sel(reading=reading, contraction="paper")
        ratio = (each.isel(epoch=-1) / each.isel(epoch=0)).stack(entry=("setting", "seed", "latent")).dropna("entry")
        found.append(
            Statement(
                f"the norm of the operator grows in training, {reading}",
                source,
                bool((growth > 1.0).all()),
                f"medians {float(growth.min()):.3g} to {float(growth.max()):.3g} times as large by setting and latent; "
                f"it grows in {float((ratio > 1.0).mean()):.0%} of single networks",
            )
        )
    both = numbers.sgd_norm.sel(contraction="code") / numbers.sgd_norm.sel(contraction="paper")
    ratio = both.where(np.isfinite(both))
    found.append(
        Statement(
            "it makes no difference that the code contracts nodes instead of outputs",
            "ours",
            bool(abs(ratio.median() - 1.0) < 0.05),
            f"norms are {float(ratio.median()):.3f} times those of the paper in the median, "
            f"{float(ratio.quantile(0.05)):.2f} to {float(ratio.quantile(0.95)):.2f} times for nine networks of ten",
        )
    )
    return found


def draw(numbers: xr.Dataset, latents: Sequence[str]) -> Figure:
    """A row for each latent, a panel for each number that varies, line styles for the readings."""
    figure, grid = plt.subplots(
        len(latents), 3, figsize=(11.0, 3.0 * len(latents)), layout="constrained", sharex=True, squeeze=False
    )
    for row, latent in zip(grid, latents, strict=True):
        for axes, (key, said) in zip(row, PANELS.items(), strict=True):
            some = along(numbers, key).sel(latent=latent)
            for place in range(some.sizes["setting"]):
                one = some.isel(setting=place)
                for reading, full in zip(READINGS, (True, False), strict=True):
                    values = median(one, reading)
                    if not np.isfinite(values).all():
                        continue
                    style = {"color": COLOURS[place], "marker": MARKERS[place], "ms": 5}
                    style |= {"ls": LINES[0 if full else 1], "mfc": COLOURS[place] if full else "none"}
                    label = f"{float(one[key]):g}" if full else None
                    axes.plot(values.epoch, values, label=label, **style)
            axes.set(yscale="log")
            axes.set_xscale("symlog", linthresh=1)
            axes.set_xticks(values.epoch.values, [str(epoch) for epoch in values.epoch.values])
            axes.minorticks_off()
            axes.legend(title=said, frameon=False, fontsize=8, loc="lower right")
        row[0].set_ylabel(f"median |OP| at {latent}")
    for axes in grid[-1]:
        axes.set_xlabel("epochs")
    handles = [
        plt.Line2D([], [], color="0.3", marker="o", ls=LINES[0], label="InfoNCE, positive polarities"),
        plt.Line2D([], [], color="0.3", marker="o", mfc="none", ls=LINES[1], label="public code's loss and signs"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    return figure
