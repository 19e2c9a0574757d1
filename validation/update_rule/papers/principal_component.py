"""Oja's rule, as in Wang, Mattingly and Lu (2017): above which rate a principal component is lost.

C. Wang, J. Mattingly and Y. M. Lu, *Scaling limit: exact and tractable analysis of online learning algorithms with
applications to regularized regression and PCA*, arXiv:1712.04332. Samples are white noise with a signal of variance
omega = 2 along the feature, and a step adds tau s x, with the weights back on the sphere. Left, the overlap in time;
right, where it ends: the feature is learnt if tau < 2 omega, and then q^2 = (2 omega - tau)/(omega (2 + tau)), the
line. The sparse weights of the paper need the density, which is not in this study.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import agreement, draw_cases, overlap, problem, simulated, solved

OMEGA, START = 2.0, 0.3
RATES = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 3.5, 4.5, 5.0, 6.0)
SHOWN = (0.25, 0.5, 2.0, 5.0)


def problem_of(rate: float) -> object:
    """Rule `oja`, F = rate s."""
    feature = {"initial_overlap": START, "hidden": {"law": "gaussian", "second_moment": OMEGA}}
    data, model = {"signal": "spiked"}, {"constraint": "sphere"}
    return problem("oja", {"rate": rate}, 20.0, time={"outputs": 81}, features=[feature], data=data, model=model)


def exact(rate: float, t: np.ndarray) -> np.ndarray:
    """The overlap in closed form: q^2 obeys a logistic equation."""
    a, b = 2.0 * rate * OMEGA - rate**2, 2.0 * rate * OMEGA + rate**2 * OMEGA
    return np.sqrt(a / (b + (a / START**2 - b) * np.exp(-a * t)))


def final(rate: np.ndarray) -> np.ndarray:
    """Overlap that stays."""
    return np.sqrt(np.maximum(2.0 * OMEGA - rate, 0.0) / (OMEGA * (2.0 + rate)))


def theory() -> xr.Dataset:
    """Limits at all rates."""
    return solved({rate: problem_of(rate) for rate in RATES})


def simulate() -> xr.Dataset:
    """SGD of what is shown in time."""
    return simulated({rate: problem_of(rate) for rate in SHOWN})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Closed form, and the transition."""
    q = overlap(numbers)
    off = max(float(abs(q.sel(case=rate) - exact(rate, q["time"].values)).max()) for rate in RATES)
    last = q.isel(time=-1)
    below, above = last.where(last["case"] < 2.0 * OMEGA, drop=True), last.where(last["case"] > 2.0 * OMEGA, drop=True)
    settled = below.where(below["case"] >= 0.25, drop=True)
    return [
        Statement("the overlap is the closed form", "by hand", off < 1e-5, f"off by {off:.0e} at most"),
        Statement(
            "the feature is learnt if tau < 2 omega, and else lost",
            "by hand",
            float(below.min()) > 0.2 and float(above.max()) < 0.02,
            f"at t = 20 q >= {float(below.min()):.2f} for rates up to 3.5, q <= {float(above.max()):.4f} from 4.5",
        ),
        Statement(
            "the overlap that stays is ((2 omega - tau)/(omega (2 + tau)))^(1/2)",
            "by hand",
            float(abs(settled - final(settled["case"])).max()) < 1e-3,
            f"off by {float(abs(settled - final(settled['case'])).max()):.0e} at t = 20, rates 0.25 to 3.5",
        ),
        *agreement(numbers, overlap),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Overlaps in time, and at the end."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    draw_cases(left, numbers, overlap, {rate: rf"$\tau = {rate:g}$" for rate in SHOWN})
    left.set(xlabel="time t = k/N", ylabel="overlap q", ylim=(-0.2, 1))
    place_legend(left)
    rate = np.linspace(0.0, 6.5, 400)
    right.plot(rate, final(rate), color="0.3", lw=1.2, label="closed form, t to infinity")
    last = overlap(numbers).isel(time=-1)
    right.plot(last["case"], last, "o", mfc="white", color="C0", label="limit at t = 20")
    right.axvline(2.0 * OMEGA, color="0.6", lw=0.8, ls=":")
    right.annotate(r"$\tau = 2\omega$", (2.0 * OMEGA, 0.9), (4, 0), textcoords="offset points", color="0.35")
    right.set(xlabel=r"rate $\tau$", ylabel="overlap at the end", ylim=(0, 1), xlim=(0, 6.5))
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
