"""Numbers of results: how they depend on each other, which of them reports show, and which sweeps keep."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.results.text import plain, with_error


def faults(dataset: xr.Dataset, problem: Problem) -> Iterator[str]:
    """Contradictions between the numbers of a result."""
    if "w" in dataset:
        length = np.linalg.norm(dataset["w"].values, axis=-1)
        if np.any(np.abs(length - 1.0) > 1e-9):  # rounding
            yield f"variable 'w' holds a filter of length {length[np.abs(length - 1.0).argmax()]:.9g}, not 1"
    for name in ("basin_share", "weight"):
        if name in dataset and float(dataset[name].sum()) > 1.0 + 1e-9:
            yield f"variable '{name}' adds up to {float(dataset[name].sum()):.9g}, more than 1"


def of_critical_points(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Numbers of stable points by kind, and the largest energy."""
    stable, wall, lme = (dataset[name].values > 0 for name in ("stable", "wall", "lme"))
    yield "critical points", f"{dataset.sizes['point']}"
    yield "stable points between walls", f"{int((stable & ~wall).sum())}"
    yield "stable points on walls", f"{int((stable & wall).sum())}"
    yield "stable points that are locally maximal eigenvectors", f"{int((stable & lme).sum())}"
    if stable.any():
        yield "largest energy of a stable point", plain(float(dataset["energy"].values[stable].max()))


def of_density(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """First moments, objective and certificate at the last time."""
    last = dataset.isel(time=-1)
    when = f"at t = {float(last['time']):g}"
    for name, symbol in (("moment_cos", "E[cos theta]"), ("moment_sin", "E[sin theta]")):
        yield f"{symbol} {when}", with_error(float(last[name][0]), float(last[f"{name}_error"][0]))
    yield from _of_objective(last, when)


def of_sphere_density(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Mean filter, objective and certificate at the last time."""
    last = dataset.isel(time=-1)
    when = f"at t = {float(last['time']):g}"
    for k in range(dataset.sizes["coordinate"]):
        yield f"E[w_{k + 1}] {when}", with_error(float(last["mean"][k]), float(last["mean_error"][k]))
    yield from _of_objective(last, when)


def _of_objective(last: xr.Dataset, when: str) -> Iterator[tuple[str, str]]:
    yield f"objective G {when}", with_error(float(last["G"]), float(last["G_error"]))
    if "certificate_gap" in last:
        yield f"largest distance of G from its optimum {when}", plain(float(last["certificate_gap"]))


def of_optimal_filters(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Number of filters, objective and certificate."""
    yield "filters of the best network", f"{dataset.sizes['atom']}"
    yield "objective G", plain(float(dataset["G"]))
    yield "largest distance of G from its optimum", plain(float(dataset["certificate_gap"]))


def critical_points(dataset: xr.Dataset) -> dict[str, xr.Variable]:
    """Numbers of stable points between walls and on walls, of eigenvectors among them, and of unstable points."""
    stable, wall, lme = (dataset[name].values > 0 for name in ("stable", "wall", "lme"))
    counts = {
        "stable_between_walls": stable & ~wall,
        "stable_on_walls": stable & wall,
        "stable_lmes": stable & lme,
        "unstable_points": ~stable,
    }
    return {name: xr.Variable((), float(np.count_nonzero(chosen))) for name, chosen in counts.items()}
