"""Curves h(Q) of a family of problems with one feature, by theory and by SGD: what figures 2b, 6a, 10 and 11 share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import curve_style, marker_style
from validation.contrastive.figures.one_feature import Ensemble, drift, drift_by_sgd, find_states, mean_drift
from validation.study import Statement, within_errors

GRID = np.linspace(0, 1, 201)
"""Values of Q at which curves are shown."""

STANDARD_ERRORS = 4.0
"""Largest accepted deviation in standard errors. Of 30 looks one is farther off by chance once in 500 studies at most:
looks share their random numbers."""

LONG_NAMES = {
    "h": "drift (dQ/dt)/tau of the reduced ODE",
    "growth": "h'(0): Q = 0 is stable if it is negative",
    "recovery": "largest stable Q > 0",
    "boundary": "starts above this Q lead to recovery",
}

THIN = 0.7
"""Width of the lines of a printed formula, beside those that follow from the model."""


def curves(problems: Mapping[float, Problem], parameter: str) -> xr.Dataset:
    """Drift and fixed points of every problem, by the value of the parameter that tells them apart."""
    states = np.array([find_states(problem) for problem in problems.values()])
    columns = {
        "h": ((parameter, "Q"), np.array([drift(problem, GRID) for problem in problems.values()])),
        **{
            name: (parameter, column) for name, column in zip(("growth", "recovery", "boundary"), states.T, strict=True)
        },
    }
    named = {name: (*column, {"long_name": LONG_NAMES[name]}) for name, column in columns.items()}
    return xr.Dataset(named, {parameter: list(problems), "Q": GRID})


def measured(problems: Mapping[float, Problem], parameter: str, Q: Iterable[float], run: Ensemble) -> xr.Dataset:
    """The drift of SGD from a few starts."""
    starts = np.array(list(Q))
    runs = [drift_by_sgd(problem, starts, run) for problem in problems.values()]
    h, error = np.array(runs).swapaxes(0, 1)
    dims = (parameter, "sgd_Q")
    spans = [problem.model.learning_rate * run.stop for problem in problems.values()]
    return xr.Dataset(
        {
            "sgd_h": (dims, h, {"long_name": "drift measured in SGD: the mean change of Q over tau t"}),
            "sgd_h_error": (dims, error, {"long_name": "standard error of the drift in SGD"}),
            "sgd_span": (parameter, spans, {"long_name": "tau t of the runs"}),
        },
        {parameter: list(problems), "sgd_Q": starts},
    )


def is_drift_of_sgd(numbers: xr.Dataset, what: str, source: str, name: str = "h") -> Statement:
    """Whether curves are the drift of SGD."""
    predicted = [
        mean_drift(numbers["Q"].values, h, numbers["sgd_Q"].values, float(span))
        for h, span in zip(numbers[name].values, numbers["sgd_span"], strict=True)
    ]
    away = np.abs(numbers["sgd_h"] - np.array(predicted)) / numbers["sgd_h_error"]
    return within_errors(f"{what} is the drift of SGD", source, away, STANDARD_ERRORS)


def listed(values: Iterable[float]) -> str:
    """Numbers in a statement."""
    return ", ".join("none" if np.isnan(value) else f"{float(value):.3f}" for value in values)


def draw_curves(axes: Axes, numbers: xr.Dataset, label: str) -> None:
    """Curves of the ODE with their zeros, those of a printed formula, and SGD with bars of two standard errors.

    The drift of SGD is shown midway between start and end of its runs, whose mean drift it is. `label` is what the
    legend calls a curve, with braces for the value of the parameter.
    """
    parameter = str(numbers["h"].dims[0])
    axes.axhline(0, color="0.6", lw=0.8, zorder=0)
    for i, value in enumerate(numbers[parameter].values):
        at, style = numbers.sel({parameter: value}), curve_style(i)
        colour = style["color"]
        axes.plot(at["Q"], at["h"], label=label.format(value), **style)
        if "h_printed" in at:
            axes.plot(at["Q"], at["h_printed"], lw=THIN, **style)
        axes.plot(at["recovery"], 0, "o", color=colour, ms=6, zorder=3, clip_on=False)
        if at["boundary"] > 0:
            axes.plot(at["boundary"], 0, "o", color=colour, mfc="white", ms=6, zorder=3)
        if "sgd_h" in at:
            midway = at["sgd_Q"] + 0.5 * at["sgd_span"] * at["sgd_h"]
            axes.errorbar(midway, at["sgd_h"], 2 * at["sgd_h_error"], ms=3.5, capsize=2, **marker_style(i, first=1))
    axes.set(xlabel="$Q = q^2$", xlim=(0, 1))


def explain(axes: Axes, numbers: xr.Dataset, printed: str = "") -> None:
    """Entries of the legend that all curves share."""
    axes.plot([], [], "o", color="0.3", ms=6, label="stable")
    if (numbers["boundary"] > 0).any():
        axes.plot([], [], "o", color="0.3", mfc="white", ms=6, label="unstable")
    if "h_printed" in numbers:
        axes.plot([], [], color="0.3", lw=THIN, label=f"thin: {printed}")
    if "sgd_h" in numbers:
        axes.errorbar([], [], [], fmt="s", color="0.3", ms=3.5, capsize=2, label="SGD")
