"""Soft committee machines, as in Saad and Solla (1995): a plateau, on which all hidden units are alike.

D. Saad and S. A. Solla, *On-line learning in soft committee machines*, Physical Review E 52 (1995) 4225. Two hidden
units g(s) = erf(s/sqrt 2) learn from two orthogonal ones. Soon both have the same overlap with both teachers, and the
error stays where it is; the small asymmetry of the start grows exponentially meanwhile, until each takes one of the
teachers and the error falls to 0. Lines are limits from quadrature over four fields, crosses the equations in closed
form of the paper's kind, with arcsines.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.special import erf

import meanfield
from meanfield.plotting import COLOURS, LINES, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers import erf_networks
from validation.update_rule.papers.cases import agreement, draw_cases, error, problem, simulated, solved

RATE, STOP = 1.5, 80.0
R = np.array([[0.05, 0.0], [0.0, 0.1]])
NORMS = (0.5, 0.4)


def g(x: Any) -> Any:
    """Activation."""
    return erf(x / np.sqrt(2))


def slope(x: Any) -> Any:
    """Derivative of the activation."""
    return np.sqrt(2 / np.pi) * np.exp(-x * x / 2)


def step(y: Any, s: Any, rate: float) -> Any:
    """Gradient of the squared error."""
    return rate * slope(s) * (g(y).sum(axis=0) - g(s).sum(axis=0))


def half_square(y: Any, s: Any) -> Any:
    """Error."""
    return 0.5 * (g(y).sum(axis=0) - g(s).sum(axis=0)) ** 2


committee = meanfield.Rule(step, observables={"error": half_square})


def problem_of() -> object:
    """Two students and two teachers."""
    features = [{"initial_overlap": column.tolist()} for column in R.T]
    students = [{"initial_norm": norm} for norm in NORMS]
    tables = {"order_parameters": {"tolerance": 1e-3}, "time": {"outputs": 41}}
    return problem(
        "soft_committee:committee",
        {"rate": RATE},
        STOP,
        features=features,
        students=students,
        **tables,
    )


def theory() -> xr.Dataset:
    """The limit, and errors in closed form."""
    numbers = solved({"committee": problem_of()})
    network = erf_networks.Network(R, np.diag(NORMS), np.ones(2), RATE)
    return numbers.assign(closed=("time", erf_networks.errors(network, numbers["time"].values)))


def simulate() -> xr.Dataset:
    """SGD from the same start."""
    return simulated({"committee": problem_of()}, 1000)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Closed form, plateau and specialisation."""
    e, overlaps = error(numbers).isel(case=0), numbers.R.isel(case=0)
    off = float(abs(e - numbers.closed).max())
    apart = float(abs(overlaps.sel(time=10.0) - overlaps.sel(time=10.0).mean()).max())
    last = overlaps.isel(time=-1).values
    return [
        Statement("the error is the closed form", "by hand", off < 1e-3, f"off by {off:.0e} at most"),
        Statement(
            "on a plateau all overlaps of students and teachers are alike",
            "paper",
            apart < 0.1 and float(e.sel(time=20.0) / e.sel(time=10.0)) > 0.5,
            f"at t = 10 overlaps are within {apart:.3f} of their mean; the error is {float(e.sel(time=10.0)):.4f} "
            f"there and {float(e.sel(time=20.0)):.4f} at t = 20",
        ),
        Statement(
            "students specialise, each on a teacher, and the error vanishes",
            "paper",
            last[0, 0] > 0.9 and last[0, 1] < 0.1 and float(e[-1]) < 1e-3,
            f"at t = {STOP:g} R = {np.array2string(last.ravel(), precision=3)}, error {float(e[-1]):.1e}",
        ),
        *agreement(numbers, error),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Overlaps and errors."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    for place, (i, m) in enumerate(np.ndindex(2, 2)):
        style = {"color": COLOURS[place], "ls": LINES[place], "label": f"$R_{{{i + 1}{m + 1}}}$"}
        left.plot(numbers["time"], numbers.R.isel(case=0, student=i, feature=m), **style)
    left.set(xlabel="time t = k/N", ylabel="overlaps of students and teachers", ylim=(0, 1))
    place_legend(left)
    draw_cases(right, numbers, error, {"committee": "limit, and SGD at N = 1000"})
    right.plot(numbers["time"][::2], numbers.closed[::2], "x", color="0.3", ms=4, label="closed form")
    right.set(yscale="log", xlabel="time t = k/N", ylabel="error")
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
