"""Figure 3b of the paper: squared cosine similarities in time, where the feature of smaller variance is the one learnt.

The laws of figure 3a. The paper says that the feature with the highest second moment need not be the one that is
learnt. From Q1 = Q2 = 0.1, in the region of the second feature, it is the second one, although the first has the
larger second moment and grows first; from (0.1, 0.02) it is the first one. Points with bars of two standard errors are
SGD. tau = 0.04 and m = 20 (see two_features.py).
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import COLOURS, LINES, MARKERS, place_legend
from validation.contrastive.figures.two_features import UNEQUAL, following, sgd_paths, trajectories
from validation.study import Statement, Study

STARTS = np.sqrt([[0.1, 0.1], [0.1, 0.02]])

STOP, OUTPUT_RATIO = 60.0, 5
"""Final time, and factor by which the ODE has more outputs than SGD."""

SGD = {"outputs": 16, "dimension": 3_000, "replicas": 24}

STANDARD_ERRORS = 4.5
"""Largest accepted deviation in standard errors. Of 60 looks, correlated in time, one is farther off by chance less
than once in 1000 runs."""


def theory() -> xr.Dataset:
    """Overlaps along the ODE."""
    outputs = OUTPUT_RATIO * (SGD["outputs"] - 1) + 1
    q = trajectories(UNEQUAL, STARTS, stop=STOP, outputs=outputs)
    return xr.Dataset(
        {"q": (("start", "time", "feature"), q, {"long_name": "overlaps along the reduced ODE"})},
        {"time": np.linspace(0.0, STOP, outputs)},
    )


def simulate() -> xr.Dataset:
    """Overlaps of SGD."""
    return sgd_paths(UNEQUAL, STARTS, STOP, SGD)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The paper's statement, and SGD."""
    Q = numbers["q"].values ** 2
    end = Q[:, -1]
    statements = [
        Statement(
            "the feature with the highest second moment is not necessarily the one that is learnt",
            "paper, section IV.B",
            bool(end[0, 1] > 0.9 and end[0, 0] < 0.01),
            f"from (0.1, 0.1) to ({end[0, 0]:.3f}, {end[0, 1]:.3f}), although m2 is 1.2 and 1.1",
        ),
        Statement(
            "only one feature is learnt, the other is discarded",
            "paper, section IV.B",
            bool(np.all(end.min(axis=1) < 0.01) and np.all(end.max(axis=1) > 0.8)),
            "; ".join(f"({first:.3f}, {second:.3f})" for first, second in end),
        ),
        Statement(
            "the first feature grows at first, where the second is learnt in the end",
            "ours",
            bool(Q[0, :, 0].max() > 1.5 * Q[0, 0, 0]),
            f"Q1 rises from {Q[0, 0, 0]:.2f} to {Q[0, :, 0].max():.2f}",
        ),
    ]
    if "sgd_q" in numbers:
        path = numbers["q"][:, ::OUTPUT_RATIO]
        statements.append(following("SGD follows the reduced ODE", path, numbers, STANDARD_ERRORS))
    return statements


def draw(numbers: xr.Dataset) -> Figure:
    """A panel for each start."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, len(STARTS), sharey=True)
    for i, axes in enumerate(panels):
        for k, (colour, law) in enumerate(zip((COLOURS[2], COLOURS[1]), UNEQUAL, strict=True)):
            q = numbers["q"].values[i, :, k]
            axes.plot(numbers["time"], q**2, LINES[k], color=colour, label=f"$Q_{k + 1}$: {law.name}")
            if "sgd_q" in numbers:
                mean, error = numbers["sgd_q"].values[i, :, k], numbers["sgd_q_error"].values[i, :, k]
                bars = 4 * np.abs(mean) * error
                axes.errorbar(numbers["sgd_time"], mean**2, bars, fmt=MARKERS[k], color=colour, ms=3, capsize=2)
        first, second = STARTS[i] ** 2
        axes.set(xlabel="time $t = k/N$", title=f"from $(Q_1, Q_2) = ({first:.2g}, {second:.2g})$", ylim=(-0.03, 1))
    panels[0].set_ylabel("squared cosine similarity $Q = q^2$")
    panels[0].plot([], [], "o", color="0.3", ms=3, label="SGD")
    place_legend(panels[0])
    return figure


STUDY = Study(theory, judge, draw, simulate)
