"""Hebb, perceptron and Adatron rules of Mace and Coolen (1998): how fast each forgets its errors.

C. W. H. Mace and A. C. C. Coolen, *Statistical mechanical analysis of the dynamics of learning in perceptrons*,
Statistics and Computing 8 (1998) 55-88. A student sees questions x and the answers sign(y) of a teacher. After long
times the share of wrong answers falls like t^(-1/2) under Hebb's rule, like t^(-1/3) under the perceptron's, which
only learns from errors at a constant rate, and like 1/t under the on-line Adatron's, whose steps are as large as the
error is. Lines are limits, thin ones the laws for long times, and marks means of 16 runs of SGD at N = 500 with two
standard errors.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import agreement, draw_cases, error, problem, simulated, solved

STOP = 1000.0

LAWS = {
    "hebb": (1.0 / np.sqrt(2.0 * np.pi), 1.0 / 2.0, "Hebb", r"(2\pi t)^{-1/2}"),
    "perceptron": ((2.0 / 3.0) ** (1.0 / 3.0) / np.pi, 1.0 / 3.0, "perceptron", r"(2/3t)^{1/3}/\pi"),
    "adatron": (1.5, 1.0, "Adatron", r"3/(2t)"),
}
"""Factors and powers of the laws for long times, rate 1, and how they are written."""


def problem_of(rule: str) -> object:
    """One of the rules that the library knows: F = sign(y), sign(y) where s y < 0, -s where s y < 0."""
    time = {"outputs": 31, "spacing": "log", "first": 0.1}
    return problem(rule, {"rate": 1.0}, STOP, time=time, features=[{"initial_overlap": 0.0}])


def theory() -> xr.Dataset:
    """Limits of the three rules."""
    return solved({rule: problem_of(rule) for rule in LAWS})


def simulate() -> xr.Dataset:
    """SGD of what is shown in time."""
    return simulated({rule: problem_of(rule) for rule in LAWS})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether errors approach the laws."""
    found = []
    for rule, (factor, power, name, law) in LAWS.items():
        limit = error(numbers).sel(case=rule).isel(time=slice(1, None))
        off = limit * limit["time"] ** power / factor - 1.0
        tenth, last = (float(off.sel(time=t, method="nearest")) for t in (0.1 * STOP, STOP))
        found.append(
            Statement(
                f"{name}: the error becomes ${law}$",
                "by hand",
                abs(last) < 0.05 and abs(last) < abs(tenth),
                f"{100 * tenth:+.2f} % off at t = 100, {100 * last:+.2f} % at t = 1000",
            )
        )
    return [*found, *agreement(numbers, error)]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors in time."""
    figure, axis = plt.subplots(figsize=(6.0, 4.2), layout="constrained")
    draw_cases(axis, numbers, error, {rule: name for rule, (*_, name, _) in LAWS.items()})
    t = np.geomspace(3.0, STOP, 50)
    for factor, power, _, law in LAWS.values():
        axis.plot(t, factor * t**-power, color="0.45", lw=0.8, zorder=0)
        place = (t[-1], factor * t[-1] ** -power)
        axis.annotate(f"${law}$", place, (5, 0), textcoords="offset points", color="0.35", va="center")
    axis.set(xscale="log", yscale="log", xlim=(0.1, STOP), xlabel="time t = k/N", ylabel="share of wrong answers")
    place_legend(axis)
    return figure


STUDY = Study(theory, judge, draw, simulate)
