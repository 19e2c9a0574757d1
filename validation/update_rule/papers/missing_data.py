"""Subspaces from incomplete observations, as in Wang, Eldar and Lu (2018): missing data act as a weaker signal.

C. Wang, Y. C. Eldar and Y. M. Lu, *Subspace estimation from incomplete observations: a high-dimensional analysis*,
IEEE Journal of Selected Topics in Signal Processing 12 (2018). Samples are white noise with a signal of variance omega
= 4, of which a share p of the coordinates is seen. Oja's rule fills the others with its own guess; GROUSE moves along
the residual of those that are seen; PETRELS multiplies its steps by a gain that it learns (one for all coordinates).
Left, overlaps in time at p = 0.5 beside those of Oja's rule on full data with half the signal, which are the same.
PETRELS is Oja's rule with a rate of its own, gain/Q, which tends to one that depends on p. Right, where they end: lines
are fixed points in closed form, marks are limits at t = 25.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import meanfield
from meanfield.plotting import COLOURS, MARKERS, place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import address, agreement, draw_cases, problem, simulated, solved

OMEGA, RATE, FORGETTING, START = 4.0, 0.5, 1.0, 0.3
SHARES = (1.0, 0.7, 0.5, 0.35, 0.25)
STOP = 25.0
NAMES = {"oja": "Oja with imputation", "grouse": "GROUSE", "petrels": "PETRELS"}
FULL = "oja, full data, half the signal"


def step(s: Any, Q: Any, rate: float, p: float) -> Any:
    """Step along what is seen."""
    return rate * s / (p * Q)


def imputation(s: Any, rate: float, p: float) -> Any:
    """Part along w of Oja's rule: what was filled in."""
    return rate * (1 - p) * (s / p) ** 2


def geodesic(s: Any, rate: float, p: float) -> Any:
    """Part along w of GROUSE: the residual leaves w out, and the step stays on the sphere."""
    return -(rate * p + rate**2 * p / 2) * (s / p) ** 2


def weighted(s: Any, Q: Any, gain: float, p: float) -> Any:
    """Step of PETRELS."""
    return gain * s / (p * Q)


def residual(s: Any, Q: Any, gain: float, p: float) -> Any:
    """Part along w of PETRELS."""
    return -p * gain * (s / (p * Q)) ** 2


def gain_step(s: Any, Q: Any, gain: float, p: float, forgetting: float) -> Any:
    """Step of the gain, from recursive least squares that forget."""
    return gain * (forgetting - p * gain * (s / (p * Q)) ** 2)


oja = meanfield.Rule(step, along=imputation)
grouse = meanfield.Rule(step, along=geodesic)
petrels = meanfield.Rule(weighted, along=residual)


def problem_of(algorithm: str, p: float, omega: float = OMEGA) -> object:
    """One of the three algorithms; Oja's rule alone has to be put back on the sphere."""
    tables: dict[str, Any] = {"model": {"constraint": "sphere"}} if algorithm == "oja" else {}
    numbers = {"rate": RATE, "p": p}
    if algorithm == "petrels":
        tables = {"side": {"gain": {"start": RATE, "step": address("missing_data:gain_step")}}}
        numbers = {"p": p, "forgetting": FORGETTING}
    feature = {"initial_overlap": START, "hidden": {"law": "gaussian", "second_moment": omega}}
    data, time = {"signal": "spiked", "observed": p}, {"outputs": 81}
    return problem(f"missing_data:{algorithm}", numbers, STOP, time=time, data=data, features=[feature], **tables)


def theory() -> xr.Dataset:
    """Limits of each algorithm at all shares."""
    cases = {f"{name}, {p:g}": problem_of(name, p) for name in NAMES for p in SHARES}
    return solved(cases | {FULL: problem_of("oja", 1.0, 0.5 * OMEGA)})


def direction(numbers: xr.Dataset, prefix: str = "") -> xr.DataArray:
    """Overlap of the directions of w and the feature."""
    R, Q = numbers[f"{prefix}R"], numbers[f"{prefix}Q"]
    return R.isel(student=0, feature=0, drop=True) / np.sqrt(Q.isel(student=0, student_=0, drop=True))


