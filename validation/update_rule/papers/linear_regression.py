"""Least squares on-line, as in Wang, Mattingly and Lu (2017): rates above 2 diverge, and weight decay helps large ones.

C. Wang, J. Mattingly and Y. M. Lu, *Scaling limit: exact and tractable analysis of online learning algorithms with
applications to regularized regression and PCA*, arXiv:1712.04332. Labels are y + sigma eps with sigma = 0.5, and a
step adds tau (label - s) x. Left, the error |w - u|^2/(2N) in time; right, the error that stays, tau sigma^2/(4 - 2
tau) without weight decay. Lines are closed forms on the right and limits on the left, circles are limits at t = 40.
The lasso of the paper needs the density, which is not in this study. SGD is at N = 4000: at tau = 1.8 its mean is
above the limit by 0.042(2), 0.0088(12) and 0.0022(5) at N = 500, 2000 and 8000, an effect of order 1/N.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.plotting import COLOURS, MARKERS, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import agreement, draw_cases, error, problem, simulated, solved

SIGMA, STOP = 0.5, 40.0
RATES = (0.2, 0.5, 1.0, 1.5, 1.8)
DECAYS = (0.0, 0.1, 0.3)
TOO_LARGE = 2.1
SHOWN = (0.2, 1.0, 1.8)


def step(y: Any, s: Any, eps: Any, rate: float) -> Any:
    """Residual of a label with noise."""
    return rate * (y + SIGMA * eps - s)


def half_square(y: Any, s: Any) -> Any:
    """Error on labels without noise."""
    return 0.5 * (y - s) ** 2


least_squares = meanfield.Rule(step, observables={"error": half_square})


def problem_of(rate: float, decay: float) -> object:
    """Weights that know nothing, with w -= decay w/N in each step."""
    prior = {"prior": {"name": "l2", "strength": decay}} if decay else {}
    data, features = {"normals": ["eps"]}, [{"initial_overlap": 0.0}]
    return problem("linear_regression:least_squares", {"rate": rate}, STOP, data=data, features=features, **prior)


def name_of(rate: float, decay: float) -> str:
    """Name of a case."""
    return f"{rate:g}, {decay:g}"


def final(rate: np.ndarray, decay: float) -> np.ndarray:
    """Error that stays: the fixed point of two linear equations for R and Q."""
    R = rate / (rate + decay)
    Q = (2.0 * rate * R + rate**2 * (1.0 - 2.0 * R + SIGMA**2)) / (2.0 * rate + 2.0 * decay - rate**2)
    return 0.5 * (1.0 - 2.0 * R + Q)


def theory() -> xr.Dataset:
    """Limits at all rates and decays, and at one rate that diverges."""
    cases = [*((rate, decay) for decay in DECAYS for rate in RATES), (TOO_LARGE, 0.0)]
    return solved({name_of(*case): problem_of(*case) for case in cases})


def at_rest(numbers: xr.Dataset, decay: float) -> np.ndarray:
    """Errors at the last time, by rates."""
    last = error(numbers).isel(time=-1)
    return np.array([float(last.sel(case=name_of(rate, decay))) for rate in RATES])


def simulate() -> xr.Dataset:
    """SGD of what is shown in time."""
    return simulated({name_of(rate, 0.0): problem_of(rate, 0.0) for rate in SHOWN}, 4000)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Errors that stay, and divergence."""
    rates = np.array(RATES)
    off = max(float(abs(at_rest(numbers, decay) - final(rates, decay)).max()) for decay in DECAYS)
    grown = error(numbers).sel(case=name_of(TOO_LARGE, 0.0))
    rate = float(np.log(grown[-1] / grown[-11]) / (grown["time"][-1] - grown["time"][-11]))
    better = {decay: at_rest(numbers, decay) < at_rest(numbers, 0.0) for decay in DECAYS[1:]}
    return [
        Statement("the error at t = 40 is the fixed point", "by hand", off < 1e-3, f"off by {off:.0e} at most"),
        Statement(
            f"at tau = {TOO_LARGE} it grows at the rate tau (tau - 2)",
            "by hand",
            abs(rate / (TOO_LARGE * (TOO_LARGE - 2.0)) - 1.0) < 0.02,
            f"{rate:.4f} from t = 30 to 40, {TOO_LARGE * (TOO_LARGE - 2.0):.4f} predicted",
        ),
        Statement(
            "weight decay lowers the error at large rates and raises it at small ones",
            "by hand",
            all(each[-1] and not each[0] for each in better.values()),
            "; ".join(f"decay {decay:g} is better at {rates[each]}" for decay, each in better.items()),
        ),
        *agreement(numbers, error),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors in time, and at rest."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    draw_cases(left, numbers, error, {name_of(rate, 0.0): rf"$\tau = {rate:g}$" for rate in (*SHOWN, TOO_LARGE)})
    left.set(yscale="log", xlabel="time t = k/N", ylabel=r"error $|w - u|^2/2N$")
    place_legend(left)
    for place, decay in enumerate(DECAYS):
        rate = np.linspace(0.01, 1.95, 300)
        right.plot(rate, final(rate, decay), color=COLOURS[place], lw=1.2, label=f"weight decay {decay:g}")
        right.plot(RATES, at_rest(numbers, decay), MARKERS[place], mfc="white", color=COLOURS[place])
    right.set(yscale="log", xlabel=r"rate $\tau$", ylabel="error at rest", xlim=(0, 2))
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
