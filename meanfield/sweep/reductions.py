"""Reductions: functions from a result to the few numbers, of one shape at all points, that a sweep keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from meanfield.comparison.sides import held_values, moments
from meanfield.ingredients.nearest import nearest
from meanfield.ingredients.user_functions import is_address, load_object
from meanfield.problems.family import Family, resolve
from meanfield.results.result import Result
from meanfield.results.schema import variable_attributes

Variables = dict[str, xr.Variable]

QUANTITIES = ("q", "r", "M")
"""Quantities in time that are kept, where a result holds them."""

EVERYTHING = "all"
"""Name of the reduction that keeps all variables, of any method of any family."""


def final(dataset: xr.Dataset) -> Variables:
    """Overlaps q and M and prior work r at the last time, with their errors where these are estimated."""
    at_end = {name: variable.isel(time=-1) for name, variable in trajectory(dataset).items() if name != "time"}
    return {f"{name[0]}_final{name[1:]}": variable for name, variable in at_end.items()}


def trajectory(dataset: xr.Dataset) -> Variables:
    """Overlaps q and M and prior work r at the output times; of SGD their means over replicas, with standard errors."""
    kept = {"time": dataset["time"].variable} | _means(Result.of(dataset))
    names = [name for name in (f"{quantity}_error" for quantity in QUANTITIES) if name in dataset]
    return kept | {name: dataset[name].variable for name in names}


def _means(result: Result) -> Variables:
    """Means of the quantities over replicas with their standard errors, or the quantities themselves."""
    found: Variables = {}
    for name in QUANTITIES:
        side = moments(result, name)
        if side is None:
            continue
        dims = tuple(dim for dim in held_values(result, name).dims if dim != "replica")
        found[name] = xr.Variable(dims, side.mean)
        if np.isfinite(side.runs):
            found[f"{name}_error"] = xr.Variable(dims, np.sqrt(side.variance))
    return found


def everything(dataset: xr.Dataset) -> Variables:
    """All variables of the result, but for numbers of its problem, which are axes or attributes of a sweep."""
    labels = {name for name, known in Result.of(dataset).family.all_variables.items() if known.label}
    return {str(name): variable for name, variable in dataset.variables.items() if name not in labels}


def check_reductions(family: Family, methods: Mapping[str, Sequence[str]]) -> None:
    """Refuse methods that the family does not have, and reductions that do not fit them."""
    for name, reductions in methods.items():
        if name not in family.methods:
            raise ValueError(f"methods: unknown method '{name}'; {nearest(name, family.methods)}")
        fitting = [*family.methods[name].keep, EVERYTHING]
        for reduction in reductions:
            if reduction in fitting or is_address(reduction):
                continue
            known = reduction in family.reductions
            hint = f"of {name} there are {', '.join(fitting)}" if known else nearest(reduction, fitting)
            raise ValueError(f"methods.{name}: no '{reduction}' to keep; {hint} (your own is 'package.module:name')")


def own_reductions(methods: Mapping[str, Sequence[str]], folder: Path | None) -> dict[str, Any]:
    """Reductions of a user as they are now, by their addresses "package.module:name".

    Parameters
    ----------
    methods : mapping
        Names of the reductions to keep, by method.
    folder : Path, optional
        Where their modules are looked for, besides the Python path and the working directory.

    Raises
    ------
    ValueError
        If there is no such reduction.
    """
    return {name: load_object(name, folder) for names in methods.values() for name in names if is_address(name)}


def reduced(dataset: xr.Dataset, names: Sequence[str], own: Mapping[str, Any] = MappingProxyType({})) -> Variables:
    """Variables that the reductions keep of a result: doubles or words, each with its meaning.

    Parameters
    ----------
    dataset : xarray.Dataset
        A complete result.
    names : sequence of str
        Names of the family's reductions, or a user's own "package.module:name": functions from the Dataset to a Dataset
        or a dict of DataArrays.
    own : mapping, optional
        The user's own, by their addresses; see `own_reductions`.

    Raises
    ------
    ValueError
        If a user's function returns something else.
    """
    kept: Variables = {}
    family = Result.of(dataset).family
    for name in names:
        if name in own:
            found = own[name](dataset)
        else:
            found = everything(dataset) if name == EVERYTHING else resolve(family.reductions[name])(dataset)
        kept |= {str(key): _plain(family, str(key), value, name) for key, value in _variables(found, name).items()}
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


def _plain(family: Family, key: str, value: Any, name: str) -> xr.Variable:
    """Variable of doubles or words."""
    variable = value.variable if isinstance(value, xr.DataArray) else xr.as_variable(value)
    if variable.dtype.kind in "OUS":
        values = variable.values.astype(str)
    elif variable.dtype.kind in "biuf":
        values = variable.values.astype(float)
    else:
        raise ValueError(f"'{name}' returned '{key}' of type {variable.dtype}; return numbers or words")
    return xr.Variable(variable.dims, values, variable_attributes(family, key) | variable.attrs)
