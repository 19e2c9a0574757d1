"""Curves h(Q) with noise of variance eta in both views, at m2 = 1: what figures 10a and 10b share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import share_legend
from validation.contrastive.figures.drift_curves import LONG_NAMES, curves, draw_curves, explain, measured
from validation.contrastive.figures.one_feature import Ensemble, end_of_recovery, problem_with

CORRELATIONS = {"independent": 0.0, "opposite": -1.0}

STRENGTHS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.0)
"""Values of eta whose curves are shown."""

STARTS = (0.15, 0.35, 0.55, 0.75, 0.95)
RUN = Ensemble(stop=0.05, dimension=20_000, replicas=250)

MORE_STRENGTHS = tuple(np.linspace(0, 1, 11))
"""Values of eta that decide statements: Lambda is a polynomial of degree 4 in eta, and misses nothing between them."""


def problem_at(views: str, eta: float, **changes: float) -> Problem:
    """Noise of variance eta in views that are `independent` or `opposite`."""
    return problem_with(eta=eta, correlation=CORRELATIONS[views], **changes)


def curves_with_noise(views: str, printed: Callable[[np.ndarray, float], np.ndarray]) -> xr.Dataset:
    """Curves, the printed ones, and by more values of eta h, Lambda and the states; and where recovery ends."""
    numbers = curves({eta: problem_at(views, eta) for eta in STRENGTHS}, "eta")
    Q = numbers["Q"].values
    wrong = np.array([printed(Q, eta) for eta in STRENGTHS])
    problems = {eta: problem_at(views, eta) for eta in MORE_STRENGTHS}
    diffusion = [[Closure(problem)(q)[1] for q in np.sqrt(Q)[:, None]] for problem in problems.values()]
    end = end_of_recovery(lambda eta: problem_at(views, eta), 0.0, 1.4)
    return xr.merge(
        [
            numbers.assign(h_printed=(("eta", "Q"), wrong, {"long_name": "drift by the printed formula"})),
            curves(problems, "eta_scan").rename({name: f"{name}_scan" for name in LONG_NAMES}),
            xr.Dataset(
                {
                    "diffusion": (("eta_scan", "Q"), np.array(diffusion), {"long_name": "Lambda"}),
                    "eta_end": ((), end, {"long_name": "strength of the noise at which the recovery state vanishes"}),
                }
            ),
        ]
    )


def simulate_with_noise(views: str) -> xr.Dataset:
    """The drift of SGD."""
    return measured({eta: problem_at(views, eta) for eta in STRENGTHS}, "eta", STARTS, RUN)


def draw_with_noise(numbers: xr.Dataset, printed: str, lowest: float) -> Figure:
    """One panel, of drifts above `lowest`."""
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    draw_curves(axes, numbers, r"$\eta = {}$")
    axes.set(ylabel=r"$h(Q) = \dot{Q}/\tau$", ylim=(lowest, None))
    explain(axes, numbers, printed)
    share_legend(figure)
    return figure
