"""Datasets of ours: how one is built from arrays, and whether one obeys the schema of its family.

A run is one flat Dataset.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import xarray as xr

from meanfield.errors import InputError
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.results import INSTEAD_OF_TIME, METHODS, NAMES, OPTIONAL, VARIABLES, Variable
from meanfield.problems.file import format_problem, parse_problem

SCHEMA_VERSION = 3
"""2: results of SGD may lack weights, and may be statistics of an ensemble. 3: files are sealed."""

SEALED_SINCE = 3

TEXTS = ("title", "problem", "provenance", "status")
"""Attributes that are text."""


def build_dataset(method: str, problem: Problem, arrays: dict[str, Any], status: str, provenance: str) -> xr.Dataset:
    """A Dataset of the schema from plain arrays.

    Parameters
    ----------
    method : str
        A key of `meanfield.families.contrastive.results.METHODS`.
    problem : Problem
        The problem that was solved; its TOML text is stored in the attribute `problem`.
    arrays : dict
        One array per variable of the method.
    status : str
        `complete`, `interrupted` or `failed: why`.
    provenance : str
        JSON text.
    """
    variables = {}
    for name, array in arrays.items():
        known = VARIABLES[name]
        dims = _dims(method, known)
        dims = ("replica", *dims) if known.per_replica and array.ndim > len(dims) else dims
        variables[name] = xr.Variable(dims, array, attributes_of(name))
    attributes = {
        "Conventions": "CF-1.11",
        "title": problem.title,
        "method": method,
        "schema_version": SCHEMA_VERSION,
        "problem": format_problem(problem),
        "provenance": provenance,
        "status": status,
    }
    dataset = xr.Dataset(variables, attrs=attributes)
    validate(dataset)
    return dataset


def _dims(method: str, known: Variable) -> tuple[str, ...]:
    """Dims of a variable in a result of this method."""
    return tuple(INSTEAD_OF_TIME.get(method, dim) if dim == "time" else dim for dim in known.dims)


def attributes_of(name: str) -> dict[str, str]:
    """CF attributes of a variable; one that is not ours means what its name says."""
    long_name = VARIABLES[name].long_name if name in VARIABLES else name
    return {"long_name": long_name} | ({} if name in NAMES else {"units": "1"})


def validate(dataset: xr.Dataset) -> None:
    """Check a Dataset against the schema.

    Raises
    ------
    InputError
        If it is no result of ours, an attribute or a variable is missing, or a variable has other dims.
    """
    attributes, method = dataset.attrs, str(dataset.attrs.get("method"))
    version = attributes.get("schema_version")
    if method not in METHODS or version is None:
        raise InputError(
            "not a result of meanfield: the attributes 'method' and 'schema_version' are missing or unknown; "
            "give a file written by one of the solvers"
        )
    if not isinstance(version, Integral) or int(version) < 1:
        raise InputError(f"schema_version = {version!r:.40}: it is a whole number from 1 on; run the solver again")
    if int(version) > SCHEMA_VERSION:
        raise InputError(
            f"schema version {version} is newer than {SCHEMA_VERSION}, the newest that this version of meanfield "
            "reads; update meanfield"
        )
    for name in TEXTS:
        if not isinstance(attributes.get(name), str):
            raise InputError(f"the attribute '{name}' is missing, or is no text; run the solver again")
    if attributes["status"] not in ("complete", "interrupted") and not attributes["status"].startswith("failed: "):
        raise InputError(
            f"status = {attributes['status']!r:.40}: it is 'complete', 'interrupted' or 'failed: why'; "
            "run the solver again"
        )
    if method == "sweep":
        _validate_sweep(dataset)
        return
    for name in METHODS[method]:
        if name not in dataset.variables:
            raise InputError(f"variable '{name}' is missing from a result of method '{method}'; run the solver again")
    own = variables_of(dataset)
    for name in map(str, dataset.variables):
        if name in VARIABLES and name not in own:
            raise InputError(f"variable '{name}' belongs to no result of method '{method}'; give yours another name")
    for name in own:
        known, dims = VARIABLES[name], dataset.variables[name].dims
        right = _dims(method, known)
        if dims != right and not (known.per_replica and dims == ("replica", *right)):
            raise InputError(f"variable '{name}' has dims {dims}, not {right}; run the solver again")


def _validate_sweep(dataset: xr.Dataset) -> None:
    """All that a sweep keeps is its own choice, but for where its points are, and what became of them."""
    axes = dataset["status"].dims if "status" in dataset else ()
    if "status" not in dataset or any("key" not in dataset[axis].attrs for axis in axes):
        raise InputError("variable 'status' or the keys of the axes are missing from a sweep; run it again")
    for name, variable in dataset.data_vars.items():
        if variable.dims[: len(axes)] != axes:
            raise InputError(
                f"variable '{name}' has dims {variable.dims}, which do not begin with {axes}; run it again"
            )
        if "long_name" not in variable.attrs:
            raise InputError(f"variable '{name}' has no long_name; run the sweep again")


def variables_of(dataset: xr.Dataset) -> list[str]:
    """Names of the variables that are of the schema: a user may have added others, of names that are not of it."""
    method = dataset.attrs["method"]
    return [name for name in (*METHODS[method], *OPTIONAL.get(method, ())) if name in dataset.variables]


def brought_up_to_date(dataset: xr.Dataset) -> xr.Dataset:
    """The Dataset as one of the newest version, which holds what those of older versions did; others as they are."""
    version = dataset.attrs.get("schema_version")
    older = isinstance(version, Integral) and int(version) < SCHEMA_VERSION
    return dataset.assign_attrs(schema_version=SCHEMA_VERSION) if older else dataset


def problem_of(dataset: xr.Dataset) -> Problem:
    """The problem that a Dataset solves. Nothing that it names is opened or imported, now or when it is solved.

    Raises
    ------
    InputError
        If the attribute `problem` holds none.
    """
    try:
        return parse_problem(dataset.attrs["problem"], trusted=False)
    except InputError as error:
        raise InputError(f"the attribute 'problem' holds no problem: {error}") from error
