"""Norms of figures 13 and 14: medians over seeds of the norms of covariance operators in training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from meanfield.plotting import COLOURS, MARKERS
from validation.latent_tree.figures.norms import NUMBERS
from validation.latent_tree.figures.trees import READINGS
from validation.study import Statement

LOOKS: dict[str, dict[str, Any]] = {"public code": {"ls": "-"}, "as printed": {"ls": "--", "mfc": "none"}}
"""Lines of the readings."""

PANELS = {"depth": "depth $L$", "low": "least polarity", "nodes": "nodes per latent"}
"""Settings that vary in a panel, and their labels."""


def simulate(latents: Sequence[str]) -> xr.Dataset:
    """Norms of some latents, and scales of the other weights."""
    data = xr.load_dataset(NUMBERS).sel(latent=list(latents))
    return data[["norm", "others"]].rename(norm="sgd_norm", others="sgd_others")


def theory() -> xr.Dataset:
    """No theory predicts these curves."""
    return xr.Dataset()


def along(numbers: xr.Dataset, key: str) -> xr.Dataset:
    """Settings in which one number varies and the others are those of the first setting, in increasing order."""
    base = numbers.isel(setting=0)
    kept = [k for k in range(numbers.sizes["setting"]) if all(numbers[o][k] == base[o] for o in PANELS if o != key)]
    return numbers.isel(setting=kept).sortby(key)


def judge(numbers: xr.Dataset, source: str) -> list[Statement]:
    """Whether norms grow in every setting, also beyond the weights, and whether the contraction matters."""
    found = []
    for reading in READINGS:
        one = numbers.sel(reading=reading)
        norm = one.sgd_norm.sel(contraction="paper")
        found.append(grows(one, norm, f"the norm of the operator grows in training, {reading}", source))
        text = f"this is not due to the growth of weights, {reading}: divided by their squares the norm grows"
        found.append(grows(one, norm / one.sgd_others, text, source))
    both = numbers.sgd_norm.sel(contraction="code") / numbers.sgd_norm.sel(contraction="paper")
    ratio = both.where(np.isfinite(both))
    text = "it makes no difference that the code contracts nodes instead of outputs"
    number = (
        f"norms are {float(ratio.median()):.3f} times those of the paper in the median, "
        f"{float(ratio.quantile(0.05)):.2f} to {float(ratio.quantile(0.95)):.2f} times for nine networks of ten"
    )
    return [*found, Statement(text, "ours", bool(abs(ratio.median() - 1.0) < 0.05), number)]


def grows(numbers: xr.Dataset, values: xr.DataArray, text: str, source: str) -> Statement:
    """Whether medians over seeds grow in every setting."""
    single = (values.isel(epoch=-1) / values.isel(epoch=0)).stack(entry=("setting", "seed", "latent")).dropna("entry")
    middle = values.median("seed")
    growth = (middle.isel(epoch=-1) / middle.isel(epoch=0)).stack(entry=("setting", "latent")).dropna("entry")
    less = growth[growth <= 1.0]
    names = {_name(numbers.isel(setting=setting), name) for setting, name in less.entry.values}
    number = (
        f"medians {float(growth.min()):.3g} to {float(growth.max()):.3g} times as large by setting and latent; it "
        f"grows in {float((single > 1.0).mean()):.0%} of single networks"
        + "".join(f"; not {name}" for name in sorted(names))
    )
    return Statement(text, source, bool((growth > 1.0).all()), number)


def _name(one: xr.Dataset, latent: str) -> str:
    return f"{latent} with {int(one.nodes)} nodes, low = {float(one.low):g}, depth {int(one.depth)}"


def draw(numbers: xr.Dataset, latents: Sequence[str]) -> Figure:
    """A row for each latent, a panel for each number that varies; full lines are the public code's."""
    rows = len(latents)
    figure, grid = plt.subplots(rows, 3, figsize=(10.5, 3.1 * rows), layout="constrained", squeeze=False)
    for row, latent in zip(grid, latents, strict=True):
        for axes, (key, said) in zip(row, PANELS.items(), strict=True):
            some = along(numbers, key).sel(latent=latent, contraction="paper")
            middle = some.sgd_norm.median("seed").dropna("setting")
            if middle.sizes["setting"] == 0:
                axes.remove()
                continue
            for place, reading in product(range(middle.sizes["setting"]), LOOKS):
                one = middle.isel(setting=place).sel(reading=reading)
                style = {"color": COLOURS[place], "marker": MARKERS[place], "ms": 5, **LOOKS[reading]}
                label = f"{float(one[key]):g}" if reading == "public code" else None
                axes.plot(np.arange(len(one)), one, label=label, **style)
            axes.set(yscale="log", xlabel="epochs")
            axes.set_xticks(np.arange(middle.sizes["epoch"]), [str(epoch) for epoch in middle.epoch.values])
            above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 4, "columnspacing": 1.0}
            axes.legend(title=said, frameon=False, fontsize=8, **above)
        row[0].set_ylabel(f"median |OP| at {latent}")
    handles = [Line2D([], [], color="0.3", marker="o", label=reading, **look) for reading, look in LOOKS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    return figure
