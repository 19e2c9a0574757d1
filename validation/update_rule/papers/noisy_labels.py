"""Noisy labels, as in Biehl, Riegler and Stechert (1995): which rule survives flipped answers.

M. Biehl, P. Riegler and M. Stechert, *Learning from noisy data: an exactly solvable model*, Physical Review E 52
(1995). A tenth of the teacher's answers sign(y) are flipped; drawn is the share of questions on which student and
teacher differ. Left, Hebb's rule averages the noise away and is slower by the factor 1/(1 - 2 rho) alone, the thin
line; the perceptron's rule at a constant rate goes on following wrong answers, and so does the Adatron's. Right, what
weight decay does where the teacher does not move: old samples are forgotten, and errors at rest rise with it. Lines
are closed forms, marks are limits at t = 100.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

import meanfield
from meanfield.plotting import COLOURS, MARKERS, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import agreement, draw_cases, error, problem, simulated, solved

RHO, STOP = 0.1, 100.0
NAMES = {"hebb": "Hebb", "perceptron": "perceptron", "adatron": "Adatron"}
DECAYS = (0.1, 0.2, 0.3, 0.4)


def hebb_step(y: Any, flip: Any, rate: float) -> Any:
    """A step towards the answer."""
    return rate * np.sign(y) * (1 - 2 * flip)


def perceptron_step(y: Any, s: Any, flip: Any, rate: float) -> Any:
    """A step towards the answer where the student has another one."""
    answer = np.sign(y) * (1 - 2 * flip)
    return rate * answer * (s * answer < 0)


def adatron_step(y: Any, s: Any, flip: Any, rate: float) -> Any:
    """A step as large as the student's error."""
    return -rate * s * (s * y * (1 - 2 * flip) < 0)


def wrong(y: Any, s: Any) -> Any:
    """Whether student and teacher differ."""
    return s * y < 0


hebb, perceptron, adatron = (
    meanfield.Rule(step, kinks=("y", "s"), observables={"error": wrong})
    for step in (hebb_step, perceptron_step, adatron_step)
)


def problem_of(rule: str, decay: float = 0.0) -> object:
    """Weights of length 1 that know nothing."""
    prior = {"prior": {"name": "l2", "strength": decay}} if decay else {}
    time, data = {"outputs": 26, "spacing": "log", "first": 0.1}, {"coins": {"flip": RHO}}
    features = [{"initial_overlap": 0.0}]
    return problem(f"noisy_labels:{rule}", {"rate": 1.0}, STOP, time=time, data=data, features=features, **prior)


def velocity(rule: str, R: float, Q: float, decay: float) -> tuple[float, float]:
    """dR/dt and dQ/dt in closed form, for Hebb and the perceptron."""

    def averages(R: float) -> tuple[float, float, float]:
        w, k = R / np.sqrt(Q), np.sqrt(2.0 / np.pi)
        if rule == "hebb":
            return k, R * k, 1.0
        return 0.5 * k * (1.0 - w), -0.5 * k * np.sqrt(Q) * (1.0 - w), float(np.arccos(w) / np.pi)

    (y, s, square), (other_y, other_s, other) = averages(R), averages(-R)
    gain = 2.0 * ((1.0 - RHO) * s + RHO * other_s) + (1.0 - RHO) * square + RHO * other
    return (1.0 - RHO) * y - RHO * other_y - decay * R, gain - 2.0 * decay * Q


def final(rule: str, decay: float) -> float:
    """Error at rest, by integration of the closed form until nothing changes."""
    path = solve_ivp(lambda t, x: velocity(rule, *x, decay), (0.0, 20.0 / decay), [0.0, 1.0], rtol=1e-8, atol=1e-10)
    R, Q = path.y[:, -1]
    return float(np.arccos(R / np.sqrt(Q)) / np.pi)


def theory() -> xr.Dataset:
    """Limits of all rules, and of two with weight decay."""
    cases: dict[str, object] = {rule: problem_of(rule) for rule in NAMES}
    return solved(cases | {f"{rule}, {decay:g}": problem_of(rule, decay) for rule in FINAL for decay in DECAYS})


FINAL = ("hebb", "perceptron")
"""Rules that come to rest with weight decay; the weights of the Adatron vanish."""


def simulate() -> xr.Dataset:
    """SGD of what is shown in time."""
    return simulated({rule: problem_of(rule) for rule in NAMES})


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Hebb's law, floors, and fixed points."""
    last = error(numbers).isel(time=-1)
    hebbian, others = float(last.sel(case="hebb")), {rule: float(last.sel(case=rule)) for rule in list(NAMES)[1:]}
    wanted = 1.0 / ((1.0 - 2.0 * RHO) * np.sqrt(2.0 * np.pi * STOP))
    ends = {rule: [float(last.sel(case=f"{rule}, {decay:g}")) for decay in DECAYS] for rule in FINAL}
    off = max(abs(end - final(rule, decay)) for rule in FINAL for decay, end in zip(DECAYS, ends[rule], strict=True))
    return [
        Statement(
            r"Hebb: the error becomes $(2\pi t)^{-1/2}/(1 - 2\rho)$",
            "by hand",
            abs(hebbian / wanted - 1.0) < 0.01,
            f"{hebbian:.5f} at t = 100, {wanted:.5f} by the law",
        ),
        Statement(
            "at a constant rate perceptron and Adatron keep an error above the share of flips",
            "ours",
            min(others.values()) > RHO,
            ", ".join(f"{NAMES[rule]} {value:.4f}" for rule, value in others.items()) + f" at t = 100, rho = {RHO}",
        ),
        Statement("errors with weight decay are the fixed points", "by hand", off < 1e-4, f"off by {off:.0e} at most"),
        Statement(
            "more weight decay leaves a larger error",
            "ours",
            all(np.all(np.diff([float(last.sel(case=rule)), *each]) > 0) for rule, each in ends.items()),
            "; ".join(f"{NAMES[rule]} {', '.join(f'{end:.3f}' for end in each)}" for rule, each in ends.items()),
        ),
        *agreement(numbers, error),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors in time, and at rest."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    draw_cases(left, numbers, error, NAMES)
    t = np.geomspace(4.0, STOP, 30)
    left.plot(t, 1.0 / ((1.0 - 2.0 * RHO) * np.sqrt(2.0 * np.pi * t)), color="0.45", lw=0.8, zorder=0)
    left.set(xscale="log", yscale="log", xlim=(0.1, STOP), xlabel="time t = k/N", ylabel="share of wrong answers")
    place_legend(left)
    decays, last = np.geomspace(0.02, 0.5, 60), error(numbers).isel(time=-1)
    for place, rule in enumerate(FINAL):
        right.plot(decays, [final(rule, decay) for decay in decays], color=COLOURS[place], lw=1.2)
        style = {"color": COLOURS[place], "marker": MARKERS[place], "mfc": "white", "ls": "none"}
        right.plot(DECAYS, [last.sel(case=f"{rule}, {decay:g}") for decay in DECAYS], label=NAMES[rule], **style)
    right.set(xlabel="weight decay", ylabel="share of wrong answers at rest", ylim=(0, None), xlim=(0, 0.5))
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
