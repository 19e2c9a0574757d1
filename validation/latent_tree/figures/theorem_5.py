"""Theorem 5 of the paper: random nodes of which one is lucky, without a limit and without bounds.

A latent with two children of 2 to 100 nodes each, trees and child networks at random; for every one of them 20000
random nodes are drawn, and those are lucky whose mean pre-activation is above sqrt(c) of its standard deviations where
the latent is 1 and below 0 where it is 0, (143). Left, the share of them over the chance of lemma 8, by quadrature,
with the tree's own gamma: 1 in the limit of many inputs. In the middle, that share over the printed bound (112) for the
chance. Bars are three standard errors over trees. Right, half gaps of the activations of lucky nodes against what (130)
bounds them by from below, on trees where most of |a|^2 is of inputs with a > 0: its proof assumes it without loss of
generality, but on other trees it is for nodes whose gap is negative.

(130) is vacuous with the paper's polarities, here from U[0.8, 1]: its sigma_l, the deviation of an input given its own
latent, outweighs the other terms. It is above 0 where leaves follow their latents nearly always, at polarities from
U[0.99, 1], of which all points with a positive bound are.
"""

from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.families.latent_tree.problem import Problem
from meanfield.plotting import COLOURS, LINES, MARKERS
from validation.latent_tree.figures.lucky import chance, printed_bound
from validation.latent_tree.figures.trees import law_of_leaves, unnormalised
from validation.study import Statement, Study

WIDTHS = (2, 5, 20, 100)
"""Nodes of each child."""

SQUARES = (0.25, 1.0, 2.0)
"""Values of c."""

TREES, DRAWN = 30, 20_000
LOW, NEARLY_ONE = 0.8, 0.99
"""Least polarities: of the paper's trees, and of some where (130) is above 0."""

TOLERANCE = 1e-12
"""Distance from 1 of a correlation that is 1: only one input of the latent is ever active."""


class Inputs(NamedTuple):
    """Inputs of a latent's nodes.

    Parameters
    ----------
    f : ndarray, shape (configurations, inputs)
    P : ndarray, shape (2, configurations)
        Probabilities given the value of the latent.
    each : ndarray, shape (inputs,)
        Largest variance of each input given the value of its own latent.
    rho, s : ndarray, shape (inputs,)
        Polarity of the edge above each input's latent, and its selectivity.
    """

    f: np.ndarray
    P: np.ndarray
    each: np.ndarray
    rho: np.ndarray
    s: np.ndarray


def inputs_of(width: int, seed: int, low: float) -> Inputs:
    """Activations of two children with random weights, for all configurations of their leaves."""
    data: dict[str, Any] = {
        "tree": {"depth": 2, "polarity": {"law": "uniform", "low": low, "random_sign": True, "seed": seed}},
        "network": {"nodes_per_latent": width, "initial": {"law": "uniform", "seed": seed}},
        "time": {"stop": 1.0},
    }
    tables = unnormalised(Problem.model_validate(data))
    found = tables.forward(tables.problem.initial_weights)
    left, right = found.after[1]
    rows = np.array([np.concatenate([a, b]) for a in left for b in right])
    own = tables.given_latent[1]  # (children, 2, configurations)
    mean, square = own @ found.after[1], own @ found.after[1] ** 2
    each = (square - mean**2).max(axis=1).ravel()
    rho = np.repeat(tables.problem.tree.polarities[1], width)
    return Inputs(rows, law_of_leaves(tables), each, rho, 0.5 * (mean[:, 1] - mean[:, 0]).ravel())


