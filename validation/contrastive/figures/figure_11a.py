"""Figure 11a of the paper: h(Q) of ReLU for several second moments m2, without noise.

The supplement says: at m2 = 1.1 there is only Q = 0; as m2 increases a fixed point near Q = 1 emerges; above a
threshold Q = 0 becomes unstable; all this as for x^2, with a larger threshold. Without centring, as in the paper's
Section IV, no tau/m shows it: the recovery state and the instability of Q = 0 have one threshold, m2 = 1 + tau/m.
With centring, as in its Section II, tau/m between 0.174 (below, there is recovery at m2 = 1.1) and 0.25 (above, there
is one threshold, too) does; here it is 0.175, and the state emerges at Q = 0.5. The threshold of ReLU is smaller than
that of x^2, 1 + 10 tau/m, at the same tau/m; it is larger in the figure only because tau/m is, 0.175 against 0.0094.
"""

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.families.contrastive.learnability.learnability import learnability
from meanfield.families.contrastive.problem import Problem
from validation.contrastive.figures.drift_curves import listed
from validation.contrastive.figures.one_feature import end_of_recovery, find_states, problem_with
from validation.contrastive.figures.relu_curves import (
    CENTERINGS,
    both_are_drift_of_sgd,
    curves_of_both,
    draw_both,
    relu_problem,
    simulate_both,
)
from validation.study import Statement, Study

STEP = 0.175
"""Value of tau/m in the figure."""

STEPS = (0.05, STEP, 0.5)
"""Values of tau/m at which thresholds are compared."""

SECOND_MOMENTS = (1.1, 1.12, 1.2, 1.4)
FAMILIES = {centering: {m2: relu_problem(centering, STEP, m2) for m2 in SECOND_MOMENTS} for centering in CENTERINGS}

PAPER = "paper, appendix D"

BELOW = 1e-3
"""Distance below the m2 at which Q = 0 becomes unstable where recovery is looked for."""


def theory() -> xr.Dataset:
    """Curves, and for several tau/m the m2 above which Q = 0 is unstable, and whether recovery is there before."""
    unstable = np.array(
        [[_learnable(relu_problem(centering, step, 1.0)) for step in STEPS] for centering in CENTERINGS]
    )
    before = [
        [find_states(relu_problem(centering, step, m2 - BELOW)).recovery for step, m2 in zip(STEPS, row, strict=True)]
        for centering, row in zip(CENTERINGS, unstable, strict=True)
    ]
    quadratic = [_learnable(problem_with(learning_rate=step, batch_size=1)) for step in STEPS]
    emerges = end_of_recovery(lambda m2: relu_problem("population", STEP, m2), 1.2, 1.0)
    dims = ("centering", "step")
    new = {
        "m_u": (dims, unstable, {"long_name": "m2 above which Q = 0 is unstable"}),
        "m_u_quadratic": ("step", quadratic, {"long_name": "the same for x^2"}),
        "recovery_below": (dims, before, {"long_name": "Q of recovery just below m_u"}),
        "m_l": ((), emerges, {"long_name": "m2 below which recovery vanishes"}),
    }
    return curves_of_both(FAMILIES, "m2").assign(new).assign_coords(step=list(STEPS))


def _learnable(problem: Problem) -> float:
    return learnability(problem).learnable_moments[0]


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The supplement's statements on the figure, without and with centring."""
    statements = []
    for centering, said in CENTERINGS.items():
        at = numbers.sel(centering=centering)
        m_u = at["m_u"].values
        now = STEPS.index(STEP)
        lowest = at.sel(m2=1.1)
        statements += [
            Statement(
                f"{said}: at m2 = 1.1 there is only Q = 0", PAPER,
                np.isnan(lowest["recovery"]) and lowest["growth"] < 0, f"h'(0) = {float(lowest['growth']):.3f}",
            ),
            Statement(
                f"{said}: a larger m2 makes recovery emerge and then Q = 0 unstable, at some tau/m", PAPER,
                np.isfinite(at["recovery_below"]).any(),
                f"just before Q = 0 is unstable, recovery at Q = {listed(at['recovery_below'])} for tau/m = "
                + ", ".join(map(str, STEPS)),
            ),
            Statement(
                f"{said}: the larger m2, the easier to retrieve", PAPER,
                (np.diff(at["recovery"].fillna(0.0)) >= 0).all() and (np.diff(at["boundary"].fillna(1.0)) <= 0).all(),
                f"recovery at Q = {listed(at['recovery'])}",
            ),
            Statement(
                f"{said}: the threshold of m2 is larger than for x^2, at some tau/m", PAPER,
                (m_u > numbers["m_u_quadratic"].values).any(),
                f"at tau/m = {STEP} it is {m_u[now]:.4f}, that of x^2 {float(numbers['m_u_quadratic'][now]):.4f}",
            ),
        ]  # fmt: skip
    m_l, m_u = float(numbers["m_l"]), float(numbers["m_u"].sel(centering="population", step=STEP))
    statements.append(
        Statement(
            "with centring: one tau/m has both, with recovery from an m2 above 1.1 on", "ours", 1.1 < m_l < m_u,
            f"at tau/m = {STEP} recovery for m2 > {m_l:.4f}, Q = 0 unstable for m2 > {m_u:.4f}",
        )
    )  # fmt: skip
    return statements + both_are_drift_of_sgd(numbers)


def draw(numbers: xr.Dataset) -> Figure:
    """A panel for each centring."""
    titles = dict.fromkeys(CENTERINGS, rf"$\tau/m = {STEP}$")
    return draw_both(numbers, "$m_2 = {}$", titles, {"none": -0.3, "population": -0.15})


STUDY = Study(theory, judge, draw, partial(simulate_both, FAMILIES, "m2"))
