"""Figure 11b of the paper: h(Q) of ReLU with opposite noise of variance eta in the two views, at a fixed m2.

The supplement says that as eta grows, the fixed point near Q = 1 emerges and its region expands. Without centring
m2 = 1 and tau/m = 0.02 show this; with centring m2 = 1.1 and the tau/m = 0.175 of figure 11a do, with
a state at Q = 0.6. The paper prints neither m2 nor tau/m.
"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from validation.contrastive.figures.drift_curves import listed
from validation.contrastive.figures.relu_curves import (
    CENTERINGS,
    both_are_drift_of_sgd,
    curves_of_both,
    draw_both,
    relu_problem,
    simulate_both,
)
from validation.study import Statement, Study

CASES = {"none": (0.02, 1.0), "population": (0.175, 1.1)}
"""Values of tau/m and m2."""

STRENGTHS = (0.0, 0.1, 0.2, 0.25, 0.3)
FAMILIES = {
    centering: {eta: relu_problem(centering, *CASES[centering], eta) for eta in STRENGTHS} for centering in CENTERINGS
}
PAPER = "paper, appendix D"


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The supplement's statements on the figure, without and with centring."""
    statements = []
    for centering, said in CENTERINGS.items():
        at = numbers.sel(centering=centering)
        there = np.isfinite(at["recovery"].values)
        found = at["eta"].values[there]
        regions, states = at["boundary"].values[there], at["recovery"].values[there]
        statements += [
            Statement(
                f"{said}: the fixed point near Q = 1 emerges as eta grows", PAPER,
                not there[0] and there[-1] and (np.diff(there.astype(int)) >= 0).all(),
                f"first seen at eta = {found[0]}, Q = {states[0]:.3f}",
            ),
            Statement(
                f"{said}: its region expands as eta grows", PAPER, (np.diff(regions) < 0).all(),
                f"it begins at Q = {listed(regions)}",
            ),
        ]  # fmt: skip
    return statements + both_are_drift_of_sgd(numbers)


def draw(numbers: xr.Dataset) -> Figure:
    """A panel for each centring."""
    titles = {centering: rf"$m_2 = {m2}$, $\tau/m = {step}$" for centering, (step, m2) in CASES.items()}
    return draw_both(numbers, r"$\eta = {}$", titles, {"none": -0.04, "population": -0.04})


STUDY = Study(partial(curves_of_both, FAMILIES, "eta"), judge, draw, partial(simulate_both, FAMILIES, "eta"))
