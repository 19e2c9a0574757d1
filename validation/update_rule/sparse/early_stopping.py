"""Early stopping against a prior: whether weights that are stopped recover more of the support than weights at rest.

Online lasso at the rates tau = 0.3 and 1.2, with l1 of strength lambda tau and without a prior, from weights that are
small and know nothing. Left, mean square errors in time until t = 30, where all are at rest; right, the largest
difference of true and false positive rate over thresholds of |w|. Four runs of SGD at the higher rate
and lambda = 0.3 have N = 10,000.
"""

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import curve_style, place_legend
from validation.study import Statement, Study
from validation.update_rule.sparse.cases import agreement, draw_runs, regression, simulated, solved

RATES, STRENGTHS = (0.3, 1.2), (0.0, 0.15, 0.3, 0.6)


def problem_of(rate: float, strength: float, stop: float = 30.0, outputs: int = 61) -> object:
    """Online lasso whose strength is in units of the rate."""
    return regression(rate, {"name": "l1", "strength": rate * strength}, stop, outputs)


def theory() -> xr.Dataset:
    """Densities at both rates and all strengths."""
    return solved(problem_of, rate=RATES, strength=STRENGTHS)


def simulate() -> xr.Dataset:
    """SGD at the higher rate."""
    return simulated(problem_of(1.2, 0.3, 4.0, 5), 10_000, [1.0, 2.0, 3.0, 4.0])


def judge(numbers: xr.Dataset) -> list[Statement]:
    """Where in time errors are least, and recovery is best."""
    error, found = numbers["mean_square_error"], numbers["youden"]
    gain = (error.isel(time=-1) / error.min("time")).max().item()
    lost = (found.max("time") - found.isel(time=-1)).max().item()
    fast = found.sel(rate=1.2)
    early, rest = fast.sel(strength=0.0).max("time").item(), fast.isel(time=-1).max("strength").item()
    return [
        Statement(
            "no error is smaller before rest than at rest by more than 1 %",
            "ours",
            gain < 1.01,
            f"errors at rest are up to {gain:.3f} times the least in time",
        ),
        Statement(
            "no support is recovered better before rest by more than 0.01",
            "ours",
            lost < 0.01,
            f"the largest true less false positive rate in time is up to {lost:.4f} above that at rest",
        ),
        Statement(
            "at the higher rate training without a prior, stopped at any time, recovers less than l1 at rest",
            "ours",
            early < rest - 0.01,
            f"true less false positive rate {early:.3f} and {rest:.3f}",
        ),
        *agreement(numbers),
    ]


def draw(numbers: xr.Dataset) -> Figure:
    """Errors and recovery in time."""
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    for axis, name in zip(axes, ("mean_square_error", "youden"), strict=True):
        for k, strength in enumerate(STRENGTHS):
            for rate, style in zip(RATES, (":", "-"), strict=True):
                label = rf"$\lambda = {strength:g}$" if style == "-" else None
                axis.plot(
                    numbers["time"],
                    numbers[name].sel(rate=rate, strength=strength),
                    label=label,
                    **curve_style(k) | {"linestyle": style},
                )
        axis.set(xlabel="time t = k/N", xscale="log")
    draw_runs(axes[0], numbers, "mean_square_error", color=curve_style(2)["color"])
    axes[0].set(yscale="log", ylabel=r"mean square error ($\tau = 0.3$ dotted, 1.2 solid)")
    axes[1].set(ylabel="true less false positive rate")
    place_legend(axes[1])
    return figure


STUDY = Study(theory, judge, draw, simulate)
