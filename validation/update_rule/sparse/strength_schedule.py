"""A strength that changes by a cosine: whether a pull that rises or one that falls leaves the smaller error.

Online lasso at the rate 0.6 for t up to 3, with a strength that is constant, rises from 0 to twice that along half a
cosine, or falls from there to 0: all three have one mean. Left, mean square errors in time at the mean strength 0.3 in
units of the rate; right, the largest difference of true and false positive rate at t = 3 against the mean strength.
Four runs of SGD have N = 10,000.
"""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import curve_style, place_legend
from validation.study import Statement, Study
from validation.update_rule.sparse.cases import agreement, draw_runs, regression, simulated, solved

RATE, STOP, SHOWN = 0.6, 3.0, 0.3
SHAPES, STRENGTHS = ("constant", "rising", "falling"), (0.05, 0.1, 0.2, 0.3, 0.4, 0.55)


def problem_of(shape: str, strength: float) -> object:
    """Online lasso with a mean strength in units of the rate."""
    ends = {"rising": (0.0, 2.0), "falling": (2.0, 0.0)}.get(shape)
    mean = RATE * strength
    wave = ends and {"schedule": "cosine", "start": ends[0] * mean, "end": ends[1] * mean, "duration": STOP}
    return regression(RATE, {"name": "l1", "strength": wave or mean}, STOP, 13)


def theory() -> xr.Dataset:
    """Densities of all shapes at all mean strengths."""
    return solved(problem_of, shape=SHAPES, strength=STRENGTHS)


def simulate() -> xr.Dataset:
    """SGD under a strength that rises."""
    return simulated(problem_of("rising", SHOWN), 10_000, [1.0, 2.0, 3.0])


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Which shape ends best at its own best strength."""
    last = numbers.isel(time=-1)
    error, found = last["mean_square_error"].min("strength").values, last["youden"].max("strength").values
    shown = [", ".join(f"{name} {x:.4f}" for name, x in zip(SHAPES, values, strict=True)) for values in (error, found)]
    return [
        Statement("a strength that rises leaves the smallest error", "ours", error.argmin() == 1, shown[0]),
        Statement(
            "all three recover the support alike, to 0.01",
            "ours",
            np.ptp(found) < 0.01,
            f"true less false positive rate {shown[1]}",
        ),
        *agreement(numbers),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors in time, and recovery at the end."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    for k, shape in enumerate(SHAPES):
        one = numbers.sel(shape=shape)
        left.plot(one["time"], one["mean_square_error"].sel(strength=SHOWN), label=shape, **curve_style(k))
        right.plot(one["strength"], one["youden"].isel(time=-1), label=shape, **curve_style(k))
    draw_runs(left, numbers, "mean_square_error", color=curve_style(1)["color"])
    left.set(xlabel="time t = k/N", ylabel="mean square error", yscale="log")
    right.set(xlabel=r"mean strength $\lambda$", ylabel="true less false positive rate, t = 3")
    place_legend(left), place_legend(right)
    return figure


STUDY = Study(theory, judge, draw, simulate)
