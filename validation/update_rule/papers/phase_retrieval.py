"""Phase retrieval, as in Arnaboldi et al. (2023): how long wide networks stay where nothing is known.

L. Arnaboldi, F. Krzakala, B. Loureiro and L. Stephan, *Escaping mediocrity: how two-layer networks learn hard
generalized linear models with SGD*, arXiv:2305.18502. The answer is y^2, and K students on the sphere give the mean of
their squares. Near R = 0 an overlap grows at the rate 2 tau - c tau^2/2 with c = 2 + 2/K + 8/K^2 (by moments of
Gaussian variables). That is largest at tau = 2/c, where wide networks escape and do not learn; each curve has half of
that rate, at which it is 3/(2c). Students start orthonormal. Left, the error from R = 0.1, SGD at N = 4000; right, the
time until the error has halved, from other starts: it grows like log(1/R), and R is about N^(-1/2) for random weights,
and width gains a constant factor. Lines have the slope 2c/3.
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

WIDTHS = (1, 2, 4)
STARTS = (0.1, 0.03, 0.01, 0.003, 0.001)
SHOWN = 0.1


def step(y: Any, s: Any, rate: float) -> Any:
    """Gradient of the squared error of the mean of squares, with the rate of a unit."""
    return rate * s * (y * y - np.mean(s * s))


def half_square(y: Any, s: Any) -> Any:
    """Error."""
    return 0.5 * (y * y - np.mean(s * s)) ** 2


def step_of_one(y: Any, s: Any, rate: float) -> Any:
    """The same for one student."""
    return rate * s * (y * y - s * s)


def error_of_one(y: Any, s: Any) -> Any:
    """The same for one student."""
    return 0.5 * (y * y - s * s) ** 2


one = meanfield.Rule(step_of_one, observables={"error": error_of_one})
several = meanfield.Rule(step, observables={"error": half_square})


def noise(width: int) -> float:
    """c, in which tau^2 c is the diffusion where nothing is known."""
    return 2.0 + 2.0 / width + 8.0 / width**2


def slope(width: int) -> float:
    """Time of escape for each factor of e, the inverse of the rate at which an overlap grows."""
    return 2.0 / 3.0 * noise(width)


def problem_of(width: int, start: float) -> object:
    """A run at half of the rate at which escape is fastest."""
    rate, students = 1.0 / noise(width), [{}] * width
    feature = {"initial_overlap": start}
    name = "phase_retrieval:one" if width == 1 else "phase_retrieval:several"
    model, time = {"constraint": "sphere"}, {"outputs": 181}
    return problem(name, {"rate": rate}, 90.0, model=model, time=time, features=[feature], students=students)


def name_of(width: int, start: float) -> str:
    """Name of a case."""
    return f"{width}, {start:g}"


def theory() -> xr.Dataset:
    """Limits of all widths from all starts."""
    return solved({name_of(width, start): problem_of(width, start) for width in WIDTHS for start in STARTS})


def escape_time(value: xr.DataArray) -> float:
    """Time at which an error is half of what it is at the start."""
    below = int(np.argmax(value.values < 0.5 * value.values[0]))
    return float(np.interp(-0.5 * value[0], -value[below - 1 : below + 1], value["time"][below - 1 : below + 1]))


def escape_times(numbers: xr.Dataset, width: int) -> list[float]:
    """Times of escape from all starts."""
    return [escape_time(error(numbers).sel(case=name_of(width, start))) for start in STARTS]


def simulate() -> xr.Dataset:
    """SGD of what is shown in time."""
    return simulated({name_of(width, SHOWN): problem_of(width, SHOWN) for width in WIDTHS}, 4000)


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Slopes of escape times."""
    times = {width: escape_times(numbers, width) for width in WIDTHS}
    slopes = {width: (each[-1] - each[-2]) / np.log(STARTS[-2] / STARTS[-1]) for width, each in times.items()}
    ratios = {width: slopes[width] / slope(width) for width in WIDTHS}
    found = [
        Statement(
            "escape takes a time of order log N, so that n = O(N log N) samples are needed",
            "paper, abstract",
            all(abs(ratio - 1.0) < 0.02 for ratio in ratios.values()),
            "slopes in log(1/R) are "
            + ", ".join(f"{slopes[width]:.3f} for K = {width} ({slope(width):.3f} by hand)" for width in WIDTHS),
        ),
        Statement(
            "width enhances convergence by a constant factor only",
            "paper, abstract",
            slopes[1] / slopes[max(WIDTHS)] < 6.0,
            f"by {slopes[1] / slopes[max(WIDTHS)]:.2f} from K = 1 to {max(WIDTHS)}, and by 6 at most for K to infinity",
        ),
    ]
    if "sgd_observables" in numbers:
        mean = error(numbers, "sgd_").mean("replica")
        sgd = [escape_time(mean.sel(case=name_of(width, SHOWN))) for width in WIDTHS]
        limit = [times[width][STARTS.index(SHOWN)] for width in WIDTHS]
        pairs = ", ".join(
            f"{one:.2f} for SGD and {other:.2f} in the limit, K = {width}"
            for one, other, width in zip(sgd, limit, WIDTHS, strict=True)
        )
        near = bool(np.allclose(sgd, limit, rtol=0.05))
        claim = "a deterministic approximation adequately represents the escape time (R = 0.1: within 5 %)"
        found.append(Statement(claim, "paper, abstract", near, pairs))
    return [*found, *agreement(numbers, error)]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors in time, and escape times."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    draw_cases(left, numbers, error, {name_of(width, SHOWN): f"K = {width}" for width in WIDTHS})
    left.set(yscale="log", ylim=(1e-4, None), xlabel="time t = k/N", ylabel="error")
    place_legend(left)
    for place, width in enumerate(WIDTHS):
        times = escape_times(numbers, width)
        style = {"color": COLOURS[place], "marker": MARKERS[place], "mfc": "white", "ls": "none"}
        right.plot(STARTS, times, label=f"K = {width}", **style)
        line = times[-1] + slope(width) * np.log(STARTS[-1] / np.array(STARTS))
        right.plot(STARTS, line, color=COLOURS[place], lw=1.0)
    right.set(xscale="log", ylim=(0, None), xlabel="overlap R at the start", ylabel="time until the error has halved")
    place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
