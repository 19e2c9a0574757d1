"""Discrepancy against KL: what figures 3 and S3, and figures 5 and S4, share."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, curve_style
from validation.hidden_manifold.figures.discrepancy import (
    above,
    alike,
    over_units,
    ratio_with_error,
    statement,
    with_error,
)
from validation.hidden_manifold.figures.laws import COORDINATE, MATCHED, SAMPLE, STANDARDISED
from validation.hidden_manifold.figures.measured import METRICS
from validation.study import Statement

READINGS = {COORDINATE: "a component for each latent", SAMPLE: "a component for each sample"}

LEVEL = 0.1
"""Power of KL below which growth is taken for an end of growth: KL^0.1 gains 12 % while KL grows threefold."""

FAR_ALPHAS = [5, 7, 9]
"""Values of alpha between which that power is measured; KL grows threefold."""

SMALL_DISCREPANCY = 0.25
"""Share of the mean of an order parameter up to which its discrepancy is small. The paper prints no limit; R_00 of its
table 1 is off by a third."""


def unstandardised_statements(numbers: xr.Dataset, place: str) -> list[Statement]:
    """Statements of the paper on mixtures that are not standardised, in both readings."""
    found = []
    for law, said in READINGS.items():
        each = {name: over_units(numbers[f"sgd_{name}"].sel(law=law)) for name in METRICS}
        growth = {name: values.sel(alpha=9) - values.sel(alpha=1) for name, values in each.items()}
        found.append(
            statement(
                f"{said}: Q, R and v leave the ODE of one Gaussian, the farther the larger KL",
                f"paper, section IV.1, {place}",
                {name: above(values) for name, values in growth.items()},
                {
                    name: f"{with_error(values.sel(alpha=1))} at alpha = 1, {with_error(values.sel(alpha=9))} at 9"
                    for name, values in each.items()
                },
            )
        )
        for name in ("Q", "v"):
            power = powers(each[name], numbers.KL)
            reaches_limit = above(power, LEVEL)
            found.append(
                Statement(
                    f"{said}: the discrepancy of {name} tends to a limit as KL grows",
                    f"paper, section IV.1, {place}",
                    None if reaches_limit is None else not reaches_limit,
                    f"grows like KL^{with_error(power)} from alpha = 5 to 9",
                )
            )
        largest = [numbers[f"sgd_{name}_largest"].sel(law=law) for name in METRICS]
        found.append(
            Statement(
                f"{said}: no trained parameter explodes",
                f"paper, section IV.1, {place}",
                all(np.isfinite(values).all() for values in largest),
                f"|Q| and |v| are {float(largest[0].max()):.3g} and {float(largest[2].max()):.3g} at most",
            )
        )
    ratios = {name: over_units(numbers[f"sgd_{name}"]) for name in METRICS}
    ratios = {name: each.sel(law=COORDINATE) / each.sel(law=MATCHED) for name, each in ratios.items()}
    found.append(
        statement(
            "a component for each latent: one Gaussian with the mixture's mean and variance is as far off",
            "theory, section 4",
            {name: alike(ratio) for name, ratio in ratios.items()},
            {name: f"{ratio_with_error(ratio)} times" for name, ratio in ratios.items()},
        )
    )
    return found


def powers(values: xr.DataArray, KL: xr.DataArray) -> xr.DataArray:
    """Powers of KL with which discrepancies grow, by start and m, from least squares of the logarithms."""
    x, y = (np.log(array.sel(alpha=FAR_ALPHAS)) for array in (KL, values))
    x = x - x.mean("alpha")
    return (x * y).sum("alpha") / (x**2).sum("alpha")


def standardised_statements(numbers: xr.Dataset, place: str) -> list[Statement]:
    """Statements of the paper on standardised mixtures, in both readings."""
    found = []
    for law, said in READINGS.items():
        each = {name: over_units(numbers[f"sgd_{name}"].sel(law=STANDARDISED[law])) for name in METRICS}
        gaussian = {name: over_units(numbers[f"sgd_{name}_gaussian"]).mean("run") for name in METRICS}
        scale = {name: over_units(numbers[f"scale_{name}"]) for name in METRICS}
        shares = {name: each[name].mean(["m", "alpha"]) / scale[name] for name in METRICS}
        as_gaussian = {name: each[name].sel(alpha=9).mean("m") / gaussian[name] for name in METRICS}
        by_m = {name: values.sel(m=5).mean("alpha") / values.sel(m=2).mean("alpha") for name, values in each.items()}
        small = {name: above(share, SMALL_DISCREPANCY) for name, share in shares.items()}
        found += [
            statement(
                f"{said}: discrepancies are small against the order parameters themselves",
                f"paper, section IV.2, {place}",
                {name: None if large is None else not large for name, large in small.items()},
                {name: f"{with_error(share)} of their mean" for name, share in shares.items()},
            ),
            statement(
                f"{said}: they do not depend on alpha, and are those of N(0, 1)",
                f"paper, section IV.2, {place}",
                {name: alike(ratio) for name, ratio in as_gaussian.items()},
                {name: f"{ratio_with_error(ratio)} times as large at alpha = 9" for name, ratio in as_gaussian.items()},
            ),
            statement(
                f"{said}: they do not depend on m",
                f"paper, appendix F, {place}",
                {name: alike(ratio) for name, ratio in by_m.items()},
                {name: f"{ratio_with_error(ratio)} times as large for m = 5 as for 2" for name, ratio in by_m.items()},
            ),
        ]
    return found


def draw_sweep(numbers: xr.Dataset, standardised: bool) -> Figure:
    """A row of panels for each reading, with a panel for each of Q, R, v."""
    figure, axes = plt.subplots(2, 3, figsize=(10.5, 6.0), layout="constrained", sharex=True, sharey="col")
    for row, (law, said) in zip(axes, READINGS.items(), strict=True):
        for axis, name in zip(row, METRICS, strict=True):
            _draw_panel(axis, numbers, name, STANDARDISED[law] if standardised else law)
            if law == COORDINATE:
                axis.set_title({"Q": "$Q$", "R": "$R$", "v": "$v$"}[name])
        row[0].set_ylabel(f"{said}\n tLog-RMSE")
    for axis in axes[-1]:
        axis.set_xlabel(r"KL$(P, \mathcal{N})$ before standardisation" if standardised else r"KL$(P, \mathcal{N})$")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_panel(axis: Axes, numbers: xr.Dataset, name: str, law: str) -> None:
    KL, starts = numbers.KL.mean("start"), numbers.sizes["start"]
    values = over_units(numbers[f"sgd_{name}"])
    gaussian = over_units(numbers[f"sgd_{name}_gaussian"])
    for i, m in enumerate(numbers.m.values):
        at, x = values.sel(law=law, m=m), KL.sel(m=m)
        mean, error = at.mean("start"), at.std("start", ddof=1) / math.sqrt(starts)
        axis.fill_between(x, mean - error, mean + error, color=COLOURS[i], alpha=0.25, lw=0)
        axis.plot(x, mean, label=f"m = {m}", **curve_style(i))
        if law == COORDINATE:
            matched = values.sel(law=MATCHED, m=m).mean("start")
            label = "one Gaussian with mean and variance of the mixture" if i == 0 else None
            axis.plot(x, matched, "x", color=COLOURS[i], ms=4, label=label)
    axis.axhline(gaussian.mean(), color="0.4", lw=0.8, label=r"SGD with $\mathcal{N}(0, 1)$")
    scale = over_units(numbers[f"scale_{name}"]).mean()
    axis.axhline(scale, color="0.4", lw=1.2, ls=":", label="mean of the order parameter along the ODE")
    axis.set_yscale("log")
    axis.grid(color="0.92")
