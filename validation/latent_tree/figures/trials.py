"""Which trials print has: means over ten successive seeds of the public code before training, against print.

The seed of the public code decides a tree and the initial weights. On the left, how far the 15 means with 10 nodes of
table 6 are from print if the trials have ten successive seeds, with random signs of polarities and with positive ones;
the dotted line is what rounding to two digits leaves. On the right, all 30 means by the seeds 1 to 10: with 2 nodes
some of the scores of print are rounding in single precision.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, LINES, MARKERS
from validation.latent_tree.figures.printed import DEVIATIONS, LATENTS, LOWS, NODES, ROUNDING_ERROR, TRIALS, printed
from validation.latent_tree.figures.runs import LATENTS as PLACES
from validation.latent_tree.figures.seeds import TRIALS as SEEDS
from validation.latent_tree.figures.trees import READINGS, problem_of, scores, unnormalised
from validation.study import Statement, Study

ALL_SEEDS = range(SEEDS.stop + 9)
"""Seeds that are looked at."""

LARGEST = 0.005 + 4 * 0.0005
"""Rounding at most, and four standard errors of a mean over ten trials of correlations that 64000 samples give."""

SAID = {"as printed": "positive", "public code": "random signs"}


def theory() -> xr.Dataset:
    """Exact scores before training by sign, seed, latent, law of polarities and number of nodes."""
    found = np.empty((len(SAID), len(ALL_SEEDS), len(LOWS), len(NODES), len(LATENTS)))
    for sign, seed, low, nodes in np.ndindex(found.shape[:-1]):
        problem = problem_of(READINGS[list(SAID)[sign]], LOWS[low], NODES[nodes], ALL_SEEDS[seed])
        tables = unnormalised(problem)
        found[sign, seed, low, nodes] = scores(tables, tables.forward(problem.initial_weights))[list(PLACES.values())]
    over = ("sign", "seed", "low", "nodes", "latent")
    places = {"sign": list(SAID.values()), "seed": list(ALL_SEEDS)}
    return printed().sel(column="initial").assign_coords(places).assign(score=(over, found))


def windows(numbers: xr.Dataset) -> xr.DataArray:
    """Root mean square of differences from print with 10 nodes, by sign and first of ten seeds."""
    mean = numbers.score.sel(nodes=10).rolling(seed=TRIALS).mean().dropna("seed")
    off = ((mean - numbers["mean"].sel(nodes=10)) ** 2).mean(("low", "latent")) ** 0.5
    return off.assign_coords(seed=off.seed - (TRIALS - 1)).rename(seed="first")


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether one row of seeds has the printed numbers, and no other."""
    mine = numbers.score.sel(sign="random signs", seed=list(SEEDS))
    off = abs(mine.mean("seed") - numbers["mean"])
    more = (numbers["mean"] - mine.mean("seed")).sel(nodes=2)
    spread = np.array(DEVIATIONS.split(), dtype=float).reshape(*numbers["mean"].shape, -1)[..., 0] / 100.0
    wide = abs(mine.std("seed", ddof=1).transpose(*numbers["mean"].dims) - spread).sel(nodes=10)
    by = windows(numbers)
    random, positive = by.sel(sign="random signs"), by.sel(sign="positive")
    other = random.where(random.first != SEEDS[0]).min()
    own = float(random.sel(first=SEEDS[0]))
    return [
        Statement(
            "trials have the seeds 1 to 10 and random signs: 15 means and deviations with 10 nodes before training",
            "ours",
            bool((off.sel(nodes=10) < LARGEST).all()) and bool((wide < 2 * LARGEST).all()),
            f"means off by {float(off.sel(nodes=10).max()):.4f} at most, deviations by {float(wide.max()):.4f}; "
            f"{own:.4f} in the root mean square of means, where rounding leaves {ROUNDING_ERROR:.4f}",
        ),
        Statement(
            "no other ten successive seeds do",
            "ours",
            bool(other > 2.0 * own),
            f"{float(other):.4f} at least with first seeds {int(by.first[0])} to {int(by.first[-1])}",
        ),
        Statement(
            "polarities are positive",
            "paper, appendix D.1",
            bool(positive.min() < 2.0 * own),
            f"{float(positive.sel(first=SEEDS[0])):.4f} with the seeds 1 to 10, {float(positive.min()):.4f} at least",
        ),
        Statement(
            "with 2 nodes print has the exact means for s0, s101 and s0111, and more for s and s1",
            "ours",
            bool((abs(more.sel(latent=["s0", "s101", "s0111"])) < LARGEST).all())
            and bool((more.sel(latent=["s", "s1"]) > -LARGEST).all()),
            f"off by {float(abs(more.sel(latent=['s0', 's101', 's0111'])).max()):.4f} at most, and by "
            f"{float(more.sel(latent=['s', 's1']).min()):+.3f} to {float(more.sel(latent=['s', 's1']).max()):+.3f}",
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Differences by first seed, and means against print."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    for place, (sign, one) in enumerate(windows(numbers).groupby("sign")):
        style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": LINES[place], "ms": 5}
        left.plot(one.first, one.squeeze(), label=str(sign), **style)
    left.axhline(ROUNDING_ERROR, color="0.3", ls=":")
    left.set(yscale="log", xlabel="first of ten seeds", ylabel="root mean square of differences")
    left.legend(frameon=False)
    mine = numbers.score.sel(sign="random signs", seed=list(SEEDS)).mean("seed")
    right.axhspan(-0.005, 0.005, color="0.85", label="rounding")
    for place, nodes in enumerate(NODES):
        one = numbers["mean"].sel(nodes=nodes).stack(entry=("latent", "low"))
        difference = one - mine.sel(nodes=nodes).stack(entry=("latent", "low"))
        style = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "ms": 5}
        right.plot(one, difference, label=f"{nodes} nodes", **style)
    right.set(xlabel="printed mean before training", ylabel="printed minus exact mean")
    right.legend(frameon=False)
    return figure


STUDY = Study(theory, judge, draw)
