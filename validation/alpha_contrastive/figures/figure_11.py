"""Figure 11 of the paper: batch normalisation where tokens have vectors of different lengths, with ReLU.

Half the tokens have vectors of length zeta, the others 1/zeta, for zeta = 2, 5 and 10. The paper says that batch
normalisation does not help much where zeta is small, and does where it is large and there are several patterns and more
filters than patterns. Its gradients pass through the mean alone.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from validation.alpha_contrastive.figures.figure_4 import MANY
from validation.alpha_contrastive.figures.scores import better, draw_scores, nothing, over_cells, sgd_runs, with_error
from validation.study import Statement, Study

MUCH = 0.1
"""Gain of a score that helps much."""

LARGE = 10.0


def simulate() -> xr.Dataset:
    """Runs with and without batch normalisation at all zeta."""
    largest = sgd_runs("zeta_10").sel(normalisation=["none", "mean"]).expand_dims(zeta=[LARGE])
    return xr.concat([sgd_runs("zeta"), largest], dim="zeta", join="inner")


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Where batch normalisation helps."""
    if "sgd_plus" not in numbers:
        return []
    plus, minus = numbers["sgd_plus"], numbers["sgd_minus"]
    gain = (plus.sel(normalisation="mean") - plus.sel(normalisation="none")).sel(MANY)
    kept_out = (minus.sel(normalisation="none") - minus.sel(normalisation="mean")).sel(MANY)
    source = "paper, appendix E.2, figure 11"
    small = over_cells(gain.sel(zeta=2.0))
    return [
        Statement(
            f"zeta = 2: batch normalisation adds less than {MUCH:g} to chi+",
            source,
            bool(float(small.mean()) < MUCH),
            f"adds {with_error(small)}",
        ),
        *(
            better(f"zeta = {zeta:g}, P > 1 and beta > 1: batch normalisation raises chi+", source, gain.sel(zeta=zeta))
            for zeta in (5.0, LARGE)
        ),
        better(
            "it helps more at zeta = 10 than at 2, P > 1 and beta > 1",
            source,
            gain.sel(zeta=LARGE) - gain.sel(zeta=2.0),
        ),
        better("zeta = 10, P > 1 and beta > 1: it lowers chi-", "ours", kept_out.sel(zeta=LARGE)),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """chi+ with and without batch normalisation, a row for each zeta."""
    names = {"mean": "batch normalisation", "none": "none"}
    plus = numbers["sgd_plus"]
    return draw_scores(
        [
            (
                rf"$\bar\chi_+$, $\zeta = {zeta:g}$",
                {label: plus.sel(zeta=zeta, normalisation=name) for name, label in names.items()},
            )
            for zeta in plus["zeta"].values
        ]
    )


STUDY = Study(nothing, judge, draw, simulate)
