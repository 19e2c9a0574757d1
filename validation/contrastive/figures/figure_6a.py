"""Figure 6a of the paper: the fixed points of one feature as its second moment m2 changes.

The supplement says of m2 = 0.9, 1.0 and 1.1: recovery vanishes below some m_l, between 0.9 and 1.0; Q = 0 becomes
unstable above some m_u, between 1.0 and 1.1; and a trivial solution is the less likely the larger m2 is. It has no
numbers for m_l and m_u; here they are, for tau/m = 0.0094. Stability of Q = 0 is Proposition 3. The paper counts two
fixed points at m2 = 1; there are three, for an unstable one separates the two stable ones.
"""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.families.contrastive.learnability.learnability import learnability
from meanfield.plotting import COLOURS, place_legend
from validation.contrastive.figures.drift_curves import curves, draw_curves, explain
from validation.contrastive.figures.one_feature import (
    BATCH_SIZE,
    LEARNING_RATE,
    SECOND_MOMENTS,
    end_of_recovery,
    find_states,
    problem_with,
)
from validation.study import Statement, Study

RANGE = 0.85, 1.2
"""Range of m2 in the right panel."""

PAPER = "paper, section S-III-A"

TOLERANCE = 1e-12
"""Largest difference of numbers that are equal up to rounding."""

LAWS = (0.1, 0.2, 0.5, 1.0)
"""Probabilities of c != 0 of laws with one second moment, whose fourth moments differ by up to ten times."""

ACTIVATIONS = ("quadratic", "relu", "tanh", "softplus")

EQUAL = 1e-8
"""Largest difference of growth rates at Q = 0 that count as equal: averages are good to 1e-10 or better."""


def theory() -> xr.Dataset:
    """Curves at the paper's second moments, the two thresholds, and fixed points between and around them."""
    m_l = end_of_recovery(problem_with, 1.0, 0.9)
    m_u = learnability(problem_with()).learnable_moments[0]
    m2 = np.sort([*np.linspace(*RANGE, 8), *np.linspace(0, 1, 16)[1:] ** 2 * (RANGE[1] - m_l) + m_l, m_u])
    states = np.array([find_states(problem_with(value)) for value in m2]).T
    branches = {
        name: ("m2_scan", column)
        for name, column in zip(("growth_scan", "recovery_scan", "boundary_scan"), states, strict=True)
    }
    growth = [
        [find_states(problem_with(1.05, non_zero=p, activation=activation)).growth for p in LAWS]
        for activation in ACTIVATIONS
    ]
    return (
        curves({value: problem_with(value) for value in SECOND_MOMENTS}, "m2")
        .assign(branches)
        .assign(m_l=m_l, m_u=m_u, growth_by_law=(("activation", "non_zero"), growth))
        .assign_coords(m2_scan=m2, activation=list(ACTIVATIONS), non_zero=list(LAWS))
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The supplement's statements on the figure."""
    m_l, m_u = float(numbers["m_l"]), float(numbers["m_u"])
    proposition = 1 + 10 * LEARNING_RATE / BATCH_SIZE
    at_one = numbers.sel(m2=1.0)
    fixed_points = 1 + np.isfinite(at_one["recovery"]) + (at_one["boundary"] > 0)
    growth = numbers["growth_by_law"]
    spread = float((growth.max("non_zero") - growth.min("non_zero")).max())
    boundary = numbers["boundary_scan"].fillna(1.0).values  # without recovery every start ends at Q = 0
    return [
        Statement("recovery vanishes below m_l, between 0.9 and 1.0", PAPER, 0.9 < m_l < 1.0, f"m_l = {m_l:.4f}"),
        Statement("Q = 0 is unstable above m_u, between 1.0 and 1.1", PAPER, 1.0 < m_u < 1.1, f"m_u = {m_u:.4f}"),
        Statement(
            "m_u is that of Proposition 3",
            "paper, section IV.A",
            abs(m_u - proposition) < TOLERANCE,
            f"1 + 10 tau/m = {proposition:.4f}",
        ),
        Statement(
            "higher moments do not affect the stability of Q = 0, whatever the activation",
            "paper, section IV.A",
            spread < EQUAL,
            f"h'(0) of {growth.size} laws and activations differs by {spread:.1g} at most from law to law",
        ),
        Statement(
            "two fixed points at m2 = 1, Q = 0 and one near Q = 1",
            PAPER,
            bool(fixed_points == 2),
            f"{int(fixed_points)} fixed points: 0, {float(at_one['boundary']):.3f} and {float(at_one['recovery']):.3f}",
        ),
        Statement(
            "the larger m2, the fewer starts end at Q = 0",
            PAPER,
            bool(np.all(np.diff(boundary) <= 0)),
            "their boundary falls from 1 below m_l to 0 above m_u",
        ),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """The curves, and where their zeros go."""
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_curves(left, numbers, "$m_2 = {}$")
    left.set(ylabel=r"$h(Q) = \dot{Q}/\tau$", ylim=(-1, None))
    explain(left, numbers)
    place_legend(left)
    m2, m_l, m_u = numbers["m2_scan"], float(numbers["m_l"]), float(numbers["m_u"])
    right.plot(m2, numbers["recovery_scan"], color=COLOURS[0], lw=2, label="stable")
    right.plot([RANGE[0], m_u], [0, 0], color=COLOURS[0], lw=2, clip_on=False)
    right.plot(m2, numbers["boundary_scan"].where(m2 <= m_u), "--", color=COLOURS[1], label="unstable")
    right.plot([m_u, RANGE[1]], [0, 0], "--", color=COLOURS[1], clip_on=False)
    for value, name in ((m_l, "l"), (m_u, "u")):
        right.axvline(value, color="0.6", lw=0.8, ls=":", zorder=0)
        right.text(value, 1.02, f"$m_{name} = {value:.4f}$", ha="center", transform=right.get_xaxis_transform())
    right.set(xlabel="second moment $m_2$", ylabel="fixed points $Q$", xlim=RANGE, ylim=(0, 1))
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw)
