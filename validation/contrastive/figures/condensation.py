"""Weights that run away: where a prior's pull is bounded and noise is weak, a few weights come to carry the norm.

No feature can be learnt here (sigma = x^2, Gaussian hidden variable with m2 = 1), so that noise and prior are all there
is: dw = [G w - c phi(w)] dt + sqrt(Lambda) dB with c = tau strength. Time is s = c t, noise is given in units of the
threshold Lambda_c, and steps are c/N = 0.002 for every N. Lines are predictions, points are SGD: 64 runs with
N = 10^3, one with 10^6, which has no spread.

The share of the weights beyond the critical one falls like 2/(e s)^2 under l1, 1/(e (1 + 2 s)) under cauchy, and s^-4
under |w|^1.5. Survivors are what is left of the initial tail, |w| = A (y - theta) under l1, so that their law is that
of extremes: exponential for a Gaussian start, uniform for a uniform one. It is no universal law, and not Lifshitz and
Slyozov's: their growth law selects one with a cut-off at 3/2 of the mean, but here weights grow at a rate linear in
their size, dw/dt = c (w/w_c - 1), the mean size grows like t, and any limit law of extremes keeps its shape.
"""

import math

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import meanfield
from meanfield.extend import PriorSettings
from meanfield.mckean_vlasov.condensation import held_norm
from meanfield.mckean_vlasov.condensation.recognition import LEAST_WEIGHTS
from meanfield.plotting import COLOURS, LINES, MARKERS, curve_style, place_legend
from validation.contrastive.figures.condensation_statements import deviations, judge, lifshitz_slyozov_beyond
from validation.contrastive.figures.condensing import (
    ELAPSED,
    FLOWS,
    LARGER_NOISES,
    LARGER_SIZE,
    LATE_PRIORS,
    LATE_SIZE,
    LEVELS,
    NOISES,
    ROOT,
    SIZES,
    SNAPSHOTS,
    WEAK,
    closed_form_of_l1,
    coarsening_of_sgd,
    flow_of,
    from_uniform_weights,
    late_norms,
    powers,
    problem_with,
    threshold,
)
from validation.study import Study


def theory() -> xr.Dataset:
    """Shares, sizes and thresholds without SGD, and the library's density under cauchy."""
    l1 = closed_form_of_l1(ELAPSED)
    shares = [l1[0], *(np.exp(np.interp(ELAPSED, flow_of(p).elapsed, np.log(flow_of(p).share))) for p in FLOWS[1:])]
    noise = np.linspace(0.02, 2.0, 67)
    held = [[held_norm(PriorSettings(name=prior), 1.0, x * threshold(prior)) for x in noise] for prior in LATE_PRIORS]
    times = np.arange(7.0)
    density = meanfield.solve_density(problem_with("cauchy", WEAK, 1000, times))
    return xr.Dataset(
        {
            "share": (("prior", "elapsed"), shares, {"long_name": "share of weights beyond w_c"}),
            "mean_size": ("elapsed", l1[2], {"long_name": "mean size of surviving weights under l1"}),
            "condensed": (
                ("late_prior", "noise"), np.clip(1 - np.array(held), 0, 1), {"long_name": "condensed norm 1 - n0"}
            ),
            "density_share": (
                "density_time", density["runaway_weights"].values, {"long_name": "share by the density, cauchy"}
            ),
        },
        {
            "elapsed": ELAPSED, "prior": list(FLOWS), "late_prior": list(LATE_PRIORS), "noise": noise,
            "density_time": times,
        },
    )  # fmt: skip


def simulate() -> xr.Dataset:
    """Shares and multipliers in time, laws of survivors, and the norm of the largest weight at late times."""
    parts = [coarsening_of_sgd(prior) for prior in ("l1", "cauchy")]
    return xr.merge([*parts, from_uniform_weights(), powers(), late_norms()])


def draw(numbers: xr.Dataset) -> Figure:
    """Shares and multipliers in time, laws of survivors, and the condensed norm."""
    figure = Figure(figsize=(9.4, 7.4), layout="constrained")
    axes = figure.subplots(2, 2)
    _draw_shares(axes[0, 0], numbers)
    _draw_deviations(axes[0, 1], numbers)
    _draw_laws(axes[1, 0], numbers)
    _draw_thresholds(axes[1, 1], numbers)
    return figure


SIZE_MARKERS = dict(zip(SIZES, "v^so", strict=True))
"""Markers by the dimension."""

FILLINGS = ("none", "full")
"""Filling of markers for l1 and cauchy."""