def final(algorithm: str, p: float) -> float:
    """Overlap at rest, from the fixed point of the equations in closed form."""
    signal = p * OMEGA

    def squared(rate: float) -> float:
        return max(2.0 * signal - rate, 0.0) / (signal * (2.0 + rate))

    def growth(rate: float) -> float:
        return FORGETTING - rate * (1.0 + rate) * (1.0 + signal * squared(rate))

    return float(np.sqrt(squared(brentq(growth, 0.0, 10.0) if algorithm == "petrels" else RATE)))


def with_its_own_rate(p: float, times: np.ndarray) -> np.ndarray:
    """Overlap of Oja's rule whose rate obeys an equation of its own, and that rate; shape (2, times)."""

    def velocity(_: float, x: np.ndarray) -> list[float]:
        (q, rate), signal = x, p * OMEGA
        square = 1.0 + signal * q * q
        return [
            rate * signal * q * (1.0 - q * q) - 0.5 * rate**2 * q * square,
            rate * (FORGETTING - rate * (1.0 + rate) * square),
        ]

    return solve_ivp(velocity, (0.0, times[-1]), [START, RATE], t_eval=times, rtol=1e-10, atol=1e-12).y


def simulate() -> xr.Dataset:
    """SGD of what is shown in time."""
    return simulated({f"{name}, 0.5": problem_of(name, 0.5) for name in NAMES}, 500)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Whether missing data weaken the signal, and final overlaps."""
    q = direction(numbers)
    same = {name: float(abs(q.sel(case=f"{name}, 0.5") - q.sel(case=FULL)).max()) for name in ("oja", "grouse")}
    petrels = numbers.sel(case="petrels, 0.5")
    rate = petrels["v"].isel(side=0) / petrels["Q"].isel(student=0, student_=0)
    adaptive = np.array([q.sel(case="petrels, 0.5"), rate]) - with_its_own_rate(0.5, q["time"].values)
    last = q.isel(time=-1)
    off = max(abs(float(last.sel(case=f"{name}, {p:g}")) - final(name, p)) for name in NAMES for p in SHARES)
    return [
        Statement(
            "half of the data with Oja's rule are as good as full data with half the signal, and so is GROUSE",
            "by hand",
            max(same.values()) < 1e-5,
            ", ".join(f"{NAMES[name]} differs by {value:.0e}" for name, value in same.items()),
        ),
        Statement(
            "PETRELS is Oja's rule with a rate of its own, gain/Q",
            "by hand",
            abs(adaptive).max() < 1e-5,
            f"overlap and rate differ by {abs(adaptive).max():.0e}",
        ),
        Statement("overlaps at t = 25 are the fixed points", "by hand", off < 1e-3, f"off by {off:.0e} at most"),
        *agreement(numbers, direction),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Overlaps in time, and at rest."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    labels = {f"{name}, 0.5": said for name, said in NAMES.items()}
    draw_cases(left, numbers, direction, labels | {FULL: "full data, half the signal"})
    left.set(xlabel="time t = k/N", ylabel=r"overlap $R/\sqrt{Q}$", xlim=(0, 12), ylim=(0.2, 1.0))
    place_legend(left)
    shares = np.linspace(0.03, 1.0, 200)
    last = direction(numbers).isel(time=-1)
    for place, (name, said) in enumerate(NAMES.items()):
        style = {"color": COLOURS[place], "marker": MARKERS[place], "mfc": "white", "ls": "none"}
        right.plot(SHARES, [last.sel(case=f"{name}, {p:g}") for p in SHARES], label=said, **style)
        if name != "grouse":
            right.plot(shares, [final(name, p) for p in shares], color=COLOURS[place], lw=1.2)
    right.set(xlabel="share p of coordinates that is seen", ylabel="overlap at rest", xlim=(0, 1.05), ylim=(0, 1))
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
