"""Targets that are averages of students, as in Tarvainen and Valpola (2017): mean teachers are better role models.

A. Tarvainen and H. Valpola, *Mean teachers are better role models: weight-averaged consistency targets improve
semi-supervised deep learning results*, Advances in Neural Information Processing Systems 30 (2017). A linear student
sees one label in five, with noise, and at every sample the output of a second vector w', which follows it by w' += a
(w - w')/N and is its average. Its pull has the weight lambda, 0 or lambda* = 1/tau - p; tau = 0.5, a = 0.25.
Left, errors in time; right, errors at rest: lines are the closed form, marks limits at t = 500. SGD is at N = 2000.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.plotting import COLOURS, LINES, MARKERS, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import SHOWN, agreement, problem, simulated, solved

RATE, AVERAGING, SEEN, SIGMA, STOP = 0.5, 0.25, 0.2, 1.0, 500.0
BEST = 1.0 / RATE - SEEN
WEIGHTS = (0.0, 0.4, 1.0, BEST, 2.6)
SHOWN_WEIGHTS = {0.0: "alone", BEST: r"$\lambda^*$"}
WHO = ("student", "average")


def step(y: Any, s: Any, eps: Any, seen: Any, weight: float) -> Any:
    """Residual where there is a label, and the pull of the average."""
    return RATE * np.array([seen * (y + SIGMA * eps - s[0]) + weight * (s[1] - s[0]), 0.0])


def along(averaging: float) -> Any:
    """The average follows the student."""
    return np.array([[0.0, 0.0], [0.0, averaging], [0.0, -averaging]])


def student_error(y: Any, s: Any) -> Any:
    """Error of the student."""
    return 0.5 * (y - s[0]) ** 2


def average_error(y: Any, s: Any) -> Any:
    """Error of its average."""
    return 0.5 * (y - s[1]) ** 2


mean_teacher = meanfield.Rule(step, along=along, observables={"student": student_error, "average": average_error})


def problem_of(weight: float) -> object:
    """Both vectors begin at the same weights, which know nothing."""
    data = {"coins": {"seen": SEEN}, "normals": ["eps"]}
    students = [{}, {"initial_overlap": [1.0]}]
    parameters = {"weight": weight, "averaging": AVERAGING}
    tables: dict[str, Any] = {"data": data, "features": [{"initial_overlap": 0.0}], "students": students}
    return problem("mean_teacher:mean_teacher", parameters, STOP, time={"outputs": 101}, **tables)


def theory() -> xr.Dataset:
    """Limits of all weights of the pull."""
    return solved({weight: problem_of(weight) for weight in WEIGHTS})


def simulate() -> xr.Dataset:
    """SGD of what is shown in time."""
    return simulated({weight: problem_of(weight) for weight in SHOWN_WEIGHTS}, 2000)


def at_rest(weight: Any) -> np.ndarray:
    """Errors of the student and of its average that stay."""
    follows = AVERAGING / (AVERAGING + RATE * SEEN)
    gain = weight * (1.0 - follows) * (2.0 - RATE * (2.0 * SEEN + weight))
    student = 0.5 * RATE * SEEN * SIGMA**2 / (SEEN * (2.0 - RATE) + gain)
    return np.array([student, follows * student])


def both(numbers: xr.Dataset, prefix: str = "") -> xr.DataArray:
    """Errors of the student and of its average."""
    return numbers[f"{prefix}observables"]


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Errors at rest."""
    last = both(numbers).isel(time=-1).transpose("observable", "case").values
    off = float(abs(last - at_rest(np.array(WEIGHTS))).max())
    said = [", ".join(f"{value:.4f}" for value in values) for values in last]
    weights = ", ".join(f"{weight:g}" for weight in WEIGHTS)
    return [
        Statement("errors at rest are the closed form", "by hand", off < 1e-5, f"off by {off:.0e} at most"),
        Statement(
            "the average is the better role model: its error is below the student's",
            "paper, title",
            bool(np.all(last[1] < last[0])),
            f"{said[1]} against {said[0]} for lambda = {weights}",
        ),
        Statement(
            "as a target it improves what is learnt from few labels, most with the weight 1/tau - p",
            "paper, title; the weight by hand",
            last[0].argmin() == WEIGHTS.index(BEST) and last[0].min() < 0.5 * last[0, 0],
            f"the error of the student falls from {last[0, 0]:.4f} to {last[0].min():.4f}",
        ),
        *agreement(numbers, both),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors in time, and at rest."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained", sharey=True)
    for place, (weight, who) in enumerate((weight, who) for weight in SHOWN_WEIGHTS for who in range(len(WHO))):
        style = {"color": COLOURS[place], "ls": LINES[place]}
        limit = both(numbers).sel(case=weight).isel(observable=who)
        left.plot(limit["time"], limit, lw=1.4, label=f"{WHO[who]}, {SHOWN_WEIGHTS[weight]}", **style)
        if "sgd_observables" in numbers:
            runs = both(numbers, "sgd_").sel(case=weight).isel(observable=who)
            runs = runs.isel(time=np.linspace(0, runs.sizes["time"] - 1, SHOWN).astype(int))
            spread = 2.0 * runs.std("replica", ddof=1) / np.sqrt(runs.sizes["replica"])
            marks = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "ms": 4, "mfc": "white"}
            left.errorbar(runs["time"], runs.mean("replica"), spread, lw=0.8, **marks)
    left.set(yscale="log", ylim=(0.02, 1.2), xlabel="time t = k/N", ylabel=r"error $|w - u|^2/2N$")
    place_legend(left)
    weight, last = np.linspace(0.0, 2.8, 200), both(numbers).isel(time=-1)
    for who, label in enumerate(WHO):
        right.plot(weight, at_rest(weight)[who], color=COLOURS[who], lw=1.2)
        style = {"color": COLOURS[who], "marker": MARKERS[who], "ls": "none", "mfc": "white", "label": label}
        right.plot(WEIGHTS, last.isel(observable=who), **style)
    right.set(xlabel=r"weight $\lambda$ of the pull towards the average")
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