def _draw_shares(axes: Axes, numbers: xr.Dataset) -> None:
    names = {"l1": "l1", "cauchy": "cauchy", ROOT: "$|w|^{1.5}$"}
    for i, prior in enumerate(FLOWS):
        colour = COLOURS[i]
        axes.loglog(numbers["elapsed"], numbers["share"].sel(prior=prior), label=names[prior], **curve_style(i))
        if prior != ROOT and "sgd_condensed" in numbers:
            for marker, row in zip(SIZE_MARKERS.values(), numbers[f"sgd_share_{prior}"].values, strict=True):
                axes.plot(SNAPSHOTS, np.where(row > 0, row, np.nan), marker, color=colour, ms=5, mfc="none")
    if "sgd_condensed" in numbers:
        share = numbers["sgd_share_root"].values
        axes.plot(numbers["power_time"], np.where(share > 0, share, np.nan), "s", color=COLOURS[2], ms=5, mfc="none")
        for N, marker in SIZE_MARKERS.items():
            axes.plot([], [], marker, color="0.3", mfc="none", label=f"SGD, $N = 10^{math.log10(N):.0f}$")
    axes.set(xlabel=r"$s = c\,t$", ylabel="$P(|w| > w_c)$", ylim=(1e-6, 0.5), title="fewer and fewer weights")
    place_legend(axes, fontsize=8)


def _draw_deviations(axes: Axes, numbers: xr.Dataset) -> None:
    axes.axvline(LEAST_WEIGHTS, color="0.6", lw=1)
    if "sgd_condensed" in numbers:
        left, off = deviations(numbers)
        for k, (colour, filling) in enumerate(zip(COLOURS, FILLINGS, strict=False)):
            for marker, x, y in zip(SIZE_MARKERS.values(), left[k], off[k], strict=True):
                axes.loglog(x, y, marker, color=colour, ms=5, fillstyle=filling)
        for filling, name in zip(FILLINGS, ("empty: l1", "full: cauchy"), strict=True):
            axes.plot([], [], "o", color="0.3", ms=5, fillstyle=filling, label=name)
    ends = np.array([0.2, 2e5])
    axes.loglog(ends, (np.e**2 * ends) ** -0.5, color="0.6", ls=":", label="surviving weights$^{-1/2}$, l1")
    axes.set(
        xlabel="weights left beyond $w_c$, $N f$",
        ylabel="$G$: deviation or spread, relative",
        title="deviation of SGD from the limit",
        xlim=(0.2, 2e5),
        ylim=(5e-4, 1),
    )
    place_legend(axes, fontsize=8)


def _draw_laws(axes: Axes, numbers: xr.Dataset) -> None:
    x = np.linspace(0.0, 7.0, 5001)
    axes.semilogy(x, np.exp(-x), color="0.4", label="exponential")
    axes.semilogy(x[x < 2], 1 - x[x < 2] / 2, color="0.4", ls="--", label="uniform")
    axes.semilogy(x[x < 1.5], lifshitz_slyozov_beyond(x[x < 1.5]), color="0.4", ls=":", label="Lifshitz and Slyozov")
    texts = {"l1": "$|w|$, l1", "cauchy": "$w^2$, cauchy", "uniform": "$|w|$, l1, uniform start"}
    if "sgd_condensed" in numbers:
        for (name, text), colour, shape in zip(texts.items(), (*COLOURS[:2], COLOURS[3]), MARKERS, strict=False):
            style = {"color": colour, "ms": 4, "mfc": "none", "label": text}
            axes.plot(numbers[f"sgd_law_{name}"], 1 - LEVELS, shape, **style)
    axes.set(
        xlabel="excess, in units of its mean",
        ylabel="share of survivors above",
        ylim=(8e-4, 1.2),
        xlim=(0, 7.5),
        title="survivors have a law of extremes (points: SGD)",
    )
    place_legend(axes, fontsize=8)


def _draw_thresholds(axes: Axes, numbers: xr.Dataset) -> None:
    colours = dict(zip(LATE_PRIORS, (*COLOURS[:2], COLOURS[4]), strict=True))
    for (prior, colour), line, shape in zip(colours.items(), LINES, MARKERS, strict=False):
        style = {"color": colour, "ls": line, "label": prior.replace("_", " ")}
        axes.plot(numbers["noise"], numbers["condensed"].sel(late_prior=prior), **style)
        if "sgd_condensed" in numbers:
            at = numbers.sel(late_prior=prior)
            error = 2 * at["sgd_condensed_error"]
            axes.errorbar(NOISES, at["sgd_condensed"], error, fmt=shape, color=colour, ms=5, mfc="none", capsize=2)
    if "sgd_condensed" in numbers:
        axes.errorbar(
            LARGER_NOISES,
            numbers["sgd_larger"],
            2 * numbers["sgd_larger_error"],
            fmt=MARKERS[0],
            color=colours["l1"],
            ms=5,
            capsize=2,
        )
        axes.plot([], [], "o", color="0.3", mfc="none", label=f"empty: SGD, N = {LATE_SIZE}")
        axes.plot([], [], "o", color="0.3", label=f"full: SGD, N = {LARGER_SIZE:,}")
    axes.set(
        xlabel=r"$\Lambda/\Lambda_c$",
        ylabel="norm of the largest weight",
        ylim=(-0.03, 1.05),
        title="norm that one weight carries in the end",
    )
    place_legend(axes, fontsize=8)


STUDY = Study(theory, judge, draw, simulate)
