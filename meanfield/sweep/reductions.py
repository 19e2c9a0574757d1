"""Methods that a sweep may run, and what it may keep of their results: few numbers, of one shape at all points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from meanfield.families.contrastive.density import solve_density
from meanfield.families.contrastive.dynamics.analysis import analyse_dynamics, solve_fixed_points
from meanfield.families.contrastive.order_parameters import solve_order_parameters
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.simulation import simulate_sgd
from meanfield.families.contrastive.stationary import find_stationary_states
from meanfield.ingredients.part import nearest
from meanfield.ingredients.user_functions import is_address, load_object
from meanfield.results.schema import attributes_of, problem_of

Variables = dict[str, xr.Variable]

METHODS: dict[str, Callable[[Problem], xr.Dataset]] = {
    "density": solve_density,
    "order_parameters": solve_order_parameters,
    "particles": partial(simulate_sgd, workers=1),
    "stationary": find_stationary_states,
    "fixed_points": solve_fixed_points,
    "dynamics": analyse_dynamics,
}
"""What may be run at a point, each on one thread."""

IN_TIME = ("density", "order_parameters", "particles")
OF_STATES = ("stationary", "fixed_points", "dynamics")
OF_ODES = ("fixed_points", "dynamics")


def final(dataset: xr.Dataset) -> Variables:
    """Overlaps q and r at the last time, with their errors where these are estimated."""
    at_end = {name: variable.isel(time=-1) for name, variable in trajectory(dataset).items() if name != "time"}
    return {f"{name[0]}_final{name[1:]}": variable for name, variable in at_end.items()}


def trajectory(dataset: xr.Dataset) -> Variables:
    """Overlaps q and r at the output times; of SGD their means over replicas, with standard errors."""
    kept = {"time": dataset["time"].variable} | _means(dataset)
    names = ("q_error", "r_error") if "q_error" in dataset else ()
    return kept | {name: dataset[name].variable for name in names}


def _means(dataset: xr.Dataset) -> Variables:
    if "q_mean" in dataset:
        count, N = float(dataset["count"]), problem_of(dataset).particles.dimension
        variance = np.einsum("tff->tf", dataset["q_covariance"].values)
        q_error, r_error = np.sqrt(variance / (N * count)), np.sqrt(dataset["r_variance"].values / (N * count))
        values = {"q": dataset["q_mean"].values, "r": dataset["r_mean"].values, "q_error": q_error, "r_error": r_error}
    elif "replica" in dataset.dims:
        values = {}
        for name in ("q", "r"):
            runs = dataset[name].values
            values[name] = runs.mean(axis=0)
            blank = np.full(runs.shape[1:], np.nan)
            values[f"{name}_error"] = runs.std(axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else blank
    else:
        values = {name: dataset[name].values for name in ("q", "r") if name in dataset}
    dims = {"q": ("time", "feature"), "r": ("time",)}
    return {name: xr.Variable(dims[name[0]], array) for name, array in values.items()}


def similarity(dataset: xr.Dataset) -> Variables:
    """The largest and the least cosine similarity |q| of weights and features among states that are not unstable."""
    size = np.linalg.norm(dataset["q"].values, axis=1)[dataset["stability"].values >= 0]
    best, least = (size.max(), size.min()) if size.size else (np.nan, np.nan)
    return {"similarity": xr.Variable((), best), "least_similarity": xr.Variable((), least)}


def states(dataset: xr.Dataset) -> Variables:
    """How many states there are, and how many of them are stable."""
    stable = np.count_nonzero(dataset["stability"].values == 1)
    return {"state_count": xr.Variable((), dataset.sizes["state"]), "stable_count": xr.Variable((), stable)}


def growth(dataset: xr.Dataset) -> Variables:
    """Growth rates of small overlaps; NaN where q = 0 is not stationary."""
    rates = (
        dataset["uninformed_rate"].values if "uninformed_rate" in dataset else np.full(dataset.sizes["feature"], np.nan)
    )
    return {"uninformed_rate": xr.Variable(("mode",), rates)}


def everything(dataset: xr.Dataset) -> Variables:
    """All variables of the result."""
    return {str(name): variable for name, variable in dataset.variables.items()}


@dataclass(frozen=True)
class Reduction:
    """What is kept of a result, and of which methods it can be."""

    keep: Callable[[xr.Dataset], Variables]
    methods: Sequence[str]


REDUCTIONS = {
    "final": Reduction(final, IN_TIME),
    "trajectory": Reduction(trajectory, IN_TIME),
    "similarity": Reduction(similarity, OF_STATES),
    "states": Reduction(states, OF_STATES),
    "growth": Reduction(growth, OF_ODES),
    "all": Reduction(everything, tuple(METHODS)),
}


def check_reductions(methods: Mapping[str, Sequence[str]]) -> None:
    """Refuse methods that do not exist, and reductions that do not fit them.

    Raises
    ------
    ValueError
    """
    for method, names in methods.items():
        if method not in METHODS:
            raise ValueError(f"methods: unknown method '{method}'; {nearest(method, list(METHODS))}")
        fitting = [name for name, reduction in REDUCTIONS.items() if method in reduction.methods]
        for name in names:
            if name in fitting or is_address(name):
                continue
            hint = f"of {method} there are {', '.join(fitting)}" if name in REDUCTIONS else nearest(name, fitting)
            raise ValueError(f"methods.{method}: no '{name}' to keep; {hint} (your own is 'package.module:name')")


def reduced(dataset: xr.Dataset, names: Sequence[str], folder: Path | None) -> Variables:
    """What the reductions keep of a result: doubles or words, each with its meaning.

    Parameters
    ----------
    dataset : xarray.Dataset
        A complete result.
    names : sequence of str
        Keys of `REDUCTIONS`, or a user's own "package.module:name": functions from the Dataset to a Dataset or a dict
        of DataArrays.
    folder : Path, optional
        Where the user's modules are looked for, besides the Python path and the working directory.

    Raises
    ------
    ValueError
        If a user's function cannot be found, or returns something else.
    """
    kept: Variables = {}
    for name in names:
        found = load_object(name, folder)(dataset) if is_address(name) else REDUCTIONS[name].keep(dataset)
        kept |= {str(key): _plain(str(key), value, name) for key, value in _variables(found, name).items()}
    return kept


def _variables(found: Any, name: str) -> Mapping[Any, Any]:
    if isinstance(found, xr.Dataset):
        return found.variables
    if not isinstance(found, dict):
        raise ValueError(f"'{name}' returned {type(found).__name__}, not a Dataset or a dict of DataArrays")
    coordinates = {
        key: c for array in found.values() if isinstance(array, xr.DataArray) for key, c in array.coords.items()
    }
    return coordinates | found


def _plain(key: str, value: Any, name: str) -> xr.Variable:
    """A variable of doubles or words."""
    variable = value.variable if isinstance(value, xr.DataArray) else xr.as_variable(value)
    if variable.dtype.kind in "OUS":
        values = variable.values.astype(str)
    elif variable.dtype.kind in "biuf":
        values = variable.values.astype(float)
    else:
        raise ValueError(f"'{name}' returned '{key}' of type {variable.dtype}; return numbers or words")
    return xr.Variable(variable.dims, values, attributes_of(key) | variable.attrs)
