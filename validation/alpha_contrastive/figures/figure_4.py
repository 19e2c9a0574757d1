"""Figure 4 of the paper, and its figure 9: what filters of two layers match after training with InfoNCE.

Generators put one of P tokens at five of ten places; beta P filters look at each place. chi+ is the best match of a
filter with a token that generators use, and chi- that with other tokens, which are noise. The paper prints curves only:
neither the grid, which is taken from its table 1, nor the learning rate and the normalisation that were used. Its text
has 0.002 and the public command 0.02, with which scores are as high as in its figures; batch normalisation lets
gradients pass through means. P = 1 leaves one token per place.
"""

from __future__ import annotations

from functools import partial

import xarray as xr
from matplotlib.figure import Figure

from validation.alpha_contrastive.figures.scores import NAMES, better, draw_scores, listed, nothing, sgd_runs
from validation.study import Statement, Study

WORKS = 0.9
"""Score chi+ from which a network has learnt its patterns."""

NOT_LEARNT = 0.1
"""Score chi- below which noise is not learnt."""

MUCH_LESS_AFFECTED = 1 / 3
"""Gain by more filters, relative to that of ReLU, below which a score is much less affected."""

CO_LINEAR = 1.5
"""Effective rank of the filters of a place up to which they are one direction."""

MANY = {"P": [3, 5, 10], "beta": [2, 5, 10]}
"""Cells with several patterns, and more filters than patterns."""


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements of the paper on figures 4 and 9."""
    if "sgd_plus" not in numbers:
        return []
    plus, minus = numbers["sgd_plus"], numbers["sgd_minus"]
    relu, linear = plus.sel(activation="relu"), plus.sel(activation="linear")
    return [
        *_one_pattern(relu.sel(P=1), linear.sel(P=1)),
        *(
            better(
                f"P > 1 and beta > 1: {NAMES[name]} matches better than linear",
                "paper, section 5.1, figure 4",
                (plus.sel(activation=name) - linear).sel(MANY),
            )
            for name in ("relu", "leaky_relu", "quadratic")
        ),
        Statement(
            "the larger beta is, the better ReLU matches, on average over P",
            "paper, section 5.1",
            bool((relu.mean(("seed", "P")).diff("beta") > 0.0).all()),
            listed(relu, "beta"),
        ),
        better("ReLU matches better at beta = 10 than at 1", "paper, section 5.1", gain_of(relu)),
        better(
            "linear filters gain less than a third of that",
            "paper, section 5.1, figure 4",
            MUCH_LESS_AFFECTED * gain_of(relu) - gain_of(linear),
        ),
        *_noise(minus),
        *ranks(numbers),
    ]


def gain_of(plus: xr.DataArray) -> xr.DataArray:
    """Gain of a score by ten times as many filters."""
    return plus.sel(beta=10) - plus.sel(beta=1)


def _one_pattern(relu: xr.DataArray, linear: xr.DataArray) -> list[Statement]:
    """P = 1."""
    return [
        Statement(
            "P = 1: linear works well whatever beta is",
            "paper, figure 4",
            float(linear.mean("seed").min()) > WORKS,
            f"chi+ {listed(linear, 'beta')}",
        ),
        Statement(
            "P = 1: ReLU needs a large beta to work well",
            "paper, figure 4",
            float(relu.sel(beta=1).mean()) < WORKS < float(relu.sel(beta=10).mean()),
            f"chi+ {listed(relu, 'beta')}",
        ),
        better("P = 1: linear matches better than ReLU", "paper, section 5.1", linear - relu),
    ]


def _noise(minus: xr.DataArray) -> list[Statement]:
    """The score chi-."""
    means = minus.sel(MANY).mean([dim for dim in minus.dims if dim != "activation"])
    scores = ", ".join(f"{NAMES[name]} {float(means.sel(activation=name)):.3f}" for name in means["activation"].values)
    return [
        Statement(
            f"P > 1 and beta > 1: ReLU does not learn noise tokens, chi- is below {NOT_LEARNT:g}",
            "paper, section 5.1, figures 5 and 9",
            float(means.sel(activation="relu")) < NOT_LEARNT,
            f"chi- {float(means.sel(activation='relu')):.3f}",
        ),
        Statement(
            "of all activations ReLU has the lowest chi-",
            "paper, figure 9",
            str(means["activation"].values[means.values.argmin()]) == "relu",
            scores,
        ),
    ]


def ranks(numbers: xr.Dataset) -> list[Statement]:
    """Assumption and conclusion of theorem 4, on ranks."""
    linear = numbers.sel(activation="linear").sel(MANY)
    filters, top = linear["sgd_filter_rank"], linear["sgd_top_rank"]
    return [
        Statement(
            "linear filters of a place end up co-linear",
            "paper, theorem 4",
            float(filters.max()) < CO_LINEAR,
            f"effective rank {listed(filters, 'P')}",
        ),
        Statement(
            "the top has rank one, as theorem 4 assumes",
            "paper, assumption 2",
            float(top.max()) < CO_LINEAR,
            f"effective rank {listed(top, 'P')}",
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Draw the scores chi_+ and chi_- of all activations."""
    rows = []
    for name, label in (("sgd_plus", r"$\bar\chi_+$"), ("sgd_minus", r"$\bar\chi_-$")):
        rows.append((label, {NAMES[kind]: numbers[name].sel(activation=kind) for kind in NAMES}))
    return draw_scores(rows)


STUDY = Study(nothing, judge, draw, partial(sgd_runs, "infonce"))
