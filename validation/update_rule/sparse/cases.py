"""What the studies share: regression with label noise, a prior without bias, support recovery on a grid of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

import meanfield
from meanfield.plotting import curve_style
from validation.study import Statement

SIGMA = 0.5
"""Deviation of the noise of labels."""

SPARSE = {"law": "three_point", "fourth_moment": 5.0}
"""One of five coordinates of the feature is not 0."""

THRESHOLDS = np.round(np.geomspace(0.05, 2.0, 20), 4).tolist()

RUNS = 4
"""Runs of SGD: of large N, so that few will do."""

KEPT = ["R", "Q"]


def least_squares(y: Any, s: Any, eps: Any, rate: float) -> Any:
    """Residual of a label with noise."""
    return rate * (y + SIGMA * eps - s)


def scad(width: float, reach: float = 3.7) -> meanfield.Prior:
    """Smoothly clipped absolute deviation: the pull of l1 up to `width`, which ends at `reach` widths."""

    def force(w: float) -> float:
        size = abs(w) / width
        pull = 1.0 if size < 1.0 else max(reach - size, 0.0) / (reach - 1.0)
        return pull if w > 0 else -pull if w < 0 else 0.0

    return meanfield.Prior(force, kinks=(-reach * width, -width, 0.0, width, reach * width))


def problem(rule: str, rate: float, prior: Mapping[str, Any], stop: float, outputs: int, **tables: Any) -> Any:
    """Problem of a rule of the library, or of this module, with one feature."""
    model = {"rule": rule, "rule_parameters": {"rate": rate}} | tables.pop("model", {})
    settings = {"density": {"tolerance": 1e-5}, "time": {"stop": stop, "outputs": outputs}} | tables
    return meanfield.Problem(family="update_rule", model=model, prior=prior, **settings)


def regression(rate: float, prior: Mapping[str, Any], stop: float, outputs: int) -> Any:
    """Least squares on labels with noise from weights that are small and know nothing."""
    return problem(
        f"{__name__}:least_squares", rate, prior, stop, outputs, data={"normals": ["eps"]},
        features=[{"coordinate": SPARSE, "initial_overlap": 0.0}], students=[{"initial_norm": 0.01}],
    )  # fmt: skip


def solved(problem_of: Callable[..., Any], gain: float | tuple[float, ...] = (), **axes: Sequence[Any]) -> xr.Dataset:
    """Support recovery and overlaps of the densities of problems, with a dimension for each axis."""
    parts = []
    for values in product(*axes.values()):
        task = problem_of(*values)
        density = meanfield.solve_density(task)
        assert density.status == "complete", density.status
        own = ":" in task.prior.name  # which a result does not import, as the debiased estimate would have to
        found = meanfield.support_recovery(density, THRESHOLDS, () if own else gain)
        rates = found["true_positive_rate"] - found["false_positive_rate"]
        kept = found.assign(youden=rates.max("threshold"), R=density["R"], Q=density["Q"]).drop_attrs()
        parts.append(kept.squeeze(drop=True))
    for name, values in reversed(axes.items()):
        rows = [parts[first : first + len(values)] for first in range(0, len(parts), len(values))]
        parts = [xr.concat(row, name, coords="minimal").assign_coords({name: list(values)}) for row in rows]
    return parts[0]


def simulated(task: Any, N: int, snapshots: Sequence[float]) -> xr.Dataset:
    """Support recovery of SGD, and p values of its weights and of its support recovery against the density."""
    settings = {"dimension": N, "replicas": RUNS, "snapshots": snapshots, "snapshot_precision": "single"}
    task = meanfield.with_value(task, "particles", settings)
    density, runs = meanfield.solve_density(task), meanfield.simulate_sgd(task)
    found = [meanfield.support_recovery(each, THRESHOLDS[::4]) for each in (density, runs)]
    p_values = [float(meanfield.compare(*pair)["p_value"][0]) for pair in ((density, runs), found)]
    held = (
        found[1]
        .squeeze("feature", drop=True)
        .drop_attrs()[["true_positive_rate", "false_positive_rate", "mean_square_error"]]
    )
    held = held.rename({name: f"sgd_{name}" for name in (*held.data_vars, "time", "threshold")})
    return held.assign(sgd_p=("judged", p_values))


def agreement(numbers: xr.Dataset) -> list[Statement]:
    """Whether weights and support recovery of SGD agree with the density, where there are runs."""
    if "sgd_p" not in numbers:
        return []
    p = numbers["sgd_p"].values
    text = "weights of SGD, and their support recovery, agree with the density"
    return [Statement(text, "ours", bool((p > 0.05).all()), f"p = {p[0]:.2f} and {p[1]:.2f} of {RUNS} runs")]


def draw_runs(axis: Axes, numbers: xr.Dataset, name: str, **style: Any) -> None:
    """Means of the runs of SGD with two standard errors, where there are some."""
    if f"sgd_{name}" in numbers:
        runs = numbers[f"sgd_{name}"]
        spread = 2.0 * runs.std("replica", ddof=1) / RUNS**0.5
        axis.errorbar(runs["sgd_time"], runs.mean("replica"), spread, fmt="o", mfc="white", label="SGD", **style)


def draw_rates(axis: Axes, numbers: xr.Dataset, strengths: Sequence[float]) -> None:
    """True against false positive rates at all thresholds, a curve for each strength."""
    for k, strength in enumerate(strengths):
        one, label = numbers.sel(strength=strength), rf"$\lambda = {strength:g}$"
        axis.plot(one["false_positive_rate"], one["true_positive_rate"], label=label, **curve_style(k))
    axis.set(xlabel="false positive rate", ylabel="true positive rate")
