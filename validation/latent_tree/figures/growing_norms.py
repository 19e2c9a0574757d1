"""What figures 13 and 14 show: medians over seeds of the norms of covariance operators in training."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, LINES, MARKERS
from validation.latent_tree.figures.norms import NUMBERS
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


def judge(numbers: xr.Dataset, source: str) -> list[Statement]:
    """Whether norms grow in every setting, and whether the contraction matters."""
    norm = numbers.sgd_norm.sel(contraction="paper")
    single = norm.isel(epoch=-1) / norm.isel(epoch=0)
    middle = norm.median("seed")
    growth = (middle.isel(epoch=-1) / middle.isel(epoch=0)).stack(entry=("setting", "latent")).dropna("entry")
    less = growth[growth <= 1.0]
    names = {_name(numbers.isel(setting=setting), name) for setting, name in less.entry.values}
    single = single.stack(entry=("setting", "seed", "latent")).dropna("entry")
    both = numbers.sgd_norm.sel(contraction="code") / numbers.sgd_norm.sel(contraction="paper")
    ratio = both.where(np.isfinite(both))
    return [
        Statement(
            "the norm of the operator grows in training",
            source,
            bool((growth > 1.0).all()),
            f"medians {float(growth.min()):.3g} to {float(growth.max()):.3g} times as large by setting and latent; it "
            f"grows in {float((single > 1.0).mean()):.0%} of single networks"
            + "".join(f"; not {name}" for name in sorted(names)),
        ),
        Statement(
            "it makes no difference that the code contracts nodes instead of outputs",
            "ours",
            bool(abs(ratio.median() - 1.0) < 0.05),
            f"norms are {float(ratio.median()):.3f} times those of the paper in the median, "
            f"{float(ratio.quantile(0.05)):.2f} to {float(ratio.quantile(0.95)):.2f} times for nine networks of ten",
        ),
    ]


def _name(one: xr.Dataset, latent: str) -> str:
    return f"{latent} with {int(one.nodes)} nodes, low = {float(one.low):g}, depth {int(one.depth)}"


def draw(numbers: xr.Dataset, latents: Sequence[str]) -> Figure:
    """A row for each latent, a panel for each number that varies."""
    rows = len(latents)
    figure, grid = plt.subplots(rows, 3, figsize=(10.5, 2.9 * rows), layout="constrained", squeeze=False)
    for row, latent in zip(grid, latents, strict=True):
        for axes, (key, said) in zip(row, PANELS.items(), strict=True):
            some = along(numbers, key).sel(latent=latent, contraction="paper")
            middle = some.sgd_norm.median("seed").dropna("setting")
            if middle.sizes["setting"] == 0:
                axes.remove()
                continue
            for place in range(middle.sizes["setting"]):
                one = middle.isel(setting=place)
                style = {"color": COLOURS[place], "marker": MARKERS[place], "ms": 5, "ls": LINES[place]}
                axes.plot(np.arange(len(one)), one, label=f"{float(one[key]):g}", **style)
            axes.set(yscale="log", xlabel="epochs")
            axes.set_xticks(np.arange(middle.sizes["epoch"]), [str(epoch) for epoch in middle.epoch.values])
            axes.legend(title=said, frameon=False, fontsize=8)
        row[0].set_ylabel(f"median |OP| at {latent}")
    return figure
