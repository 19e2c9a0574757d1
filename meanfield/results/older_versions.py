"""Results that obey an older version of the schema, converted to the newest one when they are loaded.

Versions of the schema: 2: results of SGD may lack weights, and may be statistics of an ensemble. 3: files have a
checksum. 4: the attribute `family`, and numbers of the problem such as `dimension` as attributes. 5: coordinates of
what people select by, edges of cells as bounds of each cell, and no units where there are none. 6: a coordinate of
every dim, `P_sum` and `P_difference` in place of `P_diagonal`, and joint densities of two channels in results of their
own. 7: eigenvalues of a spectrum are along a dim `rho`, which was `node`.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.problems.known_families import DEFAULT
from meanfield.results.result import Result, check_dataset
from meanfield.results.schema import SCHEMA_VERSION, WITHOUT_CONVENTIONS, with_coordinates


def brought_up_to_date(dataset: xr.Dataset) -> xr.Dataset:
    """Dataset converted to the newest version of the schema if it obeys an older one; others as they are.

    Raises
    ------
    InputError
        If it says that it obeys an older one, and does not.
    """
    check_dataset(dataset)
    version = dataset.attrs.get("schema_version")
    if not isinstance(version, Integral) or not 1 <= int(version) < SCHEMA_VERSION:
        return dataset
    try:
        result = Result.of(dataset)
        problem = result.problem
    except InputError:  # it is no result, which whoever loads it will be told
        return dataset
    named: dict[str, Any] = {"family": DEFAULT} | problem.labels
    dataset = _without_units(dataset)
    dataset = dataset.assign_attrs(named | dataset.attrs | {"schema_version": SCHEMA_VERSION})
    if result.method == "sweep":
        return dataset
    try:
        dataset = _with_eigenvalues(_with_sum_and_difference(_with_bounds(dataset)))
        encoding = dataset.encoding
        dataset = with_coordinates(dataset.variables, dataset.attrs, problem, dataset.coords)
        dataset.encoding = encoding
    except ValueError as error:  # xarray's, of dims that are not what they were in any version
        raise InputError(f"is no result of schema version {version}: {error}; run the solver again") from error
    labels = [name for name in result.part(dataset).variables if result.family.all_variables[name].label]
    return dataset.drop_vars(labels) if "parameter" in dataset else dataset  # the number that varies may be one of them


def _without_units(dataset: xr.Dataset) -> xr.Dataset:
    """Dataset without the units "1" that its numbers had up to version 4, and without a claim that CF is followed."""
    dataset = dataset.copy()
    for variable in dataset.variables.values():
        if variable.attrs.get("units") == "1":
            del variable.attrs["units"]
    if dataset.attrs["method"] in WITHOUT_CONVENTIONS:
        dataset.attrs.pop("Conventions", None)
    return dataset


def _with_bounds(dataset: xr.Dataset) -> xr.Dataset:
    """Dataset with two edges for each cell, in place of the edges of all cells along a dim of their own."""
    edges = dataset["w_edge"].values if "w_edge" in dataset else np.empty(0)
    if edges.shape != (dataset.sizes.get("w", 0) + 1,):
        return dataset
    bounds = xr.Variable(("w", "bounds"), np.stack([edges[:-1], edges[1:]], axis=1))
    return dataset.drop_vars("w_edge").assign_coords(w_bnds=bounds)


def _with_sum_and_difference(dataset: xr.Dataset) -> xr.Dataset:
    """Dataset with a law of its own for each combination of two weights, in place of both along a dim."""
    if "P_diagonal" not in dataset or dataset.sizes["diagonal"] != 2:
        return dataset
    laws = {name: dataset["P_diagonal"].isel(diagonal=k) for k, name in enumerate(("P_sum", "P_difference"))}
    return dataset.drop_vars("P_diagonal").assign(laws)


def _with_eigenvalues(dataset: xr.Dataset) -> xr.Dataset:
    """Dataset in which the eigenvalues of a spectrum have a dim of their own, in place of one for nodes of any kind."""
    if "rho" not in dataset.variables or dataset["rho"].dims != ("node",):
        return dataset
    return dataset.drop_vars("node", errors="ignore").swap_dims(node="rho")
