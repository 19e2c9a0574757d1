"""Least squares on power laws, as in Paquette, Paquette, Xiao and Pennington (2024): errors that are powers of time.

E. Paquette, C. Paquette, L. Xiao and J. Pennington, *4+3 phases of compute-optimal neural scaling laws*,
arXiv:2405.15074, and E. Collins-Woodfin, C. Paquette, E. Paquette and I. Seroussi, *Hitting the high-dimensional notes:
an ODE for SGD learning dynamics on GLMs and multi-index models*, arXiv:2308.08977. The variances of inputs fall as
rank^-2, by a factor of 10,000, and the mean square of the teacher is in proportion to variance^s. Labels have no noise,
and a step adds tau (label - s) x with tau = 0.2. Between the times at which the first and the last variances are learnt
the error falls as t^-(1/2 + s), unless that is faster than t^-1.5: then the noise of the steps along large variances is
what is left. Left, limits, and SGD for the two teachers that do not live in a few coordinates; right, the
slopes in time, with these powers dotted.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.polynomial.legendre import leggauss
from scipy.integrate import solve_ivp

from meanfield.plotting import COLOURS, LINES, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import agreement, draw_cases, error, problem, simulated, solved

RATE, EXPONENT, RANGE, STOP = 0.2, 2.0, 1e4, 30.0
TEACHERS = (0.0, 0.5, 1.0, 2.5)
WITH_SGD = TEACHERS[:2]
EARLY, LATE = (1.0, 5.0), (10.0, 30.0)
"""Times between which slopes are taken: of signal that is left, and of noise."""


def problem_of(teacher: float) -> Any:
    """Weights that know almost nothing, and a teacher with a power of the variances."""
    spectrum = {"law": "power_law", "exponent": EXPONENT, "range": RANGE, "teacher": teacher}
    return problem(
        "regression",
        {"rate": RATE},
        STOP,
        data={"spectrum": spectrum},
        features=[{}],
        students=[{"initial_norm": 1e-6}],
        time={"outputs": 25, "spacing": "log", "first": 0.05},
        order_parameters={"tolerance": 1e-6},
    )


def by_hand(teacher: float, times: np.ndarray) -> np.ndarray:
    """Errors from the equations de/dt = -2 tau rho e + tau^2 rho E[rho e] at 400 points in log(rho)."""
    x, weight = leggauss(400)
    log_rho = 0.5 * (x + 1.0) * np.log(RANGE)
    weight = weight * np.exp(-log_rho / EXPONENT)
    weight /= weight.sum()
    rho = np.exp(log_rho) / (weight @ np.exp(log_rho))
    start = rho**teacher / (weight @ rho**teacher) + 1e-6

    def velocity(t: float, e: np.ndarray) -> np.ndarray:
        return np.asarray(RATE * rho * (RATE * (weight @ (rho * e)) - 2.0 * e))

    found = solve_ivp(velocity, (0.0, times[-1]), start, "LSODA", times, rtol=1e-9, atol=1e-13)
    return np.asarray(0.5 * (weight * rho) @ found.y)


def theory() -> xr.Dataset:
    """Limits for all teachers."""
    return solved({f"{teacher:g}": problem_of(teacher) for teacher in TEACHERS})


def simulate() -> xr.Dataset:
    """SGD for some."""
    return simulated({f"{teacher:g}": problem_of(teacher) for teacher in WITH_SGD})


def slope(curve: xr.DataArray, between: tuple[float, float]) -> float:
    """Slope of a curve in logarithms, between two times."""
    part = curve.where((curve["time"] >= between[0]) & (curve["time"] <= between[1]), drop=True)
    return float(np.polyfit(np.log(part["time"]), np.log(part), 1)[0])


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Equations by hand, and slopes."""
    curves = {teacher: error(numbers).sel(case=f"{teacher:g}") for teacher in TEACHERS}
    off = {teacher: abs(curve / by_hand(teacher, curve["time"].values) - 1.0) for teacher, curve in curves.items()}
    worst = max(float(each.max()) for each in off.values())
    slopes = {teacher: slope(curve, EARLY if teacher <= 1.0 else LATE) for teacher, curve in curves.items()}
    signal, noise = [each for each in TEACHERS if each <= 1.0], TEACHERS[-1]
    return [
        Statement("the error is that of its equations", "by hand", worst < 5e-3, f"off by a share of {worst:.0e}"),
        Statement(
            "from t = 1 to 5 it falls as t^-(1/2 + s), as long as that is no faster than t^-1.5",
            "by hand",
            all(abs(slopes[s] + 0.5 + s) < 0.1 for s in signal),
            "slopes " + ", ".join(f"{slopes[s]:.2f} for s = {s:g}" for s in signal),
        ),
        Statement(
            f"for s = {noise:g} the noise of the steps is left, and from t = 10 to 30 it falls as t^-1.5",
            "by hand",
            abs(slopes[noise] + 1.5) < 0.1,
            f"slope {slopes[noise]:.2f}",
        ),
        *agreement(numbers.sel(case=[f"{teacher:g}" for teacher in WITH_SGD]), error),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors in time, and their slopes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    shown = {f"{teacher:g}": f"s = {teacher:g}" for teacher in TEACHERS}
    draw_cases(left, numbers, error, shown)
    left.set(xscale="log", yscale="log", xlabel="time t = k/N", ylabel="error", xlim=(0.04, 1.1 * STOP))
    place_legend(left)
    for place, (case, teacher) in enumerate(zip(shown, TEACHERS, strict=True)):
        curve = error(numbers).sel(case=case)[1:]
        slopes = np.gradient(np.log(curve), np.log(curve["time"]))
        right.plot(curve["time"], slopes, color=COLOURS[place], ls=LINES[place % len(LINES)])
        right.axhline(-min(0.5 + teacher, 1.5), color=COLOURS[place], lw=0.8, ls=":")
    right.set(xscale="log", xlabel="time t = k/N", ylabel="slope of the error")
    return figure


STUDY = Study(theory, judge, draw, simulate)
