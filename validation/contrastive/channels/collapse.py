"""Collapse against the strength of the penalty: below lambda_c channels that begin alike become one, above they part.

Two channels begin near the same feature, and nearly equal. The threshold is that of
`meanfield.contrastive.collapse_threshold`; the ODE and SGD as a chain say what becomes of the channels on either side
of it, for the square with population centring in batches of ten and of a hundred, and for the absolute value without
centring, where it is linear in C. Features are three-point with m2 = 1.1 and m4 = 6.05, sigma(x) = x^2, tau = 0.005.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.reductions import COLLAPSED_OVERLAP
from meanfield.plotting import COLOURS, MARKERS, place_legend
from validation.contrastive.channels.problems import HEAVY, end_of, ends_of_chain, labelled, mean_and_error, several
from validation.study import Statement, Study, within_errors

CASES = {
    "square, m = 10": {"m": 10},
    "square, m = 100": {"m": 100},
    "absolute, no centring, m = 10": {"penalty": "absolute", "centering": "none", "m": 10},
}
"""Penalties, centrings and batch sizes."""

FACTORS = (0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0)
"""Strengths of the ODE, in units of the threshold."""

SGD = (0.5, 1.5)
"""Strengths of the chain, in the same units: at the threshold itself fluctuations take long to relax."""

N, REPLICAS, T = 2000, 12, 60.0
NEAR = np.array([[0.93, 0.93], [0.1, -0.1]]), 0.9
"""Overlaps q and M12 at the start."""

FOREVER = 1e5
"""Time by which the ODE is at rest, 2 % from the threshold too."""


def near_collapse(case: str, **settings: float) -> Problem:
    q, M12 = NEAR
    return several([HEAVY, HEAVY], q, M12, **(CASES[case] | settings))


def closed_form(case: str) -> float:
    """Threshold as tau -> 0 (theory, section 6)."""
    m2, m4, m = *HEAVY, CASES[case]["m"]
    moment = {n: HEAVY[1] * (m4 / m2) ** (n // 2 - 2) for n in (4, 6, 8)}  # c^2 is 0 or m4/m2
    if "penalty" in CASES[case]:
        return (m4 - 3 * m2 * m2) / (m4 + m2 * m2)
    V4, chance = m4 - m2**2, m2 * m2 / m4
    a, weight = np.array([-m2, m4 / m2 - m2]), np.array([1 - chance, chance])
    c2 = np.array([0.0, m4 / m2])
    rest = weight @ (a**3 * c2 + 2 * m2 * a**2 * c2 - m2 * a**3)
    assert math.isclose(float(weight @ c2**2), moment[4])
    return float((V4 - 2 * m2 * m2) / (2 * ((1 - 1 / m) * V4 * (V4 + 2 * m2 * m2) + rest / m)))


def theory() -> xr.Dataset:
    """Thresholds, and where the ODE ends on either side of them."""
    thresholds = [meanfield.contrastive.collapse_threshold(near_collapse(case, strength=0.0)) for case in CASES]
    ends = [
        [end_of(near_collapse(case, strength=factor * threshold, stop=FOREVER))[1][0, 1] for factor in FACTORS]
        for case, threshold in zip(CASES, thresholds, strict=True)
    ]
    at_T = [
        [_row(*end_of(near_collapse(case, strength=factor * threshold, stop=T))) for factor in SGD]
        for case, threshold in zip(CASES, thresholds, strict=True)
    ]
    return labelled(
        {
            "threshold": ("case", thresholds, "strength at which collapsed channels part"),
            "closed_form": ("case", [closed_form(case) for case in CASES], "its limit as tau -> 0"),
            "M12": (("case", "factor"), ends, "overlap of the channels at rest"),
            "at_T": (("case", "sgd_factor", "overlap"), at_T, "overlaps at the time of SGD"),
        },
        case=list(CASES),
        factor=list(FACTORS),
        sgd_factor=list(SGD),
    )


def _row(q: np.ndarray, M: np.ndarray) -> np.ndarray:
    """q11, q12, q21, q22 and M12."""
    return np.concatenate([q.reshape(*q.shape[:-2], 4), M[..., 0, 1, None]], axis=-1)


def simulate() -> xr.Dataset:
    """The chain from the same starts."""
    means, errors = [], []
    for case in CASES:
        threshold = meanfield.contrastive.collapse_threshold(near_collapse(case, strength=0.0))
        for seed, factor in enumerate(SGD):
            settings = {"dimension": N, "replicas": REPLICAS, "seed": seed, "method": "chain"}
            problem = near_collapse(case, strength=factor * threshold, stop=T, **settings)
            mean, error = mean_and_error(_row(*ends_of_chain(problem)))
            means.append(mean)
            errors.append(error)
    dims, shape = ("case", "sgd_factor", "overlap"), (len(CASES), len(SGD), 5)
    return labelled(
        {
            "sgd": (dims, np.reshape(means, shape), "mean overlaps of SGD"),
            "sgd_error": (dims, np.reshape(errors, shape), "their standard error"),
        }
    )


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Statements on collapse."""
    found, ours = [], "theory, section 6"
    for case in numbers["case"].values:
        own = numbers.sel(case=case)
        collapsed = own["M12"] >= COLLAPSED_OVERLAP
        below, above = own["factor"] < 1, own["factor"] > 1
        number = f"lambda_c = {float(own['threshold']):.5f}; M12 = {float(own['M12'].sel(factor=0.98)):.4f} 2 % below"
        number += f", {abs(float(own['M12'].sel(factor=1.02))):.4f} 2 % above"
        parts = bool((own["M12"].where(above) < own["M12"].sel(factor=0.98)).where(above, True).all())
        found.append(
            Statement(
                f"{case}: the ODE collapses below the threshold of growth rates, and parts above",
                ours,
                bool(collapsed.where(below, True).all()) and parts,
                number,
            )
        )
        ratio = float(own["threshold"] / own["closed_form"])
        number = f"{float(own['closed_form']):.5f}, ratio {ratio:.4f}"
        near = abs(ratio - 1) < 0.01  # of order tau
        found.append(Statement(f"{case}: the closed form for tau -> 0 is within 1 % of it", ours, near, number))
    if "sgd" in numbers:
        away = np.abs(numbers["sgd"] - numbers["at_T"]) / numbers["sgd_error"]
        found.append(within_errors(f"SGD at N = {N} follows the ODE until t = {T:g}", "theory, section 4", away, 4.0))
    return found


def draw(numbers: xr.Dataset) -> Figure:
    """Overlaps at rest against the strength, and SGD."""
    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.subplots()
    for case, colour, marker in zip(numbers["case"].values, COLOURS, MARKERS, strict=False):
        own = numbers.sel(case=case)
        label = f"{case}, $\\lambda_c$ = {float(own['threshold']):.4f}"
        axes.plot(own["factor"], own["M12"], f"{marker}-", color=colour, markersize=4, label=label)
    axes.plot([1.0, 1.0], [0.0, 1.0], color="0.6", linewidth=0.8)  # no higher, where the legend is
    axes.set(xlabel=r"strength of the penalty $\lambda/\lambda_c$", ylabel="overlap of the channels at rest $M_{12}$")
    place_legend(axes)
    return figure


STUDY = Study(theory, judge, draw, simulate, must_hold=True)
