"""Schema of results: Datasets are built from arrays, and validated against the declarations of their family.

A run is one flat Dataset. Its attributes `family` and `method` say of which family and kind it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest
from meanfield.problems.base import Problem
from meanfield.problems.family import Family
from meanfield.problems.file import format_problem
from meanfield.problems.known_families import family_of
from meanfield.problems.phases import phase_numbers, pieces_of
from meanfield.problems.variable import counting
from meanfield.results.made_by import FINGERPRINTS, from_json, made_by, to_json
from meanfield.results.result import Result

if TYPE_CHECKING:
    import xarray as xr

SCHEMA_VERSION = 7
"""Version of the files that are written now; see `meanfield.results.older_versions`."""

CONVENTIONS = "CF-1.11"
"""Climate and forecast conventions that results follow, but for those whose dims may have words as coordinates."""

WITHOUT_CONVENTIONS = ("comparison", "sweep", "fit")
"""Kinds of results that do not claim to follow them: a coordinate along a dim is a number there, and increases."""

TEXTS = ("title", "problem", "provenance", "status")
"""Attributes whose values are text."""

WARNING = "warning"
"""Attribute of a result that is right but not what most people expect of it: sentences that say why."""


def build_dataset(
    kind: str, problem: Problem, arrays: dict[str, Any], status: str, provenance: str, warning: str = ""
) -> xr.Dataset:
    """Dataset of the schema from plain arrays.

    Parameters
    ----------
    kind : str
        A kind of results that the problem's family declares.
    problem : Problem
        The problem that was solved; its TOML text is stored in the attribute `problem`.
    arrays : dict
        One array per variable of the kind.
    status : str
        `complete`, `interrupted` or `failed: why`.
    provenance : str
        JSON text.
    warning : str
        Sentences for the attribute `warning`; without them there is none.

    Raises
    ------
    ValueError
        If the family does not declare the kind, or declares no such variable in results of that kind; or an array has
        another type or shape than its variable, or belongs to places such as `time` that are not there.
    """
    import xarray as xr

    family = family_of(problem)
    if kind not in family.all_kinds:
        raise ValueError(f"family '{family.name}' declares no kind '{kind}'; {nearest(kind, family.all_kinds)}")
    declared, held, variables = family.all_kinds[kind], problem.fixed_dims, {}
    for name, given in arrays.items():
        if name not in declared.names or name not in family.all_variables:
            raise ValueError(
                f"family '{family.name}' declares no variable '{name}' of results of kind '{kind}'; "
                f"add it to `variables` of the family and to kinds['{kind}'], or leave it out"
            )
        known = family.all_variables[name]
        dims = declared.dims(known, held=held)
        array = np.asarray(given)
        dims = next((longer for longer in _longer(known.optional_dims, dims) if len(longer) == array.ndim), dims)
        if array.ndim != len(dims) or array.dtype.kind not in ("UO" if known.words else "fiub"):
            what = "words" if known.words else "real numbers"
            raise ValueError(f"'{name}' is an array of {array.dtype}, shape {array.shape}; give {what} along {dims}")
        variables[name] = xr.Variable(dims, array)
    _check_places(variables, family)
    warnings = {WARNING: warning} if warning else {}
    attributes = attributes_of(problem, kind, status, provenance) | warnings
    dataset = with_coordinates(variables, attributes, problem)
    validate(Result.of(dataset, problem))
    return dataset


def _longer(optional: tuple[str, ...], dims: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Dims with one optional dim or more before them, of which the first ones may be missing."""
    return [(*optional[first:], *dims) for first in range(len(optional))]


def _check_places(variables: dict[str, xr.Variable], family: Family) -> None:
    """Refuse arrays of other lengths along a dim than those before, and dims whose places (times) are missing."""
    sizes: dict[Any, tuple[int, str]] = {}
    for name, variable in variables.items():
        for dim, size in variable.sizes.items():
            if dim in family.all_variables and dim not in variables:
                raise ValueError(f"'{name}' has the dim '{dim}', and the array '{dim}' is missing; give it")
            first, other = sizes.setdefault(dim, (size, name))
            if size != first:
                raise ValueError(f"'{name}' has {size} entries along '{dim}', and '{other}' has {first}; give as many")


def with_coordinates(
    given: Mapping[Any, xr.Variable], attributes: Mapping[Any, Any], problem: Problem, others: Iterable[Any] = ()
) -> xr.Dataset:
    """Dataset whose coordinates are those that its family declares, with numbers of the problem among them.

    All is decided before it is made: a Dataset made anew for each change took half of the time of small problems.

    Parameters
    ----------
    given : mapping of str to xarray.Variable
        Variables of a result, with the dims that they are declared with; they are given attributes.
    attributes : mapping
        Of the Dataset.
    problem : Problem
    others : iterable of str
        Further names of coordinates.
    """
    import xarray as xr

    family, variables = family_of(problem), dict(given)
    names, labels = family.all_kinds[attributes["method"]].names, _labels(problem)
    told = {name: family.all_variables[name].label for name in names if name not in variables}
    variables |= {name: xr.Variable((), labels[label]) for name, label in told.items() if label in labels}
    known = {name: family.all_variables[name] for name in names if name in variables}
    for dim, name in family.indices(_sizes(variables)).items():
        if name in known and dim in variables[name].dims:
            variables = _with_index(variables, dim, name)
    for name, variable in known.items():
        variables[name].attrs |= variable.attributes
    coordinates = [*others, *(name for name, variable in known.items() if variable.coordinate)]
    if problem.phases is not None and "time" in variables:
        number = phase_numbers(problem, variables["time"].values)
        variables["phase"] = xr.Variable("time", number, {"long_name": "number of the phase, from 0"})
        coordinates.append("phase")
    return xr.Dataset(variables | counted_dims(variables, family), attrs=attributes).set_coords(coordinates)


