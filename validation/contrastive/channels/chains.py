"""Trajectories of the ODE against chains, where averages over a batch are exact, and where they take random batches.

Three cases at N = 5000: tanh outputs with batch centring and a strong square penalty, three samples a batch; tanh with
correlated views and the absolute value, whose averages take random batches; and three channels of x^2. The start has
q = [[0.5, 0.3], [0.2, 0.4]], with a third channel at (0.1, -0.3), and features three-point with (m2, m4) = (1.1, 6.05)
and (1, 5). SGD is the chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import COLOURS, MARKERS
from validation.contrastive.channels.problems import ends_of_chain, labelled, mean_and_error, several
from validation.study import Statement, Study

FEATURES = (1.1, 6.05), (1.0, 5.0)
Q = np.array([[0.5, 0.3, 0.1], [0.2, 0.4, -0.3]])
M = np.array([[1.0, 0.25, 0.1], [0.25, 1.0, -0.2], [0.1, -0.2, 1.0]])

CASES: dict[str, dict[str, Any]] = {
    "tanh, batch centring, square": {"activation": "tanh", "centering": "batch", "tau": 0.5, "m": 3, "strength": 2.0},
    "tanh, views, absolute": {
        "activation": "tanh",
        "centering": "none",
        "tau": 0.3,
        "m": 4,
        "strength": 0.7,
        "penalty": "absolute",
        "variance": [0.3, 0.5],
        "correlation": -0.2 / np.sqrt(0.15),
    },
    "three channels, x^2, square": {"centering": "none", "tau": 0.01, "m": 3, "strength": 0.05, "channels": 3},
}

N, REPLICAS = 5000, 100
MOST_SIGMAS = 3.5
"""Standard errors; one of 19 numbers is beyond by chance in 110 times, were errors Gaussian."""


def problem_of(case: str, **settings: Any) -> Problem:
    own = dict(CASES[case])
    channels = own.pop("channels", 2)
    return several(FEATURES, Q[:, :channels], M[:channels, :channels], **(own | settings))


def _row(q: np.ndarray, overlap: np.ndarray) -> np.ndarray:
    """All overlaps in one vector, as long as that of three channels, filled up with NaN."""
    pairs = np.triu_indices(q.shape[-1], 1)
    row = np.concatenate([q.reshape(*q.shape[:-2], -1), overlap[..., pairs[0], pairs[1]]], axis=-1)
    return np.pad(row, [(0, 0)] * (row.ndim - 1) + [(0, 9 - row.shape[-1])], constant_values=np.nan)


def theory() -> xr.Dataset:
    """Overlaps at t = 4, and their errors."""
    ends, errors = [], []
    for case in CASES:
        run = meanfield.solve_order_parameters(problem_of(case)).isel(time=-1)
        ends.append(_row(run["q"].values, run["M"].values))
        known = "q_error" in run
        errors.append(_row(run["q_error"].values, run["M_error"].values) if known else 0 * ends[-1])
    dims = ("case", "overlap")
    return labelled(
        {"end": (dims, ends, "overlaps q and M of the limit"), "error": (dims, errors, "their error")}, case=list(CASES)
    )


def simulate() -> xr.Dataset:
    """Mean overlaps at the end of chains of SGD, with their standard errors."""
    settings = {"dimension": N, "replicas": REPLICAS, "method": "chain", "seed": 3}
    rows = [mean_and_error(_row(*ends_of_chain(problem_of(case, **settings)))) for case in CASES]
    mean, error = np.swapaxes(rows, 0, 1)
    dims = ("case", "overlap")
    return labelled({"sgd": (dims, mean, "mean overlaps of SGD"), "sgd_error": (dims, error, "their standard error")})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether they agree."""
    if "sgd" not in numbers:
        return []
    away = (np.abs(numbers["sgd"] - numbers["end"]) - numbers["error"]) / numbers["sgd_error"]
    found = []
    for case in CASES:
        worst, own = float(away.sel(case=case).max()), float(numbers["error"].sel(case=case).max())
        text = f"{case}: SGD at N = {N} is within {MOST_SIGMAS} standard errors of the ODE, besides the error of that"
        found.append(
            Statement(
                text,
                "theory, section 4",
                worst < MOST_SIGMAS,
                f"off by {max(worst, 0.0):.1f}; error of the ODE {own:.1e}",
            )
        )
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Differences in standard errors."""
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for shift, (case, colour, marker) in enumerate(zip(CASES, COLOURS, MARKERS, strict=False)):
        own = numbers.sel(case=case)
        places = np.arange(own.sizes["overlap"]) + 0.15 * (shift - 1)
        difference = 1e3 * (own["sgd"] - own["end"])
        axes.errorbar(places, difference, 2e3 * own["sgd_error"], fmt=marker, markersize=4, color=colour, label=case)
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set(xlabel="overlap: q by features and channels, then M", ylabel="SGD less ODE, $10^{-3}$")
    axes.legend(fontsize="small")
    return figure


STUDY = Study(theory, judge, draw, simulate, must_hold=True)
