"""Theorem 4 of the paper under its own assumptions: the exact flow of two layers, without batches and without decay.

The importance is uniform, the batch infinite, filters have length 1, and the top is always the top eigenvector of the
covariance of their outputs. Given the generator, places are independent, so that all averages are exact. Linear filters
of a place then do become one direction, as theorem 4 has it, with P = beta = 5 as in figure 4. ReLU filters do not; but
without decay global modulation by itself does not keep noise tokens out of them either.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import curve_style
from meanfield.process.progress import progress_bar
from validation.alpha_contrastive.figures.figure_4 import NOT_LEARNT
from validation.alpha_contrastive.figures.scores import NAMES
from validation.alpha_contrastive.figures.two_layers import (
    Array,
    Setting,
    draw_generators,
    draw_weights,
    effective_rank,
    matches,
)
from validation.study import Statement, Study

ACTIVATIONS, AUGMENTED = ("linear", "relu"), (True, False)
SEED = 1

STEPS, LONGEST_MOVE, OUTPUTS = 3000, 0.05, 60
"""Steps of the flow, distance by which the fastest filter moves in each, and times at which it is looked at."""

ONE_DIRECTION = 1.01
"""Effective rank of filters that are co-linear."""

POWER_STEPS = 30
"""Steps of power iteration for the top eigenvector, from that of the step before."""


def shares(generators: Array, tokens: int) -> Array:
    """Probability of each token at each place, given the generator, shape (G, places, tokens)."""
    anything = np.full(tokens, 1.0 / tokens)
    return np.where(generators[..., None] < 0, anything, np.eye(tokens)[generators])


def covariance(pi: Array, h: Array, augmented: bool) -> Array:
    """C[f1] of outputs h, shape (places, tokens, filters): over generators, and within them without augmentation."""
    given = np.einsum("gka,kam->gkm", pi, h)
    centred = (given - given.mean(axis=0)).reshape(len(pi), -1)
    C = centred.T @ centred / len(pi)
    if not augmented:
        M, mean = h.shape[2], pi.mean(axis=0)
        for k in range(h.shape[0]):
            within = (h[k] * mean[k][:, None]).T @ h[k] - given[:, k].T @ given[:, k] / len(pi)
            C[k * M : (k + 1) * M, k * M : (k + 1) * M] += within
    return np.asarray(C)


def gradient(pi: Array, h: Array, slope: Array, s: Array, augmented: bool) -> Array:
    """Gradient of s.C[f1] s/2 by filters, shape (places, tokens, filters)."""
    G = len(pi)
    parts = np.einsum("kam,km->ka", h, s)
    given = np.einsum("gka,ka->gk", pi, parts)
    pull = np.einsum("g,gka->ka", (given - given.mean(axis=0)).sum(axis=1), pi) / G
    if not augmented:
        pull += np.einsum("gka,gka->ka", pi, parts - given[:, :, None]) / G
    return np.asarray(pull[:, :, None] * slope * s[:, None, :])


def flow(activation: str, augmented: bool) -> Iterator[Array]:
    """Filters at the start and after each step of the flow."""
    setting = Setting(activation=activation, seed=SEED)
    rng = np.random.default_rng([setting.seed, setting.patterns])
    _, generators = draw_generators(setting, rng)
    w, _ = draw_weights(setting, rng)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    pi, s = shares(generators, setting.tokens), None
    for _ in range(STEPS):
        yield w
        h, slope = (w, np.ones_like(w)) if activation == "linear" else (np.maximum(w, 0.0), 1.0 * (w > 0.0))
        C = covariance(pi, h, augmented)
        s = np.linalg.eigh(C)[1][:, -1] if s is None else s
        for _ in range(POWER_STEPS):
            s = C @ s
            s /= np.linalg.norm(s)
        move = gradient(pi, h, slope, s.reshape(h.shape[0], -1), augmented)
        move -= np.sum(move * w, axis=1, keepdims=True) * w
        w = w + LONGEST_MOVE * move / np.linalg.norm(move, axis=1).max()
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    yield w


def theory() -> xr.Dataset:
    """Scores and effective ranks along the flow."""
    kept = np.unique(np.geomspace(1, STEPS, OUTPUTS).round().astype(int))
    found = np.empty((3, len(ACTIVATIONS), len(AUGMENTED), len(kept)))
    with progress_bar(len(ACTIVATIONS) * len(AUGMENTED), "exact flow of two layers", "flow") as bar:
        for i, activation in enumerate(ACTIVATIONS):
            setting = Setting(activation=activation, seed=SEED)
            _, generators = draw_generators(setting, np.random.default_rng([setting.seed, setting.patterns]))
            for j, augmented in enumerate(AUGMENTED):
                rows = [
                    (*matches(w, generators, activation == "relu"), max(effective_rank(place) for place in w))
                    for step, w in enumerate(flow(activation, augmented))
                    if step in kept
                ]
                found[:, i, j] = np.transpose(rows)
                bar.update(1)
    dims = ("activation", "augmented", "step")
    names = {"plus": "chi+", "minus": "chi-", "rank": "largest effective rank of the filters of a place"}
    return xr.Dataset(
        {name: (dims, values, {"long_name": what}) for (name, what), values in zip(names.items(), found, strict=True)},
        {"activation": list(ACTIVATIONS), "augmented": list(AUGMENTED), "step": kept},
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on the filters of a place along the flow."""
    end, most = numbers.isel(step=-1), 1.0 / np.sqrt(Setting().patterns)
    linear, relu = end.sel(activation="linear"), end.sel(activation="relu")
    between = float(np.abs(end["plus"].diff("augmented")).max())
    return [
        Statement(
            "linear filters of a place become co-linear",
            "paper, theorem 4",
            bool((linear["rank"] < ONE_DIRECTION).all()),
            f"largest effective rank {float(linear['rank'].max()):.3f}",
        ),
        Statement(
            "so that they match patterns with chi+ of 1/sqrt(P) at most",
            "ours",
            bool((linear["plus"] <= most).all()),
            f"chi+ {float(linear['plus'].max()):.3f}, {most:.3f}",
        ),
        Statement(
            "ReLU filters of a place do not, and match patterns better",
            "paper, section 4.1",
            bool((relu["rank"] > 2.0).all() and (relu["plus"] > linear["plus"]).all()),
            f"effective rank up to {float(relu['rank'].max()):.1f}, chi+ {float(relu['plus'].min()):.3f}",
        ),
        Statement(
            "global modulation keeps noise tokens out of ReLU filters, without weight decay",
            "paper, section 5.1",
            bool((relu["minus"] < NOT_LEARNT).all()),
            f"chi- {float(relu['minus'].min()):.3f}",
        ),
        Statement(
            "whether views differ or not changes little",
            "paper, section 4",
            between < 0.05,
            f"chi+ differ by {between:.3f}",
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Draw the scores chi_+ and chi_- and the effective rank along the flow."""
    figure = Figure(figsize=(9.5, 3.5), layout="constrained")
    labels = {"plus": r"$\bar\chi_+$", "minus": r"$\bar\chi_-$", "rank": "largest effective rank of a place"}
    for axes, (name, label) in zip(figure.subplots(1, 3), labels.items(), strict=True):
        cases = [(activation, augmented) for activation in ACTIVATIONS for augmented in AUGMENTED]
        for k, (activation, augmented) in enumerate(cases):
            values = numbers[name].sel(activation=activation, augmented=augmented)
            legend = f"{NAMES[activation]}, {'views differ' if augmented else 'one view'}"
            axes.plot(numbers["step"], values, label=legend, **curve_style(k))
        axes.set(xscale="log", xlabel="step of the flow", ylabel=label)
        axes.grid(alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize="small")
    return figure


STUDY = Study(theory, judge, draw)