def of_tree(width: int, seed: int, low: float) -> dict[str, np.ndarray]:
    """Shares of lucky nodes, chances, and what (130) and (155) say of single nodes."""
    x = inputs_of(width, seed, low)
    count = x.f.shape[1]
    w = np.random.default_rng([seed, width]).uniform(-1.0, 1.0, (DRAWN, count)) * np.sqrt(3.0 / count)
    before = w @ x.f.T
    v0, v1 = (before @ row for row in x.P)
    means = x.P @ x.f
    u0, u1 = (np.linalg.norm(mean) for mean in means)
    gamma = float(means[0] @ means[1] / (u0 * u1))
    gamma = 1.0 if 1.0 - gamma < TOLERANCE else gamma
    active = np.maximum(before, 0.0)
    s0, s1 = (active @ row for row in x.P)
    within = before**2 @ x.P[1] - v1**2
    alone = w**2 @ (x.P[1] @ x.f**2 - means[1] ** 2)
    opposite = np.sum(np.minimum(x.rho * x.s, 0.0) ** 2) > np.sum(np.maximum(x.rho * x.s, 0.0) ** 2)
    values: dict[str, list[float]] = {name: [] for name in ("share", "chance", "printed", "bound", "least", "broken")}
    for c in SQUARES:
        lucky = (v1 >= np.sqrt(c / count) * u1) & (v0 < 0.0)
        scale = np.mean(x.s**2 * ((c + 6.0) / 6.0 * x.rho**2 - 1.0)) - x.each.max()
        half, size = 0.5 * (s1 - s0)[lucky], 0.5 * (s1 + s0)[lucky]
        bound = 0.75 * scale / size
        values["share"].append(lucky.mean())
        values["chance"].append(chance(c, gamma))
        values["printed"].append(float(printed_bound(np.array(c), gamma)) if gamma < 1.0 else 0.0)
        values["bound"].append(bound.mean() if lucky.any() else np.nan)
        values["least"].append(half.min() if lucky.any() else np.nan)
        values["broken"].append(float(np.mean(np.abs(half) < bound)) if lucky.any() else np.nan)
    return {name: np.array(value) for name, value in values.items()} | {
        "gamma": np.array(gamma),
        "variance_ratio": np.quantile(within / alone, [0.05, 0.5, 0.95]),
        "opposite": np.array(float(opposite)),
    }


def theory() -> xr.Dataset:
    """All widths and trees, by least polarity."""
    return xr.concat([_trees(low) for low in (LOW, NEARLY_ONE)], xr.IndexVariable("low", [LOW, NEARLY_ONE]))


def _trees(low: float) -> xr.Dataset:
    found = [[of_tree(width, seed, low) for seed in range(TREES)] for width in WIDTHS]
    last = {"variance_ratio": ("quantile",), "opposite": (), "gamma": ()}
    return xr.Dataset(
        {
            name: (
                ("width", "tree", *last.get(name, ("c",))),
                np.array([[one[name] for one in row] for row in found]),
            )
            for name in found[0][0]
        },
        {"width": list(WIDTHS), "c": list(SQUARES), "quantile": [0.05, 0.5, 0.95]},
    )


