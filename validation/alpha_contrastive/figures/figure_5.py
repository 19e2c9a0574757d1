"""Figure 5 of the paper: filters of each place after training, P = 3 and beta = 5, with eight tokens.

With ReLU the paper's filters are along the three tokens that generators use at a place and see no other; linear filters
are mixtures. A row is a filter divided by its length and a column a token, sorted so that those that generators use
come first, left of the line. Filters that match no used token are rows without a dark square.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from validation.alpha_contrastive.figures.figure_4 import NOT_LEARNT, WORKS
from validation.alpha_contrastive.figures.scores import NAMES, nothing
from validation.alpha_contrastive.figures.token_sgd import train
from validation.alpha_contrastive.figures.two_layers import PLACES, Array, Setting, matches
from validation.study import Statement, Study

ACTIVATIONS = "relu", "linear"
SETTINGS = {name: Setting(patterns=3, beta=5, tokens=8, activation=name) for name in ACTIVATIONS}

FOUND = 0.95
"""Cosine of a filter and a token from which the filter is along it."""

HIDDEN_LENGTH = 0.05
"""Length of a filter, relative to the longest of its place, below which it is not shown: decay has removed it."""


def simulate() -> xr.Dataset:
    """Filters after training with both activations, from the same start and with the same generators."""
    filters, used, scores = [], [], []
    for name, setting in SETTINGS.items():
        w, _, generators, _ = train(setting)
        seen = np.array([[token in column for token in range(setting.tokens)] for column in generators.T])
        order = np.argsort(~seen, axis=1, kind="stable")
        filters.append(np.take_along_axis(w, order[:, :, None], axis=1))
        used.append(seen.sum(axis=1))
        scores.append(matches(w, generators, name != "linear"))
    return xr.Dataset(
        {
            "sgd_w": (("activation", "place", "token", "filter"), filters, {"long_name": "filters"}),
            "sgd_used": ("place", used[0], {"long_name": "tokens that generators use, the first ones"}),
            "sgd_score": (("activation", "score"), scores, {"long_name": "chi+ and chi-"}),
        },
        {"activation": list(ACTIVATIONS)},
    )


def unit_filters(w: Array) -> Array:
    """Filters of a place with length 1, those that decay has removed as 0, shape (filters, tokens)."""
    length = np.linalg.norm(w, axis=0)
    return np.asarray(np.where(length > HIDDEN_LENGTH * length.max(), w / np.maximum(length, 1e-300), 0.0).T)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether filters are along single tokens."""
    if "sgd_w" not in numbers:
        return []
    found = []
    for name in ACTIVATIONS:
        one = numbers.sel(activation=name)
        along = tokens = 0
        for k in range(PLACES):
            cosine = unit_filters(one["sgd_w"].values[k])
            best = (cosine if name == "relu" else np.abs(cosine)).max(axis=0)[: int(one["sgd_used"][k])]
            along, tokens = along + int(np.count_nonzero(best > FOUND)), tokens + len(best)
        plus, minus = one["sgd_score"].values
        source, number = "paper, figure 5", f"{along} of {tokens} tokens, chi+ {plus:.3f}"
        if name == "relu":
            found += [
                Statement("ReLU has a filter along each used token", source, along == tokens, number),
                Statement("no noise token is learnt with ReLU", source, minus < NOT_LEARNT, f"chi- {minus:.3f}"),
            ]
        else:
            found.append(Statement("linear filters do not capture the used tokens", source, plus < WORKS, number))
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Filters of ten places: ReLU above, linear below."""
    figure = Figure(figsize=(10.5, 5.2), layout="constrained")
    panels = figure.subplots(len(ACTIVATIONS), PLACES, sharex=True, sharey=True)
    for row, name in enumerate(ACTIVATIONS):
        for k, axes in enumerate(panels[row]):
            w = unit_filters(numbers["sgd_w"].sel(activation=name).values[k])
            image = axes.imshow(w, cmap="RdBu_r", vmin=-1.0, vmax=1.0, aspect="auto", interpolation="nearest")
            axes.axvline(float(numbers["sgd_used"][k]) - 0.5, color="black", lw=1.2)
            axes.set(xticks=[], yticks=[])
            if row == 0:
                axes.set_title(f"place {k}", fontsize="small")
        panels[row, 0].set_ylabel(f"filters, {NAMES[name]}")
    figure.supxlabel("token, those that generators use left of the line", fontsize="medium")
    figure.colorbar(image, ax=panels, label="entry of a filter of length 1", shrink=0.8)
    return figure


STUDY = Study(nothing, judge, draw, simulate)
