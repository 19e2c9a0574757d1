"""Figure 2b of the paper: the rate of change h(Q) = (dQ/dt)/tau of one feature, whose zeros are the fixed points.

The paper says that Q = 0 is stable for second moments 0.9 and 1.0 and unstable for 1.1; the figure has a stable zero
near 1 ("recovery") for 1.0 and 1.1 but not for 0.9. tau = 0.09 and m = 10 show this (see one_feature.py). The
paper's equation (12) lacks a factor 1 - 2Q, which matters wherever m2 != 1: its curves are dotted, and the drift
measured in SGD, started at each Q, decides.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from one_feature import (
    BATCH_SIZE,
    LEARNING_RATE,
    NON_ZERO,
    SECOND_MOMENTS,
    drift,
    drift_by_sgd,
    mean_drift,
    problem_with,
)
from study import Statement, Study, run_study

from meanfield.plotting import COLOURS

STEPS = 0.1, 20_000, 500
"""Time, dimension and replicas of the SGD that measures the drift at one Q."""

STANDARD_ERRORS = 4.0
"""Of 27 looks one is farther off by chance once in 600 runs."""


def theory() -> xr.Dataset:
    """The drift of the ODE and of the printed formula."""
    Q = np.linspace(0, 1, 201)
    h = np.array([drift(problem_with(m2), Q) for m2 in SECOND_MOMENTS])
    printed = np.array([printed_drift(m2, Q) for m2 in SECOND_MOMENTS])
    return xr.Dataset(
        {
            "h": (("m2", "Q"), h, {"long_name": "drift (dQ/dt)/tau of the reduced ODE"}),
            "h_printed": (("m2", "Q"), printed, {"long_name": "drift by the printed equation (12)"}),
        },
        {"m2": list(SECOND_MOMENTS), "Q": Q},
    )


def printed_drift(m2: float, Q: np.ndarray) -> np.ndarray:
    """Equation (12) as it is printed."""
    m4, m6 = m2**2 / NON_ZERO, m2**3 / NON_ZERO**2
    gain = 8 * (1 - Q) * (Q**2 * (m4 - 3) + 3 * Q * (m2 - 1))
    spread = Q**3 * (m6 - 15) + 15 * Q**2 * (1 - Q) * (m4 - 3) + 45 * Q * (1 - Q) ** 2 * (m2 - 1) + 15
    return gain - 16 * LEARNING_RATE / BATCH_SIZE * Q * spread


def simulate() -> xr.Dataset:
    """The drift of SGD at a few Q."""
    stop, dimension, replicas = STEPS
    Q = np.linspace(0.1, 0.9, 9)
    runs = [
        drift_by_sgd(problem_with(m2, stop=stop, dimension=dimension, replicas=replicas), Q) for m2 in SECOND_MOMENTS
    ]
    measured, error = np.array(runs).swapaxes(0, 1)
    return xr.Dataset(
        {
            "sgd_h": (("m2", "sgd_Q"), measured, {"long_name": "drift measured in SGD"}),
            "sgd_h_error": (("m2", "sgd_Q"), error, {"long_name": "standard error of the drift in SGD"}),
        },
        {"m2": list(SECOND_MOMENTS), "sgd_Q": Q},
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The paper's statements on the figure."""
    paper = "paper, section IV.A"
    statements = []
    for m2, stable in zip(SECOND_MOMENTS, (True, True, False), strict=True):
        slope = float(numbers["h"].sel(m2=m2)[1] / numbers["Q"][1])
        text = f"Q = 0 is {'stable' if stable else 'unstable'} at m2 = {m2}"
        statements.append(Statement(text, paper, (slope < 0) == stable, f"h'(0) = {slope:.3f}"))
    for m2, there in zip(SECOND_MOMENTS, (False, True, True), strict=True):
        highest = numbers["h"].sel(m2=m2, Q=slice(0.3, 1)).max()
        text = f"{'a' if there else 'no'} stable state near Q = 1 at m2 = {m2}"
        statements.append(Statement(text, paper, bool(highest > 0) == there, f"largest h = {float(highest):.3f}"))
    if "sgd_h" in numbers:
        statements += [_against_sgd(numbers, name) for name in ("h", "h_printed")]
    return statements


def _against_sgd(numbers: xr.Dataset, name: str) -> Statement:
    curves, starts = numbers[name].values, numbers["sgd_Q"].values
    predicted = np.array([mean_drift(numbers["Q"].values, h, starts, STEPS[0]) for h in curves])
    worst = float((np.abs(numbers["sgd_h"] - predicted) / numbers["sgd_h_error"]).max())
    what = "the reduced ODE" if name == "h" else "the printed equation (12)"
    source = "theory, section 8" if name == "h" else "paper, equation (12)"
    return Statement(
        f"{what} is the drift of SGD", source, worst < STANDARD_ERRORS, f"off by {worst:.1f} standard errors at most"
    )


def draw(numbers: xr.Dataset) -> Figure:
    """Curves of the ODE and of the printed formula, and SGD with bars of two standard errors."""
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.axhline(0, color="0.6", lw=0.8)
    for m2, colour in zip(SECOND_MOMENTS, COLOURS, strict=False):
        at = numbers.sel(m2=m2)
        axes.plot(at["Q"], at["h"], color=colour, label=f"$m_2 = {m2}$")
        axes.plot(at["Q"], at["h_printed"], ":", color=colour, lw=1)
        axes.errorbar(at["sgd_Q"], at["sgd_h"], 2 * at["sgd_h_error"], fmt="o", color=colour, ms=3, capsize=2)
    axes.plot([], [], ":", color="0.3", lw=1, label="equation (12) as printed")
    axes.plot([], [], "o", color="0.3", ms=3, label="SGD")
    axes.set(xlabel="$Q = q^2$", ylabel=r"$h(Q) = \dot{Q}/\tau$", xlim=(0, 1), ylim=(-1, None))
    axes.legend(frameon=False)
    return figure


STUDY = Study(theory, judge, draw, simulate)

if __name__ == "__main__":
    run_study(STUDY, __file__)