def ratio(numbers: xr.Dataset, to: str) -> xr.DataArray:
    """Share of lucky nodes over a prediction, trees weighted by it."""
    return numbers.share.sum("tree") / numbers[to].sum("tree")


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Which part of the theorem holds."""
    all_trees, numbers = numbers, numbers.sel(low=LOW)
    exact, printed = ratio(numbers, "chance"), ratio(numbers, "printed")
    wide, narrow = exact.sel(width=WIDTHS[-1]), exact.sel(width=WIDTHS[0])
    assumed = all_trees.where(all_trees.opposite == 0.0)
    informative = (assumed.bound > 0.0).where(assumed.bound.notnull()).mean(("width", "tree", "c"))
    others = all_trees.broken.where(all_trees.opposite > 0.0)
    breaking = (others > 0.0).where(others.notnull()).sel(low=NEARLY_ONE).mean()
    middle = numbers.variance_ratio
    return [
        Statement(
            "with many inputs lucky nodes have the chance of the normal law",
            "ours",
            bool((abs(wide - 1.0) < 0.1).all()),
            f"{float(wide.min()):.3f} to {float(wide.max()):.3f} times with {2 * WIDTHS[-1]} inputs, "
            f"{float(narrow.min()):.2f} to {float(narrow.max()):.2f} times with {2 * WIDTHS[0]}; gamma is "
            f"{float(numbers.gamma.min()):.2f} to {float(numbers.gamma.max()):.2f}",
        ),
        Statement(
            "at least the share (112) of the nodes is lucky",
            "paper, theorem 5",
            bool((printed >= 1.0).all()),
            f"{float(printed.min()):.2f} to {float(printed.max()):.2f} times that",
        ),
        Statement(
            "half the gap of a lucky node's activations is (130) or more, if most of |a|^2 is of inputs with a > 0, as "
            "the proof assumes",
            "paper, theorem 5",
            False if bool((assumed.broken > 0.0).any()) else None if float(informative.max()) == 0.0 else True,
            f"{float(assumed.broken.max()):.0%} of the nodes break it; it is above 0, and says something, for "
            + ", ".join(
                f"{float(share):.0%} of the trees and c with polarities from U[{float(share.low):g}, 1]"
                for share in informative
            ),
        ),
        Statement(
            "the same on all other trees, for a lucky node whose gap is positive",
            "paper, theorem 5",
            not bool((others > 0.0).any()),
            f"some nodes break it for {float(breaking):.0%} of these trees and c with polarities from "
            f"U[{NEARLY_ONE:g}, 1]: the proof then gives nodes of negative gap",
        ),
        Statement(
            "the variance of a pre-activation is the sum over inputs of those of its parts",
            "paper, (155)",
            bool(abs(middle - 1.0).max() < 1e-9),
            f"{float(middle.sel(quantile=0.05).min()):.2f} to {float(middle.sel(quantile=0.95).max()):.1f} times for "
            "nine nodes of ten: inputs from one child are correlated",
        ),
        Statement(
            "the lucky node's gap 2 w.a is positive",
            "paper, theorem 5",
            not bool(numbers.opposite.any()),
            f"for {float(numbers.opposite.mean()):.0%} of the trees the proof gives a node whose gap is negative",
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Shares over chances and bounds, and half gaps."""
    assumed, numbers = numbers.where(numbers.opposite == 0.0), numbers.sel(low=LOW)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 3.6), layout="constrained")
    for axes, to in ((left, "chance"), (middle, "printed")):
        values = ratio(numbers, to)
        spread = (numbers.share / numbers[to]).std("tree", ddof=1) / np.sqrt(numbers.sizes["tree"])
        for place, c in enumerate(SQUARES):
            style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": LINES[place], "capsize": 3}
            axes.errorbar(2 * values.width, values.sel(c=c), 3 * spread.sel(c=c), label=f"$c = {c:g}$", **style)
        axes.axhline(1.0, color="0.5", lw=0.8)
        axes.set(xscale="log", xlabel="inputs of a node")
        axes.set_xticks([2 * width for width in WIDTHS], [str(2 * width) for width in WIDTHS])
        axes.minorticks_off()
        axes.legend(frameon=False)
    left.set_ylabel("share of lucky nodes over chance")
    middle.set_ylabel("the same over (112)")
    for place, c in enumerate(SQUARES):
        some = assumed.sel(c=c).stack(point=("low", "width", "tree"))
        style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "ms": 4, "mfc": "none"}
        right.plot(some.bound, some.least, label=f"$c = {c:g}$", **style)
    ends = np.array([float(assumed.bound.min()), float(assumed.bound.max())])
    right.plot(ends, ends, color="0.5", lw=0.8)
    right.set(xlabel="bound (130), mean of a tree's lucky nodes", ylabel="least half gap of these")
    right.locator_params(axis="x", nbins=4)
    right.legend(frameon=False)
    return figure


STUDY = Study(theory, judge, draw)
