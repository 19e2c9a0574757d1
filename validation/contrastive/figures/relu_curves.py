"""Curves h(Q) of ReLU without centring, as Section IV of the paper has it, and with: what figures 11a and 11b share."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr
from matplotlib.figure import Figure

from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import share_legend
from validation.contrastive.figures.drift_curves import curves, draw_curves, explain, is_drift_of_sgd, measured
from validation.contrastive.figures.one_feature import Ensemble, problem_with
from validation.study import Statement

CENTERINGS = {"none": "without centring", "population": "with centring"}
"""Centrings by name; the second subtracts the mean output, as Section II of the paper does."""

BATCH_SIZE = 50
"""Batch size, larger than for x^2: with centring SGD needs the mean output at every step, whatever m is."""

STARTS = (0.1, 0.3, 0.5, 0.7, 0.9)
LENGTH = 0.1
"""Length of the runs of SGD in units of tau t."""


def relu_problem(centering: str, step: float, m2: float, eta: float = 0.0) -> Problem:
    """ReLU with opposite noise; `step` is tau/m."""
    model = {"activation": "relu", "centering": centering, "learning_rate": step * BATCH_SIZE}
    return problem_with(m2, eta, correlation=-1.0, batch_size=BATCH_SIZE, **model)


Families = Mapping[str, Mapping[float, Problem]]
"""Problems by centring, then by the parameter that tells curves apart."""


def curves_of_both(families: Families, parameter: str) -> xr.Dataset:
    """Curves and fixed points, without and with centring."""
    return _joined({centering: curves(problems, parameter) for centering, problems in families.items()})


def simulate_both(families: Families, parameter: str) -> xr.Dataset:
    """The drift of SGD."""
    result = {}
    for centering, problems in families.items():
        tau = next(iter(problems.values())).model.learning_rate
        run = Ensemble(stop=LENGTH / tau, dimension=50_000, replicas=50)
        result[centering] = measured(problems, parameter, STARTS, run)
    return _joined(result)


def _joined(numbers: Mapping[str, xr.Dataset]) -> xr.Dataset:
    return xr.concat(list(numbers.values()), xr.DataArray(list(numbers), dims="centering", name="centering"))


def both_are_drift_of_sgd(numbers: xr.Dataset) -> list[Statement]:
    """A statement for each, if there is SGD."""
    if "sgd_h" not in numbers:
        return []
    return [
        is_drift_of_sgd(numbers.sel(centering=centering), f"the reduced ODE {said}", "theory, section 2")
        for centering, said in CENTERINGS.items()
    ]


def draw_both(numbers: xr.Dataset, label: str, titles: Mapping[str, str], lowest: Mapping[str, float]) -> Figure:
    """A panel for each, of drifts above `lowest`."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, centering in zip(panels, CENTERINGS, strict=True):
        at = numbers.sel(centering=centering)
        draw_curves(axes, at, label)
        axes.set(title=f"{CENTERINGS[centering]}, {titles[centering]}", ylim=(lowest[centering], None))
        explain(axes, at)
    panels[0].set_ylabel(r"$h(Q) = \dot{Q}/\tau$")
    share_legend(figure)
    return figure
