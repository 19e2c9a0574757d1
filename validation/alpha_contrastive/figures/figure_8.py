"""Figure 8 of the paper: the objective of one filter along the circle, for nine points and the uniform importance.

The paper counts at least eight local maxima of ReLU against two of the linear filter, and takes local maxima for what
its section 3 analyses: locally maximal eigenvectors of A(w), to which power iteration converges. All maxima can be
enumerated here. There are nine, and each is on a wall, where a point is about to be switched off: the objective has a
kink there, and the maximum is the eigenvector of no matrix. Triangles are 300 filters after SGD in batches of 2000.
"""

from __future__ import annotations

import time

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.plotting import curve_style
from validation.alpha_contrastive.figures.one_layer import NINE, Array, angles_of, apart, make_problem, train_filters
from validation.study import Statement, Study

SCAN = 400_000
"""Angles of the scan that enumeration is held against."""

ANGLES_SHOWN = 721
FILTERS, BATCH, RATE, STOP = 300, 2000, 0.1, 1200.0

AT_REST = 0.03
"""Distance from a maximum, in radians, at which a filter of SGD is at rest; maxima are 0.1 apart and more."""

MOST_SECONDS = 0.05
"""Processor time within which all maxima of the figure should be known."""

MOST_PRINCIPAL = 4
"""The paper's bound for principal axes in the plane, both signs of both."""


def objective(activation: str, theta: Array) -> Array:
    """Half the variance of the output: the definition, for the scan."""
    z = np.cos(theta)[:, None] * NINE.points[:, 0] + np.sin(theta)[:, None] * NINE.points[:, 1]
    return np.asarray(0.5 * (np.maximum(z, 0.0) if activation == "relu" else z).var(axis=1))


def maxima_of_scan(activation: str) -> Array:
    """Angles at which the objective is above both neighbours."""
    theta = np.linspace(-np.pi, np.pi, SCAN, endpoint=False) + 1e-3 / SCAN
    height = objective(activation, theta)
    return np.asarray(theta[(height > np.roll(height, 1)) & (height > np.roll(height, -1))])


def power_iteration(theta: Array, steps: int = 2000) -> Array:
    """Length of the last step of w <- A(w) w/|A(w) w| from each angle."""
    w = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    last = w
    for _ in range(steps):
        active = (w @ NINE.points.T > 0.0) / len(NINE.points)
        first = active @ NINE.points
        second = np.einsum("fb,bi,bj->fij", active, NINE.points, NINE.points)
        last, w = w, np.einsum("fij,fj->fi", second - first[:, :, None] * first[:, None, :], w)
        w /= np.linalg.norm(w, axis=1, keepdims=True)
    return np.asarray(np.linalg.norm(w - last, axis=1))


def theory() -> xr.Dataset:
    """Maxima of both filters, and the curves."""
    theta = np.linspace(-np.pi, np.pi, ANGLES_SHOWN)
    found: dict[str, tuple[str, Array]] = {}
    for activation in ("relu", "linear"):
        points = meanfield.solve(make_problem(activation, NINE.table), "critical_points")
        stable = points.isel(point=points["stable"].values > 0)
        here = f"maximum_{activation}"
        found[f"angle_{activation}"] = (here, angles_of(stable["w"].values))
        for name in ("energy", "basin_share", "wall", "lme"):
            found[f"{name}_{activation}"] = (here, stable[name].values)
        found[f"scan_{activation}"] = (f"scanned_{activation}", maxima_of_scan(activation))
        found[f"curve_{activation}"] = ("theta", objective(activation, theta))
    found["power_step"] = ("start", power_iteration(np.linspace(-np.pi, np.pi, 300, endpoint=False) + 1e-3))
    return xr.Dataset(found, {"theta": theta})