def _with_index(variables: dict[Any, xr.Variable], dim: str, name: str) -> dict[Any, xr.Variable]:
    """Variables along a dim that is called as the variable that tells its places apart, in the order of that one."""
    index = variables[name].isel({other: 0 for other in variables[name].dims if other != dim})
    rows = np.argsort(index.values, kind="stable")
    is_sorted = np.array_equal(rows, np.arange(len(rows)))
    found = {}
    for key, variable in (variables | {name: index}).items():
        if dim in variable.dims:
            variable = (variable if is_sorted else variable.isel({dim: rows})).to_base_variable()
            variable.dims = tuple(name if other == dim else other for other in variable.dims)
        found[key] = variable
    return found


def _labels(problem: Problem) -> dict[str, float]:
    """Labels of a problem that are the same in all of its phases."""
    others = [piece.problem.labels for piece in pieces_of(problem)]
    return {name: value for name, value in problem.labels.items() if all(each.get(name) == value for each in others)}


def _sizes(variables: Mapping[Any, xr.Variable]) -> dict[Any, int]:
    return {dim: size for variable in variables.values() for dim, size in variable.sizes.items()}


def counted_dims(variables: Mapping[Any, xr.Variable], family: Family) -> dict[Any, xr.Variable]:
    """Coordinates of dims that no variable is named after: they count from 0."""
    import xarray as xr

    return {
        dim: xr.Variable(dim, np.arange(size), counting(str(dim), family.counted).attributes)
        for dim, size in _sizes(variables).items()
        if dim not in variables
    }


def attributes_of(problem: Problem, kind: str, status: str, provenance: str) -> dict[str, Any]:
    """Attributes of a result: its kind, its problem, and where it comes from."""
    attributes = {
        "title": problem.title,
        "family": family_of(problem).name,
        "method": kind,
        "schema_version": SCHEMA_VERSION,
        "problem": format_problem(problem),
        "provenance": provenance,
        FINGERPRINTS: to_json(made_by(problem)),
        "status": status,
    }
    return ({} if kind in WITHOUT_CONVENTIONS else {"Conventions": CONVENTIONS}) | attributes | _labels(problem)


def variable_attributes(family: Family, name: str) -> dict[str, str]:
    """CF attributes of a variable; one that the family does not declare means what its name says."""
    known = family.all_variables.get(name)
    return known.attributes if known is not None else {"long_name": name}


def validate(result: Result) -> None:
    """Check a result against the schema.

    Raises
    ------
    InputError
        If an attribute or a variable is missing, or a variable has other dims.
    """
    dataset, method = result.dataset, result.method
    attributes = dataset.attrs
    version = attributes["schema_version"]
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
    if not isinstance(attributes.get(WARNING, ""), str):
        raise InputError(f"the attribute '{WARNING}' is no text; run the solver again")
    if FINGERPRINTS in attributes and from_json(attributes[FINGERPRINTS]) is None:
        raise InputError(f"the attribute '{FINGERPRINTS}' holds no fingerprints; run the solver again, or remove it")
    if attributes["status"] not in ("complete", "interrupted") and not attributes["status"].startswith("failed: "):
        raise InputError(
            f"status = {attributes['status']!r:.40}: it is 'complete', 'interrupted' or 'failed: why'; "
            "run the solver again"
        )
    if int(version) < SCHEMA_VERSION:
        raise InputError(
            f"schema version {version} is older than {SCHEMA_VERSION}; meanfield.load(path) brings a file up to date"
        )
    if method == "sweep":
        _validate_sweep(dataset)
        return
    for name in result.missing(dataset.sizes):
        raise InputError(f"variable '{name}' is missing from a result of method '{method}'; run the solver again")
    own = result.variables
    declared = result.family.all_variables
    indices = {dim: name for dim, name in result.family.indices(dataset.sizes).items() if name in own}
    for name in map(str, dataset.variables):
        if name in declared and name not in own:
            raise InputError(f"variable '{name}' belongs to no result of method '{method}'; give yours another name")
    held = {**dataset.sizes, **result.problem.fixed_dims}
    for name in own:
        known, dims = declared[name], dataset.variables[name].dims
        right = result.kind.dims(known, indices, held)
        if dims != right and dims not in _longer(known.optional_dims, right):
            raise InputError(f"variable '{name}' has dims {dims}, not {right}; run the solver again")


def _validate_sweep(dataset: xr.Dataset) -> None:
    """Validate a sweep: whatever it keeps is allowed, but positions and status of its points are required."""
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
