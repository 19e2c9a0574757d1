"""Independent component analysis on-line, as in Wang and Lu (2017): who starts too low learns nothing.

C. Wang and Y. M. Lu, *The scaling limit of high-dimensional online independent component analysis*, Advances in Neural
Information Processing Systems 30 (2017). Samples are white Gaussian noise but for a feature whose hidden variable is
+1 or -1, so that the covariance says nothing about it. A step adds -tau s^3 x, with the weights back on the sphere. At
a given rate there is an overlap (dotted) that a run has to start above; both states move towards each other as the
rate grows, and where they meet learning ends. Right, the states: the line is a closed form, the circles are limits at
t = 400. SGD is at N = 2000.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy.optimize import brentq

from meanfield.plotting import place_legend
from validation.study import Statement, Study
from validation.update_rule.papers.cases import agreement, draw_cases, overlap, problem, simulated, solved

RATE = 0.05
STARTS = (0.15, 0.3, 0.4, 0.55, 0.95)
STOP = 400.0
RATES = (0.03, 0.07, 0.11, 0.15, 0.2)
SIGN = {"law": "discrete", "values": [-1.0, 1.0], "probabilities": [0.5, 0.5]}


def problem_of(start: float, rate: float = RATE) -> object:
    """Rule `ica`, F = rate s^3, with a negative rate."""
    feature = {"initial_overlap": start, "hidden": SIGN}
    data, model = {"signal": "orthogonal"}, {"constraint": "sphere"}
    return problem("ica", {"rate": -rate}, STOP, time={"outputs": 81}, features=[feature], data=data, model=model)


def velocity(q: np.ndarray, rate: float) -> np.ndarray:
    """dq/dt by moments of Gaussian variables, for a hidden variable of +-1."""
    p = 1.0 - q**2
    drift = p * (-(q**3 + 3.0 * q * p) + 3.0 * q * (q**2 + p))
    return rate * drift - 0.5 * rate**2 * q * (q**6 + 15.0 * q**4 * p + 45.0 * q**2 * p**2 + 15.0 * p**3)


def rate_at_rest(q: np.ndarray) -> np.ndarray:
    """Rate at which an overlap stays as it is."""
    forth, back = velocity(q, 1.0), velocity(q, -1.0)  # a - b and -a - b with dq/dt = tau a - tau^2 b
    return (back - forth) / (back + forth)


def theory() -> xr.Dataset:
    """Limits from several starts at one rate, and from high starts at others."""
    problems = {f"from {start:g}": problem_of(start) for start in STARTS}
    return solved(problems | {f"rate {rate:g}": problem_of(0.95, rate) for rate in RATES})


def largest_rate() -> float:
    """Rate above which nothing is learnt."""
    return float(rate_at_rest(np.linspace(0.01, 0.99, 9801)).max())


def threshold() -> float:
    """Overlap at the rate of the figure from which a run neither rises nor falls."""
    top = np.linspace(0.01, 0.99, 9801)[rate_at_rest(np.linspace(0.01, 0.99, 9801)).argmax()]
    return float(brentq(velocity, 0.05, top, args=(RATE,)))


def simulate() -> xr.Dataset:
    """SGD of what is shown in time."""
    return simulated({f"from {start:g}": problem_of(start) for start in STARTS}, 2000)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Threshold, and the rate at which states meet."""
    last, limit = overlap(numbers).isel(time=-1), largest_rate()
    ends = {start: float(last.sel(case=f"from {start:g}")) for start in STARTS}
    split = threshold()
    states = {rate: float(last.sel(case=f"rate {rate:g}")) for rate in RATES}
    off = max(abs(float(velocity(q, rate))) for rate, q in states.items())
    return [
        Statement(
            f"at tau = {RATE} runs that start below q = {split:.3f} learn nothing, and others all the same",
            "by hand",
            all(end < 0.01 if start < split else end > split for start, end in ends.items()),
            "at t = 400 q = " + ", ".join(f"{end:.4f} from {start:g}" for start, end in ends.items()),
        ),
        Statement(
            f"above tau = {limit:.4f} nothing is learnt",
            "by hand",
            all((q > 0.3) == (rate < limit) for rate, q in states.items()),
            "q = " + ", ".join(f"{q:.3f} at {rate:g}" for rate, q in states.items()),
        ),
        Statement("those that learn rest at t = 400", "by hand", off < 1e-5, f"|dq/dt| <= {off:.0e}"),
        *agreement(numbers, overlap),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Overlaps in time, and states."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    draw_cases(left, numbers, overlap, {f"from {start:g}": f"from q = {start:g}" for start in STARTS})
    left.axhline(threshold(), color="0.5", lw=0.9, ls=":")
    left.set(xlabel="time t = k/N", ylabel="overlap q", ylim=(-0.02, 1.02), xlim=(0, STOP))
    left.legend(frameon=False, fontsize=9, loc="center right", bbox_to_anchor=(1.0, 0.68))
    q = np.linspace(0.0, 1.0, 1001)[1:]
    rate = rate_at_rest(q)
    stable = q >= q[rate.argmax()]
    right.plot(rate[stable], q[stable], color="0.3", lw=1.2, label="stable, closed form")
    right.plot(rate[~stable], q[~stable], color="0.3", lw=1.0, ls=":", label="unstable")
    last = overlap(numbers).isel(time=-1)
    ends = [float(last.sel(case=f"rate {each:g}")) for each in RATES]
    right.plot(RATES, ends, "o", mfc="white", color="C0", label="limit from q = 0.95")
    right.set(xlabel=r"rate $\tau$", ylabel="overlap at rest", ylim=(-0.02, 1.02), xlim=(0, None))
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
