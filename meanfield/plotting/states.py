"""Plots of stationary states: their densities, growth rates of perturbations, and branches as a number varies."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.comparison.distributions import marginal_of
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.numerics.distances import distribution_function
from meanfield.plotting.arguments import draws
from meanfield.plotting.histograms import density_curve
from meanfield.plotting.legends import share_legend
from meanfield.plotting.style import COLOURS, LINES, key_words
from meanfield.plotting.trajectories import entries
from meanfield.plotting.weights import visible_range
from meanfield.results.result import Result
from meanfield.typing import FloatArray

STABILITY_STYLES: dict[int, dict[str, Any]] = {
    1: {"color": COLOURS[0], "linestyle": "-", "linewidth": 2.0, "label": "stable"},
    0: {"color": COLOURS[4], "linestyle": ":", "linewidth": 2.0, "label": "marginal"},
    -1: {"color": COLOURS[1], "linestyle": "--", "linewidth": 1.3, "label": "unstable"},
}


VERDICTS = {1: "stable", 0: "marginal", -1: "unstable"}

STATE_CURVES: dict[int, list[tuple[str, Any]]] = {
    1: [(COLOURS[0], "-"), (COLOURS[2], LINES[5]), (COLOURS[5], "-.")],
    0: [(COLOURS[3], ":")],
    -1: [(COLOURS[1], "--"), (COLOURS[4], LINES[4])],
}
"""Colours and line styles of states by stability: cold colours and long lines for stable ones, warm and dashed else."""

STATE_MARKERS: dict[int, dict[str, Any]] = {
    1: {"marker": "o", "markerfacecolor": "black"},
    0: {"marker": "^", "markerfacecolor": "0.6"},
    -1: {"marker": "o", "markerfacecolor": "white"},
}


@draws(stationary="P stability")
def plot_state_densities(stationary: xr.Dataset, axes: Axes) -> Axes:
    """Density of w alone in each stationary state, by stability; states of the same density share a curve.

    Parameters
    ----------
    stationary : xarray.Dataset
        From `meanfield.find_stationary_states`.
    """
    if "channel" in stationary.dims and np.any(stationary["stability"] >= 0):
        stationary = stationary.isel(state=stationary["stability"].values >= 0)  # there are dozens of unstable ones
    P, verdicts = marginal_of(Result.of(stationary)).values, stationary["stability"].values
    curves = P[0].size // P.shape[1] if len(P) else 1  # a state has as many as there are channels
    P, verdicts = np.moveaxis(P, -1, 1).reshape(-1, P.shape[1]) if P.ndim > 2 else P, np.repeat(verdicts, curves)
    edges, styles = edges_of(stationary), {stability: cycle(of_it) for stability, of_it in STATE_CURVES.items()}
    for alike in _alike(P, verdicts):
        stability = int(verdicts[alike[0]])
        states = stationary.isel(state=[i // curves for i in alike])
        name = str(states["arrangement"].values[0]) if "arrangement" in states else _names(_cosines(states))
        label = f"{name}, {VERDICTS[stability]}"
        colour, line = next(styles[stability])
        axes.plot(*density_curve(edges, P[alike[0]]), color=colour, linestyle=line, label=label)
    axes.set(xlabel="weight $w$", ylabel="stationary density $P(w)$")
    if len(P):
        axes.set_ylim(bottom=0.0)
        ranges = [visible_range(F, edges) for F in distribution_function(edges, P)]
        axes.set_xlim(min(low for low, _ in ranges), max(high for _, high in ranges))
    return axes


@draws(stationary="stability growth_rate")
def plot_state_stability(stationary: xr.Dataset, axes: Axes) -> Axes:
    """Largest growth rate of small perturbations against cosine similarity |q| of all stationary states."""
    axes.axhline(0.0, color="0.6", lw=0.8)
    similarity = np.linalg.norm(_cosines(stationary), axis=1)
    curves = similarity.size // max(len(similarity), 1)  # a state has as many as there are channels
    verdicts, rates = (np.repeat(stationary[name].values, curves) for name in ("stability", "growth_rate"))
    for stability, style in STATE_MARKERS.items():
        chosen = verdicts == stability
        if chosen.any():
            shown: dict[str, Any] = style | {"linestyle": "", "markeredgecolor": "black", "label": VERDICTS[stability]}
            axes.plot(similarity.ravel()[chosen], rates[chosen], zorder=4, clip_on=False, **shown)
    axes.set(xlabel="cosine similarity $|q|$", ylabel="largest growth rate", xlim=(-0.03, 1.03))
    return axes


def _cosines(stationary: xr.Dataset) -> FloatArray:
    """Overlaps q with features, shape (states, features, ...), or R/sqrt Q of the one student of an update rule."""
    if "q" in stationary:
        return np.asarray(stationary["q"].values)
    return np.asarray(stationary["R"].values[:, 0] / np.sqrt(stationary["Q"].values[:, 0]))


def _alike(P: FloatArray, stability: FloatArray) -> list[list[int]]:
    """Groups of states that share a density and a verdict, as copies by flips of features do."""
    groups: list[list[int]] = []
    for i, density in enumerate(P):
        for group in groups:
            first = group[0]
            # densities that differ by less, relative to the largest value, are drawn once
            if stability[first] == stability[i] and np.abs(P[first] - density).max() <= 1e-6 * density.max():
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _names(q: FloatArray) -> str:
    """Overlaps of equal states, whose signs differ."""
    shown = ", ".join(f"{value:.3f}" for value in np.abs(q[0]))
    symbol = "|q|" if len(q[0]) == 1 else "|q_k|"
    return f"${symbol} = {shown}$" if len(q) == 1 else f"${symbol} = {shown}$ ({len(q)} states)"


_MATRICES = {"R": "overlap with features $R_{km}$", "Q": "overlap of students $Q_{kl}$", "v": "side variables"}
"""Order parameters of update rules, and labels of their panels."""


@draws(continuation="parameter branch")
def plot_branches(continuation: xr.Dataset) -> Figure:
    """Branches of states against the number that varies: a panel for each overlap, one for r if it is not 0.

    Overlaps of several channels with a feature share its panel, and so do all entries of R, Q or v of update rules.
    Stable states are solid, unstable ones dashed, marginal ones dotted; circles are turning points.

    Parameters
    ----------
    continuation : xarray.Dataset
        From `meanfield.contrastive.continue_stationary_states`, or `continue_fixed_points` of any family.
    """
    panels: list[tuple[str, xr.DataArray]] = [
        (label, continuation[name])
        for name, label in _MATRICES.items()
        if name in continuation and np.any(np.ptp(continuation[name].values, axis=0) > 1e-9)  # more than rounding
    ]
    if "q" in continuation:
        features = continuation.sizes["feature"]
        labels = ["overlap $q$"] if features == 1 else [f"overlap $q_{k + 1}$" for k in range(features)]
        panels += [(label, continuation["q"][:, k]) for k, label in enumerate(labels)]
    if "M" in continuation:
        pairs = entries(continuation["M"], "point")
        panels += [(f"overlap of channels $M_{{{i}}}$", continuation["M"].isel(p)) for i, p in pairs if i[0] != i[1]]
    if "r" in continuation and np.any(continuation["r"] != 0):
        panels.append((r"prior work $r = E[w\,\phi(w)]$", continuation["r"]))
    figure = Figure(figsize=(4.6 * len(panels), 3.8), layout="constrained")
    for axes, (label, values) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        for each in values.values.reshape(len(values), -1).T:  # of each channel, where there are several
            _plot_branch_values(continuation, each, axes)
        axes.set(xlabel=key_words(continuation, continuation["parameter"].attrs["key"]), ylabel=label)
    share_legend(figure)
    figure.suptitle(continuation.attrs["title"], parse_math=False)
    return figure


def _plot_branch_values(continuation: xr.Dataset, values: FloatArray, axes: Axes) -> None:
    p, turning = continuation["parameter"].values, continuation["turning"].values == 1
    # A turning point itself is marginal and has a sign of its own.
    verdicts = np.where(turning, np.roll(continuation["stability"].values, 1), continuation["stability"].values)
    for number in np.unique(continuation["branch"]):
        index = np.flatnonzero(continuation["branch"].values == number)
        cuts = np.flatnonzero(np.diff(verdicts[index])) + 1
        for piece in np.split(index, cuts):
            style = STABILITY_STYLES[int(verdicts[piece[0]])]
            shown = np.arange(piece[0], min(piece[-1] + 2, index[-1] + 1))  # on to where the next piece begins
            axes.plot(p[shown], values[shown], **style)
    if turning.any():
        style = {"color": COLOURS[-1], "markerfacecolor": "white", "label": "turning point", "zorder": 3}
        axes.plot(p[turning], values[turning], "o", **style)
