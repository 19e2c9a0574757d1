"""One feature or a mixture: in several channels the penalty decides, not the model alone.

Meng and Wang analyse one channel, of which they say that only a single feature rather than a mixture of features can be
learnt. Here two and three channels have as many three-point features, all with m2 = 1.1 and m4 = 6.05, so that single
features win in one channel. sigma(x) = x^2, the square penalty, population centring, tau = 0.005, m = 10. The
ODE runs from random starts of order 1 for strengths below, between and above the thresholds of two channels, and SGD,
also the plain one, from one of the mixtures.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import COLOURS
from validation.contrastive.channels.phase_diagram import TILTED
from validation.contrastive.channels.problems import (
    HEAVY,
    MIXED,
    end_of,
    ends_of_chain,
    labelled,
    mean_and_error,
    random_overlaps,
    several,
)
from validation.study import Statement, Study, within_errors

CHANNELS = 2, 3
STRENGTHS = 0.0, 0.03, 0.06, 0.1, 0.2, 0.4
STARTS = 2
REST_TIME = 4000.0
HIGH, T = 0.4, 60.0
"""Strength at which SGD starts near a mixture, and its time."""

RUNS = {"chain": (1500, 8), "plain": (300, 6)}
"""N and the number of replicas of SGD, by its steps."""

PAPER = "paper, sections III-A.1 and IV-B"


def trained(channels: int, strength: float, start: int) -> Problem:
    q, M = random_overlaps(np.random.default_rng(100 + start), channels, channels)
    return several([HEAVY] * channels, q, M, strength=strength, stop=REST_TIME)


def near_mixture(**settings: float | str) -> Problem:
    return several([HEAVY, HEAVY], np.array([[0.95, 0.15], [-0.15, 0.95]]), 0.0, strength=HIGH, stop=T, **settings)


def second_overlap(q: np.ndarray) -> float:
    """Largest overlap of a channel with a feature that is not its first."""
    return float(np.sort(np.abs(q), axis=0)[-2].max())


def theory() -> xr.Dataset:
    """States that are learnt from random starts, and the mixture."""
    second, first = np.zeros((2, len(CHANNELS), len(STRENGTHS), STARTS))
    for i, channels in enumerate(CHANNELS):
        for k, strength in enumerate(STRENGTHS):
            for start in range(STARTS):
                q, _ = end_of(trained(channels, strength, start))
                second[i, k, start], first[i, k, start] = second_overlap(q), np.abs(q).max(axis=0).min()
    pair = trained(2, 0.0, 0)
    dims = ("channels", "strength", "start")
    return labelled(
        {
            "second": (dims, second, "largest overlap of a channel with a second feature"),
            "first": (dims, first, "least overlap of a channel with its first feature"),
            "collapse": (
                (),
                meanfield.contrastive.collapse_threshold(pair),
                "strength at which collapsed channels part",
            ),
            "mixing": ((), meanfield.contrastive.mixing_threshold(pair), "strength at which features mix"),
            "mixture": (
                ("feature", "channel"),
                end_of(near_mixture())[0],
                "overlaps of the mixture at the time of SGD",
            ),
        },
        channels=list(CHANNELS),
        strength=list(STRENGTHS),
    )


def simulate() -> xr.Dataset:
    """SGD from the neighbourhood of a mixture."""
    found = [
        mean_and_error(ends_of_chain(near_mixture(method=method, dimension=N, replicas=replicas, seed=1))[0])
        for method, (N, replicas) in RUNS.items()
    ]
    mean, error = np.swapaxes(found, 0, 1)
    dims = ("sgd_method", "feature", "channel")
    return labelled(
        {"sgd": (dims, mean, "mean overlaps of SGD"), "sgd_error": (dims, error, "their standard error")},
        sgd_method=list(RUNS),
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on mixtures."""
    strength, found = numbers["strength"], []
    window = (strength > TILTED * numbers["collapse"]) & (strength < numbers["mixing"])
    above = strength > numbers["mixing"]
    single = numbers["second"] < MIXED
    bounds = f"{float(numbers['collapse']):.4f} and {float(numbers['mixing']):.4f}"
    alone = numbers["second"].sel(strength=0.0)
    found.append(
        Statement(
            "one channel, as each is without a penalty: only a single feature rather than a mixture can be learnt",
            PAPER,
            bool((alone < MIXED).all()),
            f"second overlaps up to {float(alone.max()):.4f}",
        )
    )
    for channels in CHANNELS:
        own, learnt = single.sel(channels=channels), numbers["first"].sel(channels=channels)
        inside = float(numbers["second"].sel(channels=channels).where(window).max())
        outside = float(numbers["second"].sel(channels=channels).where(above).min())
        what = f"{channels} channels"
        found += [
            Statement(
                f"{what}: each learns a single feature, from {TILTED} times the first threshold to the second",
                "theory, section 6",
                bool(own.where(window, True).all() and (learnt.where(window, 1.0) > 0.5).all()),
                f"second overlaps up to {inside:.4f}; thresholds of two channels {bounds}",
            ),
            Statement(
                f"{what}: only a single feature rather than a mixture can be learnt, whatever the penalty",
                f"{PAPER}, carried over to several channels",
                bool(own.where(above, True).all()),
                f"above the second threshold: second overlaps of {outside:.3f} or more",
            ),
        ]
    if "sgd" in numbers:
        mixture = numbers["mixture"]
        away = np.abs(numbers["sgd"] - mixture) / numbers["sgd_error"]
        text = (
            f"SGD, plain and as a chain, stays at the mixture ({float(mixture[0, 0]):.4f}, {float(mixture[0, 1]):.4f})"
        )
        found.append(within_errors(text, "theory, section 4", away, 4.5))  # Student's t of 5 degrees, 8 numbers
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Second overlaps against the strength."""
    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.subplots()
    shift = np.linspace(-0.004, 0.004, STARTS)
    for channels, marker, colour in zip(CHANNELS, "ox", COLOURS, strict=False):
        second = numbers["second"].sel(channels=channels)
        for start in range(STARTS):
            label = f"{channels} channels" if start == 0 else None
            axes.plot(
                numbers["strength"] + shift[start], second[:, start], marker, color=colour, markersize=4, label=label
            )
    for name, label in (("collapse", "collapsed channels part"), ("mixing", "features mix")):
        axes.axvline(float(numbers[name]), color="0.5", linestyle="--" if name == "mixing" else "-", label=label)
    axes.set(xlabel=r"strength of the penalty $\lambda$", ylabel="largest overlap with a second feature")
    axes.legend(fontsize="small")
    return figure


STUDY = Study(theory, judge, draw, simulate)