def simulate() -> xr.Dataset:
    """SGD of filters that start evenly, each in batches of its own; and the time that enumeration takes."""
    theta = np.linspace(-np.pi, np.pi, FILTERS, endpoint=False) + np.pi / FILTERS
    ends = train_filters(NINE, theta[:, None], np.inf, STOP, RATE, BATCH, seed=0)[:, 0]
    problem, seconds = make_problem("relu", NINE.table), []
    for _ in range(5):
        started = time.process_time()
        meanfield.solve(problem, "critical_points")
        seconds.append(time.process_time() - started)
    return xr.Dataset({"sgd_end": ("filter", (ends + np.pi) % (2.0 * np.pi) - np.pi), "sgd_seconds": min(seconds)})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on the maxima."""
    angle, count = numbers["angle_relu"].values, numbers.sizes["maximum_relu"]
    linear, orthogonal = numbers["angle_linear"].values, np.abs(np.cos(angle[:, None] - angle[None]))
    walls, eigenvectors = int(numbers["wall_relu"].sum()), int(numbers["lme_relu"].sum())
    converged = int(np.count_nonzero(numbers["power_step"] < 1e-6))
    off = apart(numbers["scan_relu"].values, angle)
    same = numbers.sizes["scanned_relu"] == count and bool(np.all(off < 2.0 * np.pi / SCAN))
    found = [
        Statement("ReLU has at least 8 local maxima", "paper, figure 8", count >= 8, f"{count}"),
        Statement(
            "more than principal axes can have in the plane, 4",
            "paper, appendix E.1",
            count > MOST_PRINCIPAL,
            f"{count}",
        ),
        Statement(
            "a linear filter has two, plus and minus the first principal axis",
            "paper, figure 8",
            len(linear) == 2 and bool(numbers["lme_linear"].all()),
            f"{len(linear)} maxima, {abs(linear[0] - linear[1]) / np.pi:.6f} pi apart, "
            f"{int(numbers['lme_linear'].sum())} of them top eigenvectors",
        ),
        Statement(
            "the maxima of ReLU are not orthogonal to each other",
            "paper, appendix E.1",
            orthogonal.min() > 1e-6,
            f"absolute cosines of two are {orthogonal.min():.3f} and more",
        ),
        Statement(
            "the maxima are locally maximal eigenvectors",
            "paper, sections 3.1 and 3.2",
            eigenvectors == count,
            f"{eigenvectors} of {count}; {walls} are on walls",
        ),
        Statement(
            "power iteration comes to rest at local maxima",
            "paper, section 3.3",
            converged > 0,
            f"from {converged} of {numbers.sizes['start']} starts",
        ),
        Statement(
            f"a scan of {SCAN:,} angles has the same maxima",
            "ours",
            same,
            f"{numbers.sizes['scanned_relu']} maxima, at most {off.max():.1e} off, the scan's step is "
            f"{2.0 * np.pi / SCAN:.1e}",
        ),
    ]
    return found + (_judge_sgd(numbers, angle) if "sgd_end" in numbers else [])


def _judge_sgd(numbers: xr.Dataset, angle: Array) -> list[Statement]:
    ends, share = numbers["sgd_end"].values, numbers["basin_share_relu"].values
    near = np.abs((ends[:, None] - angle + np.pi) % (2.0 * np.pi) - np.pi)
    at_rest = near.min(axis=1) < AT_REST
    found = np.bincount(near.argmin(axis=1)[at_rest], minlength=len(angle)) / len(ends)
    seconds = float(numbers["sgd_seconds"])
    return [
        Statement(
            "filters of SGD come to rest at these maxima",
            "theory, section 3",
            at_rest.mean() > 0.99,
            f"{at_rest.sum()} of {len(ends)} filters within {AT_REST:g} of one",
        ),
        Statement(
            "and in shares of their basins, for steps and noise of SGD that are small",
            "theory, section 3",
            np.abs(found - share).max() < 0.02,
            f"shares differ by {np.abs(found - share).max():.3f} at most",
        ),
        Statement(
            f"all critical points of the figure take no more than {1e3 * MOST_SECONDS:g} ms on a core",
            "ours",
            seconds <= MOST_SECONDS,
            f"{1e3 * seconds:.0f} ms of processor time",
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Draw both curves, each divided by its maximum as in the paper, with the maxima."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes, theta = figure.subplots(), numbers["theta"].values / np.pi
    for k, (activation, name) in enumerate((("relu", "ReLU"), ("linear", "linear"))):
        top = float(numbers[f"energy_{activation}"].max())
        axes.plot(theta, numbers[f"curve_{activation}"] / top, label=name, **curve_style(k))
        angle, height = numbers[f"angle_{activation}"] / np.pi, numbers[f"energy_{activation}"] / top
        wall = numbers[f"wall_{activation}"].values > 0
        for chosen, marker, label in ((wall, "s", "maximum on a wall"), (~wall, "o", "maximum between walls")):
            if chosen.any():
                axes.plot(angle[chosen], height[chosen], marker, color="black", markersize=6, label=label)
    if "sgd_end" in numbers:
        ends = numbers["sgd_end"].values
        axes.plot(ends / np.pi, np.full(len(ends), 0.04), "^", color="0.35", markersize=4, label="filters of SGD")
    for angle in angles_of(NINE.points):
        axes.axvline(angle / np.pi, color="0.75", lw=0.8, zorder=0)
    axes.set(
        xlabel=r"angle $\theta/\pi$ of the filter (grey: the points)", ylabel="objective / its maximum", ylim=(0, 1.05)
    )
    figure.legend(loc="outside upper center", ncols=5, fontsize="small")
    return figure


STUDY = Study(theory, judge, draw, simulate)
