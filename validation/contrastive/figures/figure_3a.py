"""Figure 3a of the paper: the phase portrait of two features, of which the one with the smaller variance attracts more.

Gaussian, m2 = 1.2, against three-point, m2 = 1.1, m4 = 6.05, m6 = 33.275. The paper says that all stable fixed points
lie on the axes, that the fixed point with both overlaps and the origin are unstable, and that the attraction region of
the second feature is the larger one. tau = 0.04 and m = 20 show this, as does every tau/m below 0.01, where the second
feature stops growing from the origin (see two_features.py). Dots with bars of two standard errors are SGD.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, place_legend, plot_portrait, plot_trajectories
from validation.contrastive.figures.two_features import (
    UNEQUAL,
    following,
    inner_point,
    labelled,
    listed,
    portrait,
    portrait_named,
    sgd_paths,
    shares,
    squared,
    trajectories,
)
from validation.study import Statement, Study

STARTS = np.sqrt([[0.05, 0.01], [0.08, 0.06], [0.4, 0.05], [0.5, 0.2]])
"""Initial overlaps on both sides of the separatrix."""

STOP = 50.0
SGD = {"outputs": 13, "dimension": 2_000, "replicas": 24}
OUTPUT_RATIO = 5
"""Factor by which the ODE has more outputs than SGD."""

STANDARD_ERRORS = 4.5
"""Largest accepted deviation in standard errors. Of 96 looks, correlated in time, one is farther off by chance less
than once in 600 runs."""


def theory() -> xr.Dataset:
    """The portrait, and trajectories of the ODE over it."""
    paths = trajectories(UNEQUAL, STARTS, stop=STOP, outputs=OUTPUT_RATIO * (SGD["outputs"] - 1) + 1)
    return labelled(portrait(UNEQUAL), "portrait").assign(
        path_q=(("start", "time", "feature"), paths, {"long_name": "overlaps along the reduced ODE"})
    )


def simulate() -> xr.Dataset:
    """SGD from the same starts."""
    return sgd_paths(UNEQUAL, STARTS, STOP, SGD)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The paper's statements on the figure."""
    paper, result = "paper, section IV.B", portrait_named(numbers, "portrait")
    Q, stable, kind = squared(result), result["stability"].values == 1, result["kind"].values
    inner, origin = inner_point(result), int(np.argmin(Q.sum(axis=1)))
    first, second = shares(result)
    statements = [
        Statement(
            "all stable fixed points lie on the axes: only one feature is learnt",
            paper,
            bool(stable.any() and np.all(Q[stable].min(axis=1) < 1e-9)),
            listed(Q[stable]),
        ),
        Statement(
            "the fixed point with both overlaps is unstable",
            paper,
            inner is not None and bool(result["stability"][inner] == -1),
            f"{kind[inner]} at {listed(Q[[inner]])}, growth rate {float(result['growth_rate'][inner]):.3f}",
        ),
        Statement(
            "Q1 = Q2 = 0 is an unstable fixed point",
            paper,
            bool(Q[origin].sum() < 1e-9 and kind[origin] == "unstable node"),
            f"growth rates {', '.join(f'{rate:.3f}' for rate in result['eigenvalue_real'].values[origin])}",
        ),
        Statement(
            "the attraction region of the second feature is larger than that of the first",
            paper,
            second > first,
            f"{second:.1%} and {first:.1%} of the triangle of (Q1, Q2)",
        ),
    ]
    if "sgd_q" in numbers:
        text = "SGD follows the trajectories of the ODE, on both sides of the separatrix"
        statements.append(following(text, numbers["path_q"][:, ::OUTPUT_RATIO], numbers, STANDARD_ERRORS))
    return statements


def draw(numbers: xr.Dataset) -> Figure:
    """The portrait, with trajectories of the ODE and SGD over it."""
    figure = Figure(figsize=(7, 6.6), layout="constrained")
    axes = plot_portrait(portrait_named(numbers, "portrait"), figure.subplots())
    plot_trajectories(numbers["path_q"].values, axes, label="trajectory of the ODE")
    if "sgd_q" in numbers:
        q, error = numbers["sgd_q"].values, numbers["sgd_q_error"].values
        for Q, bar in zip(q**2, 4 * np.abs(q) * error, strict=True):
            axes.errorbar(*Q.T, bar[:, 1], bar[:, 0], fmt=".", color=COLOURS[6], ms=4, capsize=2, zorder=3)
        axes.plot([], [], "+", color=COLOURS[6], ms=8, label="SGD")
    place_legend(axes)
    return figure


STUDY = Study(theory, judge, draw, simulate)
