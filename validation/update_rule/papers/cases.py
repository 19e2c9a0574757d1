"""What the studies share: problems of one rule that differ in a few numbers, their limits, SGD, and curves of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

import meanfield
from meanfield.plotting import COLOURS, LINES, MARKERS
from validation.study import Statement, within_errors

KEPT = ("R", "Q", "v", "observables")

REPLICAS = 16

LARGEST_AWAY = 5.5
"""Standard errors of 16 runs that are allowed between their mean and the limit: by chance (Student's law with 15
degrees of freedom) one of 100 independent numbers is further away in 0.6 % of all looks."""

SHOWN = 12
"""Number of output times at which a figure shows SGD."""


def problem(rule: str, parameters: Mapping[str, Any], stop: float, **tables: Any) -> Any:
    """Problem of an update rule, of a study as `module:name` or of the library, with a run until a time."""
    model = {"rule": address(rule) if ":" in rule else rule, "rule_parameters": dict(parameters)} | tables.pop(
        "model", {}
    )
    time = {"stop": stop} | tables.pop("time", {})
    return meanfield.Problem(family="update_rule", model=model, time=time, **tables)


def address(name: str) -> str:
    """What a problem file calls `module:name` of a study."""
    return f"{__package__}.{name}"


def solved(problems: Mapping[Any, Any], method: str = "order_parameters") -> xr.Dataset:
    """Order parameters and observables of problems along the dimension `case`; names of SGD begin with `sgd_`."""
    parts = []
    for each in problems.values():
        result = meanfield.solve(each, method)
        assert result.attrs["status"] == "complete", result.attrs["status"]
        parts.append(result[[name for name in KEPT if name in result]].drop_attrs())
    found = xr.concat(parts, "case", join="outer").assign_coords(case=list(problems))
    return found.rename({name: f"sgd_{name}" for name in found.data_vars}) if method == "particles" else found


def simulated(problems: Mapping[Any, Any], dimension: int = 500) -> xr.Dataset:
    """Runs of SGD at finite N for the same problems."""
    settings = {"dimension": dimension, "replicas": REPLICAS}
    return solved(
        {name: meanfield.with_value(each, "particles", settings) for name, each in problems.items()}, "particles"
    )


def error(numbers: xr.Dataset, prefix: str = "") -> xr.DataArray:
    """The first observable of a rule, its error."""
    return numbers[f"{prefix}observables"].isel(observable=0, drop=True)


def overlap(numbers: xr.Dataset, prefix: str = "") -> xr.DataArray:
    """R of the first student and feature."""
    return numbers[f"{prefix}R"].isel(student=0, feature=0, drop=True)


def agreement(numbers: xr.Dataset, of: Callable[..., xr.DataArray]) -> list[Statement]:
    """Whether the mean of the runs of SGD is near the limit after the start, where there are runs."""
    if not any(str(name).startswith("sgd_") for name in numbers):
        return []
    runs, limit = of(numbers, "sgd_").isel(time=slice(1, None)), of(numbers).isel(time=slice(1, None))
    spread = runs.std("replica", ddof=1) / np.sqrt(runs.sizes["replica"])
    away = abs(runs.mean("replica") - limit) / spread
    return [within_errors("the mean of 16 runs of SGD is the limit", "ours", away.max(), LARGEST_AWAY)]


def draw_cases(axis: Axes, numbers: xr.Dataset, of: Callable[..., xr.DataArray], labels: Mapping[Any, str]) -> None:
    """Curves of the limit, and means of SGD with two standard errors where there are runs."""
    for place, (case, label) in enumerate(labels.items()):
        style = {"color": COLOURS[place], "ls": LINES[place % len(LINES)], "label": label}
        limit = of(numbers).sel(case=case)
        axis.plot(limit["time"], limit, lw=1.4, **style)
        if any(str(name).startswith("sgd_") for name in numbers):
            runs = of(numbers, "sgd_").sel(case=case)
            runs = runs.isel(time=np.unique(np.linspace(0, runs.sizes["time"] - 1, SHOWN).astype(int)))
            spread = 2.0 * runs.std("replica", ddof=1) / np.sqrt(runs.sizes["replica"])
            marks = {"color": COLOURS[place], "marker": MARKERS[place], "ls": "none", "ms": 4, "mfc": "white"}
            axis.errorbar(runs["time"], runs.mean("replica"), spread, lw=0.8, **marks)
