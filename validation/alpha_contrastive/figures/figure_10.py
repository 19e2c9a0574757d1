"""Figure 10 of the paper, and the lower row of its figure 4: the same networks, trained with the quadratic loss.

Its importance is the same for all pairs. The paper says that trends are as with InfoNCE, whose runs those here are held
against with the same generators and starts, and that patterns are matched less well.
"""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from validation.alpha_contrastive.figures.figure_4 import MANY, gain_of, ranks
from validation.alpha_contrastive.figures.figure_4 import draw as draw_activations
from validation.alpha_contrastive.figures.scores import NAMES, better, nothing, sgd_runs
from validation.study import Statement, Study


def simulate() -> xr.Dataset:
    """Runs with both losses, of the seeds that both have."""
    infonce = sgd_runs("infonce").expand_dims(loss=["infonce"])
    quadratic = sgd_runs("quadratic").expand_dims(loss=["quadratic"])
    return xr.concat([infonce, quadratic], dim="loss", join="inner")


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Quadratic against InfoNCE, and trends of the quadratic loss."""
    if "sgd_plus" not in numbers:
        return []
    plus = numbers["sgd_plus"].sel(loss="quadratic")
    lost = numbers["sgd_plus"].sel(loss="infonce") - plus
    relu, linear = plus.sel(activation="relu"), plus.sel(activation="linear")
    source = "paper, section 5.1, figures 4 and 10"
    return [
        *(
            better(
                f"P > 1: {NAMES[name]} matches less well than with InfoNCE",
                source,
                lost.sel(activation=name, P=MANY["P"]),
            )
            for name in ("relu", "linear", "leaky_relu", "quadratic")
        ),
        better("P > 1 and beta > 1: ReLU matches better than linear here too", source, (relu - linear).sel(MANY)),
        better("ReLU matches better at beta = 10 than at 1 here too", source, gain_of(relu)),
        *ranks(numbers.sel(loss="quadratic")),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Draw the scores chi_+ and chi_- of all activations with the quadratic loss."""
    return draw_activations(numbers.sel(loss="quadratic"))


STUDY = Study(nothing, judge, draw, simulate)
