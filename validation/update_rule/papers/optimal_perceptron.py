"""The best rule for a perceptron, as in Kinouchi and Caticha (1992): no other lowers the error faster.

O. Kinouchi and N. Caticha, *Optimal generalization in perceptrons*, Journal of Physics A 25 (1992) 6243-6250. Each step
is the one that raises the overlap w = R/sqrt Q most, given the answer sign(y) and the field s of the student: what is
expected of y - w s/sqrt Q, times sqrt Q/w. Its size depends on w, which the rule reads. The error falls like 0.883/t,
against 3/(2t) of the Adatron. Left, errors from R = 0.2; thin lines are laws for long times. Right, the same times t.
SGD is at N = 1000.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.integrate import quad, solve_ivp
from scipy.special import ndtr

import meanfield
from meanfield.plotting import COLOURS, LINES, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import agreement, draw_cases, error, problem, simulated, solved

START, STOP = 0.2, 100.0
RULES = {"hebb": "Hebb", "perceptron": "perceptron", "adatron": "Adatron", "optimal": "optimal"}


def surprise(x: Any) -> Any:
    """Density of a normal variable by its distribution function, by a continued fraction where both are tiny."""
    if x < -30:
        return -x - 1 / (x + 2 / (x + 3 / x))
    return np.exp(-x * x / 2) / (np.sqrt(2 * np.pi) * ndtr(x))


def step(y: Any, s: Any, R: Any, Q: Any) -> Any:
    """Expected surprise of the answer, a ratio of a normal density and a distribution function."""
    w, length = R / np.sqrt(Q), np.sqrt(Q)
    unsure = np.sqrt(1 - w * w)
    x = np.sign(y) * w * s / (unsure * length)
    return np.sign(y) * length * unsure / w * surprise(x)


def misclassified(y: Any, s: Any) -> Any:
    """Wrong answers."""
    return s * y < 0


optimal = meanfield.Rule(step, kinks=("y", "s"), observables={"error": misclassified})


def problem_of(rule: str) -> object:
    """One of the rules from the same start."""
    time = {"outputs": 31, "spacing": "log", "first": 0.1}
    name, parameters = ("optimal_perceptron:optimal", {}) if rule == "optimal" else (rule, {"rate": 1.0})
    return problem(name, parameters, STOP, time=time, features=[{"initial_overlap": START}])


def information() -> float:
    """Integral of the square of the density by the distribution function of a normal variable."""
    return float(quad(lambda x: np.exp(-x * x) / (2.0 * np.pi) / ndtr(x), -30.0, 30.0, points=[0.0])[0])


LAWS = {
    "hebb": (1.0 / np.sqrt(2.0 * np.pi), 1.0 / 2.0),
    "perceptron": ((2.0 / 3.0) ** (1.0 / 3.0) / np.pi, 1.0 / 3.0),
    "adatron": (1.5, 1.0),
    "optimal": (np.sqrt(2.0 / np.pi) / information(), 1.0),
}
"""Factors and powers of the laws for long times."""


def exact(times: np.ndarray) -> np.ndarray:
    """Error of the best rule: dw/dt = (1 - w^2)/(2 w) times the mean square of the surprise, from its definition."""

    def velocity(t: float, w: np.ndarray) -> np.ndarray:
        steep = w[0] / np.sqrt(1.0 - w[0] ** 2)

        def density(h: float) -> float:
            return float(np.exp(-0.5 * h * h - (steep * h) ** 2) / ndtr(steep * h))

        reach = 9.0 / np.sqrt(0.5 + 0.5 * steep**2)
        mean = 2.0 / (2.0 * np.pi) ** 1.5 * quad(density, -reach, reach, points=[0.0], epsabs=0.0, epsrel=1e-10)[0]
        return (1.0 - w**2) / (2.0 * w) * mean

    w = solve_ivp(velocity, (0.0, times[-1]), [START], t_eval=times, method="LSODA", rtol=1e-10, atol=1e-12).y[0]
    return np.asarray(np.arccos(w) / np.pi)


def theory() -> xr.Dataset:
    """Limits of the rules, and the best one by hand."""
    numbers = solved({rule: problem_of(rule) for rule in RULES})
    return numbers.assign(exact=("time", exact(numbers["time"].values)))


def simulate() -> xr.Dataset:
    """SGD from the same start."""
    return simulated({rule: problem_of(rule) for rule in RULES}, 1000)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether the best rule is what it is by hand, and the best."""
    limit = error(numbers)
    best, others = limit.sel(case="optimal"), limit.drop_sel(case="optimal").isel(time=slice(1, None))
    off = float(abs(best / numbers.exact - 1.0).max())
    factor, last = LAWS["optimal"][0], float(best[-1] * STOP)
    return [
        Statement(
            "its error is the solution of one equation", "by hand", off < 1e-3, f"off by {off:.0e} of it at most"
        ),
        Statement(
            "the error becomes 0.883/t",
            "paper; the factor by hand",
            abs(last / factor - 1.0) < 0.05 and abs(factor - 0.883) < 5e-4,
            f"{last:.3f}/t at t = 100, {factor:.4f} by hand",
        ),
        Statement(
            "no other of these rules has a smaller error, at any time",
            "paper, title",
            bool((best < others).all()),
            "at t = 100 " + ", ".join(f"{RULES[rule]} {float(limit.sel(case=rule)[-1]):.5f}" for rule in RULES),
        ),
        *agreement(numbers, error),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors in time, and times t."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    draw_cases(left, numbers, error, RULES)
    left.plot(numbers["time"], numbers.exact, "x", color="0.3", ms=4, label="by hand")
    t = np.geomspace(5.0, STOP, 50)
    for factor, power in LAWS.values():
        left.plot(t, factor * t**-power, color="0.45", lw=0.8, zorder=0)
    left.set(xscale="log", yscale="log", xlim=(0.1, STOP), xlabel="time t = k/N", ylabel="share of wrong answers")
    place_legend(left)
    for place, (rule, label) in enumerate(list(RULES.items())[2:], start=2):
        value = error(numbers).sel(case=rule) * numbers["time"]
        right.plot(numbers["time"], value, color=COLOURS[place], ls=LINES[place], label=label)
        right.axhline(LAWS[rule][0], color="0.6", lw=0.8, ls=":")
    right.set(
        xscale="log", xlim=(0.1, STOP), ylim=(0, 2), xlabel="time t = k/N", ylabel="share of wrong answers times t"
    )
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
