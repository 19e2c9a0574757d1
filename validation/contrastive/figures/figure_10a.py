"""Figure 10a of the paper: h(Q) with independent noise of variance eta in both views, for eta from 0 to 1 and m2 = 1.

The supplement says that h falls with eta at every Q, and that the fixed point near Q = 1 vanishes when eta > 0.2.
Where it vanishes depends on tau/m: at 0.2 for tau/m = 0.0094, which is inside the narrow range that figures 2 and 6
need; all of them are drawn with it. Claim 3, (S-55), on the loss by noise, and the ODE (S-62) are printed wrong: the
thin curves are (S-62). The claim asks for m4 >= 3 and m6 >= 15, without need: noise costs c = +-1 as well.
"""

from functools import partial

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from validation.contrastive.figures.drift_curves import is_drift_of_sgd
from validation.contrastive.figures.noisy_views import (
    MORE_STRENGTHS,
    curves_with_noise,
    draw_with_noise,
    problem_at,
    simulate_with_noise,
)
from validation.contrastive.figures.one_feature import BATCH_SIZE, drift, problem_with
from validation.contrastive.figures.printed import equation_s62, loss_s55
from validation.study import Statement, Study

PAPER = "paper, section S-III-C"
VANISHES = 0.2

TOLERANCE = 0.005
"""Largest difference of numbers that count as the same: the paper gives one digit."""

STEPS = (0.0079, 0.0099)
"""Values of tau/m between which figures 2 and 6 show what the paper says of them."""


def theory() -> xr.Dataset:
    """Curves, with those of the printed formulas, and the loss by noise for c = +-1."""
    numbers = curves_with_noise("independent", equation_s62)
    Q, eta = numbers["Q"].values, numbers["eta"].values[:, None]
    coin = [drift(problem_at("independent", strength, non_zero=1.0), Q) for strength in MORE_STRENGTHS]
    ends = [_end_by_claim(step, Q[1:]) for step in STEPS]
    return numbers.assign_coords(step=list(STEPS)).assign(
        eta_end_by_claim=("step", ends, {"long_name": "where recovery vanishes by Claim 3"}),
        h_claim=(("eta", "Q"), numbers["h"].values[0] - loss_s55(Q, eta), {"long_name": "drift by Claim 3"}),
        h_coin=(("eta_scan", "Q"), np.array(coin), {"long_name": "drift for c = +-1"}),
    )


def _end_by_claim(step: float, Q: np.ndarray) -> float:
    without = drift(problem_with(learning_rate=step * BATCH_SIZE), Q)
    return float(brentq(lambda eta: np.max((without - loss_s55(Q, eta, step)) / Q), 0.0, 1.0))


def judge(numbers: xr.Dataset) -> list[Statement]:
    """The supplement's statements on independent noise, and one of the main text."""
    inside = numbers.sel(Q=slice(0.001, 1))
    rise = float(inside["h_scan"].diff("eta_scan").max())
    noise = float(inside["diffusion"].diff("eta_scan").min())
    coin = float((inside["h_coin"] - inside["h_coin"][0])[1:].max())
    end, by_claim = float(numbers["eta_end"]), numbers["eta_end_by_claim"].values
    statements = [
        Statement("h falls with eta at every Q", PAPER, rise < 0, f"largest change from eta to eta + 0.1: {rise:.4f}"),
        Statement(
            "the fixed point near Q = 1 vanishes when eta > 0.2", PAPER, abs(end - VANISHES) < TOLERANCE,
            f"at eta = {end:.4f}",
        ),
        Statement(
            "(S-55) verifies this, at a tau/m at which figures 2 and 6 hold", PAPER,
            by_claim.min() - TOLERANCE < VANISHES < by_claim.max() + TOLERANCE,
            f"by (S-55) at eta = {by_claim[0]:.2f} to {by_claim[1]:.2f}, for tau/m = {STEPS[0]} to {STEPS[1]}",
        ),
        Statement(
            "noise raises the variance of the gradient", "paper, section IV.C", noise > 0,
            f"smallest change of Lambda from eta to eta + 0.1: {noise:.2g}",
        ),
        Statement(
            "h falls without m4 >= 3 and m6 >= 15, which Claim 3 asks for", "ours", coin < 0,
            f"for c = +-1, m4 = m6 = 1, it changes by {coin:.4f} at most",
        ),
    ]  # fmt: skip
    if "sgd_h" in numbers:
        statements += [
            is_drift_of_sgd(numbers, "the reduced ODE", "theory, section 8"),
            is_drift_of_sgd(numbers, "the printed equation (S-62)", "paper, equation (S-62)", "h_printed"),
            is_drift_of_sgd(numbers, "h without noise minus the loss of Claim 3", "paper, Claim 3", "h_claim"),
        ]
    return statements


draw = partial(draw_with_noise, printed="(S-62) as printed", lowest=-4)

STUDY = Study(theory, judge, draw, partial(simulate_with_noise, "independent"))
