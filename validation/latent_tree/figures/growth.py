"""Growth of gaps, (15) of the paper, and whether training is faster at the top.

Exactly, at random starts of trees of depth 4 with 10 nodes per latent, polarities from U[0.7, 1] with random signs: the
rate at which the gap of each node's mean pre-activation between the two values of its latent grows under the flow of
all weights, and what (15) predicts for it, o |a|^2 (times two: both branches share their weights). By (15) each gap
grows. Left, the shares of those that do, without nodes that never move; in the middle, rates of those that do against
the prediction, one point for each node of a tree; right, the norm of the gradient of a level over the norm of its
weights, as medians over trees with quartiles, in units of the root.
"""

from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.families.latent_tree.initial import growth_rates
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.tables import Tables
from meanfield.plotting import COLOURS, LINES, MARKERS
from validation.hidden_manifold.figures.discrepancy import written
from validation.latent_tree.figures.theorem_6 import from_the_root, vector_a
from validation.study import Statement, Study

DEPTH, NODES, TREES = 4, 10, 30
NETWORKS: dict[str, dict[str, Any]] = {
    "plain": {"bias": False},
    "normalised": {"bias": True, "output_normalisation": True},
}
SAID = {"plain": "outputs as they are, no biases", "normalised": "outputs normalised, biases"}


def problem_of(network: str, seed: int) -> Problem:
    """A random tree and network."""
    polarity = {"law": "uniform", "low": 0.7, "random_sign": True, "seed": seed}
    data: dict[str, Any] = {
        "tree": {"depth": DEPTH, "polarity": polarity},
        "network": {"nodes_per_latent": NODES, "initial": {"law": "uniform", "seed": seed}, **NETWORKS[network]},
        "time": {"stop": 1.0},
    }
    return Problem.model_validate(data)


def of_tree(network: str, seed: int) -> xr.Dataset:
    """Growth rates, predictions, and relative gradients."""
    problem = problem_of(network, seed)
    found, shape = meanfield.solve(problem, "operator"), problem.shape
    places = [latent - sum(shape.latents[level + 1 :]) for latent, level in enumerate(shape.level_of)]
    sizes = np.array(
        [
            np.sum(vector_a(problem, found.selectivity.values, level, place) ** 2)
            for level, place in zip(shape.level_of, places, strict=True)
        ]
    )
    scale = np.array([np.linalg.norm(W) for W in problem.initial_weights.W])
    return xr.Dataset(
        {
            "growth_rate": found.growth_rate,
            "predicted_rate": ("latent", 2.0 * from_the_root(problem) ** 2 * sizes),
            "frozen_rate": ("node", frozen(problem)),
            "relative_gradient": found.gradient_norm / scale,
        }
    ).drop_attrs()


def frozen(problem: Problem) -> np.ndarray:
    """Growth rates at the root while its weights alone move."""
    tables, weights = Tables(problem), problem.initial_weights
    _, gradient = tables.loss_and_gradient(weights)
    for part in (*gradient.W[:-1], *gradient.b[:-1]):
        part[:] = 0.0
    return growth_rates(tables, weights, -gradient.vector)[0]


def theory() -> xr.Dataset:
    """All trees, with each kind of output."""
    parts = [xr.concat([of_tree(network, seed) for seed in range(TREES)], "tree") for network in NETWORKS]
    return xr.concat(parts, "network").assign_coords(network=list(NETWORKS))


def shares(numbers: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Share of gaps that grow among those that move, by network and level, and its standard error over trees."""
    rate = numbers.growth_rate
    grows = (rate > 0.0).where(rate.notnull() & (rate != 0.0)).mean("node")
    each = grows.groupby("latent_level").mean()
    return each.mean("tree"), each.std("tree", ddof=1) / np.sqrt(numbers.sizes["tree"])


def relative(numbers: xr.Dataset) -> xr.DataArray:
    """Relative gradient of levels in units of the root's."""
    return numbers.relative_gradient / numbers.relative_gradient.sel(level=DEPTH)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether gaps grow, and where training is fast."""
    mean, error = shares(numbers)
    found = []
    for network, said in SAID.items():
        values = [(float(mean.sel(network=network, latent_level=k)), float(error.sel(network=network, latent_level=k)))
                  for k in range(DEPTH, 0, -1)]  # fmt: skip
        found.append(
            Statement(
                f"{said}: gaps of lucky nodes grow",
                "paper, (15)",
                all(share > 1.0 - 3.0 * off for share, off in values),
                f"shares of gaps that grow, from the root down: {', '.join(written(*value) for value in values)}",
            )
        )
    plain = numbers.sel(network="plain")
    ratio = plain.frozen_rate / plain.predicted_rate.isel(latent=0)
    moving = plain.growth_rate.isel(latent=0) / plain.predicted_rate.isel(latent=0)
    found.append(
        Statement(
            "outputs as they are: with the levels below frozen, gaps at the root grow at the rate of (15) times 2",
            "ours",
            float(abs(ratio - 1.0).max()) < 1e-6,
            f"{float(ratio.min()):.8f} to {float(ratio.max()):.8f} times; {float(moving.median()):.1f} times in the "
            "median while all levels move",
        )
    )
    for network, said in SAID.items():
        medians = relative(numbers).sel(network=network).median("tree")
        values = [float(medians.sel(level=k)) for k in range(DEPTH, 0, -1)]
        found.append(
            Statement(
                f"{said}: training is faster at the top layers",
                "paper, section 6.1.2",
                all(above > below for above, below in pairwise(values)),
                "gradient over weights, from the root down, in its units: "
                + ", ".join(f"{value:.2f}" for value in values),
            )
        )
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Shares, rates, relative gradients."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 3.7), layout="constrained")
    mean, error = shares(numbers)
    levels = np.arange(1, DEPTH + 1)
    for place, (network, said) in enumerate(SAID.items()):
        style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": LINES[place], "capsize": 3, "label": said}
        left.errorbar(levels, mean.sel(network=network), 3 * error.sel(network=network), **style)
        each = relative(numbers).sel(network=network).sortby("level")
        low, half, high = (each.quantile(q, "tree") for q in (0.25, 0.5, 0.75))
        right.errorbar(levels, half, [half - low, high - half], **style)
    left.axhline(0.5, color="0.6", lw=0.8)
    left.set(ylim=(0.3, 1.1), xticks=levels, xlabel="level, leaves at 0", ylabel="share of gaps that grow")
    right.set(ylim=(0, None), xticks=levels, xlabel="level, leaves at 0", ylabel="relative gradient, root = 1")
    plain = numbers.sel(network="plain")
    for place, level in enumerate(range(DEPTH, 0, -1)):
        some = plain.isel(latent=plain.latent_level == level)
        predicted, rate = xr.broadcast(some.predicted_rate, some.growth_rate)
        style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "ms": 2.5, "alpha": 0.5}
        label = f"level {level}" + (" (root)" if level == DEPTH else "")
        middle.plot(
            predicted.values.ravel(), rate.where(rate > 0).values.ravel(), label=label, rasterized=True, **style
        )
    ends = np.array([float(plain.predicted_rate.min()), float(plain.predicted_rate.max())])
    middle.plot(ends, ends, color="0.2", lw=1.0)
    middle.set(xscale="log", yscale="log", xlabel=r"predicted rate $2 o |a|^2$", ylabel="growth rate, plain outputs")
    left.legend(frameon=False, fontsize=8, loc="upper left")
    middle.legend(frameon=False, fontsize=8, markerscale=2)
    return figure


STUDY = Study(theory, judge, draw)
