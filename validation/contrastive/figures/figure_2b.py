"""Figure 2b of the paper: the rate of change h(Q) = (dQ/dt)/tau of one feature, whose zeros are the fixed points.

The paper says that Q = 0 is stable for second moments 0.9 and 1.0 and unstable for 1.1; the figure has a stable zero
near 1 ("recovery") for 1.0 and 1.1 but not for 0.9. tau = 0.094 and m = 10 show this (see one_feature.py). The
paper's equation (12) lacks a factor 1 - 2Q, which matters wherever m2 != 1: its curves are thin, and the drift
measured in SGD, started at each Q, decides.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import share_legend
from validation.contrastive.figures.drift_curves import curves, draw_curves, explain, is_drift_of_sgd, measured
from validation.contrastive.figures.one_feature import SECOND_MOMENTS, Ensemble, problem_with
from validation.contrastive.figures.printed import equation_12
from validation.study import Statement, Study

PROBLEMS = {m2: problem_with(m2) for m2 in SECOND_MOMENTS}
PAPER = "paper, section IV.A"


def theory() -> xr.Dataset:
    """The drift of the ODE and of the printed formula."""
    numbers = curves(PROBLEMS, "m2")
    printed = np.array([equation_12(numbers["Q"].values, m2) for m2 in SECOND_MOMENTS])
    return numbers.assign(h_printed=(("m2", "Q"), printed, {"long_name": "drift by the printed equation (12)"}))


def simulate() -> xr.Dataset:
    """The drift of SGD at a few Q."""
    return measured(PROBLEMS, "m2", np.linspace(0.1, 0.9, 9), Ensemble(stop=0.1, dimension=20_000, replicas=500))


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The paper's statements on the figure."""
    statements = []
    for m2, stable in zip(SECOND_MOMENTS, (True, True, False), strict=True):
        slope = float(numbers["growth"].sel(m2=m2))
        text = f"Q = 0 is {'stable' if stable else 'unstable'} at m2 = {m2}"
        statements.append(Statement(text, PAPER, (slope < 0) == stable, f"h'(0) = {slope:.3f}"))
    for m2, there in zip(SECOND_MOMENTS, (False, True, True), strict=True):
        recovery = float(numbers["recovery"].sel(m2=m2))
        text = f"{'a' if there else 'no'} stable state near Q = 1 at m2 = {m2}"
        number = f"Q = {recovery:.3f}" if np.isfinite(recovery) else "none"
        statements.append(Statement(text, PAPER, np.isfinite(recovery) == there, number))
    if "sgd_h" in numbers:
        statements += [
            is_drift_of_sgd(numbers, "the reduced ODE", "theory, section 8"),
            is_drift_of_sgd(numbers, "the printed equation (12)", "paper, equation (12)", "h_printed"),
        ]
    return statements


def draw(numbers: xr.Dataset) -> Figure:
    """Curves of the ODE and of the printed formula, and SGD."""
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    axes = figure.subplots()
    draw_curves(axes, numbers, "$m_2 = {}$")
    axes.set(ylabel=r"$h(Q) = \dot{Q}/\tau$", ylim=(-1, None))
    explain(axes, numbers, "equation (12) as printed")
    share_legend(figure)
    return figure


STUDY = Study(theory, judge, draw, simulate)
