"""Merging of all points of a sweep into one Dataset, with the axes as its first dims."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from meanfield.problems.kind import STATUS
from meanfield.problems.known_families import family_of
from meanfield.results.result import Result
from meanfield.results.schema import attributes_of, counted_dims, validate
from meanfield.sweep.definition import Axis, Sweep, format_sweep
from meanfield.sweep.points import Point
from meanfield.sweep.solve import COMPLETE, Outcome

MISSING = "missing"


def merged(
    sweep: Sweep, points: Sequence[Point], outcomes: Mapping[str, Outcome], status: str, provenance: str
) -> xr.Dataset:
    """Dataset of all points.

    Parameters
    ----------
    points : sequence of Point
        All of them, in order.
    outcomes : mapping
        What became of them, by name.
    status : str
        `complete` or `interrupted`. Where points failed, a complete sweep says that instead.
    provenance : str
        JSON text.

    Returns
    -------
    xarray.Dataset
        Of the method `sweep`: along the axes `status` of each point, and whatever the sweep keeps; NaN, or no word,
        where there is none. A coordinate that is not the same at all points, such as times where `time.stop` varies,
        is a variable along the axes, with `_at` behind its name.
    """
    shape, dims = tuple(axis.size for axis in sweep.axes), tuple(axis.dim for axis in sweep.axes)
    forms = _forms(points, outcomes)
    variables, statuses = {}, np.full(shape, MISSING, dtype=object)
    for name, form in forms.items():
        words = form.dtype.kind in "UO"
        values = np.full(shape + form.shape, "" if words else np.nan, dtype=object if words else float)
        variables[name] = xr.Variable(dims + form.dims, values, form.attrs)
    for point in points:
        outcome = outcomes.get(point.name)
        if outcome is None:
            continue
        misfits = []
        for name, found in outcome.variables.items():
            if name in forms and (forms[name].dims, forms[name].shape) == (found.dims, found.shape):
                variables[name].values[point.index] = found.values[()]  # a word, not an array of one
            else:
                misfits.append(_misfit(name, found))
        statuses[point.index] = misfits[0] if misfits else outcome.status
    failed = sum(text.startswith("failed: ") for text in statuses.flat)
    if status == COMPLETE and failed:
        status = f"failed: {failed} of {statuses.size} points; the variable 'status' says why"
    variables["status"] = xr.Variable(dims, statuses.astype(str), STATUS.attributes)
    declared = family_of(sweep.problem).all_variables
    beside = {name for name, known in declared.items() if known.coordinate}
    coordinates = [name for name, form in forms.items() if form.dims == (name,) or name in beside]
    for name in coordinates:
        variables |= _coordinate(name, variables.pop(name), forms[name])
    for axis in sweep.axes:
        variables |= _axis_coordinates(axis, axis.settings(sweep.problem))
    attributes = attributes_of(sweep.problem, "sweep", status, provenance) | {"sweep": format_sweep(sweep)}
    attributes["title"] = sweep.title or sweep.problem.title
    variables |= counted_dims(variables, family_of(sweep.problem))
    dataset = xr.Dataset(variables, attrs=attributes)
    everywhere = [name for name in coordinates if name in dataset.variables]
    dataset = dataset.set_coords([*everywhere, *(key for axis in sweep.axes for key in axis.keys[1:])])
    validate(Result.of(dataset, sweep.problem))
    return dataset


def _forms(points: Sequence[Point], outcomes: Mapping[str, Outcome]) -> dict[str, xr.Variable]:
    """Form of each variable, its dims and sizes, which is that of the first point that has it."""
    forms: dict[str, xr.Variable] = {}
    sizes: dict[Any, int] = {}
    for point in points:
        if point.name in outcomes:
            for name, variable in outcomes[point.name].variables.items():
                if name not in forms and all(sizes.get(dim, size) == size for dim, size in variable.sizes.items()):
                    forms[name] = variable
                    sizes |= variable.sizes
    return forms


def _misfit(name: str, found: xr.Variable) -> str:
    return (
        f"failed: {name} has dims {dict(found.sizes)}, which are not those of points before; what a sweep keeps must "
        "have the same shape at all points"
    )


def _coordinate(name: str, values: xr.Variable, form: xr.Variable) -> dict[str, xr.Variable]:
    """Coordinate that all points have in common, or one for each of them."""
    everywhere = values.values.reshape(-1, form.size)
    given = everywhere[~np.all(everywhere != everywhere, axis=1)] if form.dtype.kind == "f" else everywhere
    if np.array_equal(given, np.broadcast_to(form.values.ravel(), given.shape)):
        return {name: form}
    values.attrs.pop("bounds", None)  # those of each point have another name, too
    return {f"{name}_at": values}


def _axis_coordinates(axis: Axis, settings: list[dict[str, Any]]) -> dict[str, xr.Variable]:
    """Values of each key along an axis: those of the first one under the name of the dim."""
    found = {}
    for key in axis.keys:
        values = [position[key] for position in settings]
        attributes = {"long_name": key, "key": key, "scale": "log" if axis.log is not None else "linear"}
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            array: Any = np.array(values)
        else:
            array = np.array([value if isinstance(value, str) else json.dumps(value) for value in values])
        found[axis.dim if key == axis.keys[0] else key] = xr.Variable((axis.dim,), array, attributes)
    return found


def describe(sweep: xr.Dataset) -> str:
    """Summary of a sweep: the number of complete points, and messages of failed ones.

    Parameters
    ----------
    sweep : xarray.Dataset
        From `meanfield.run_sweep`.
    """
    statuses, counts = np.unique(sweep["status"].values, return_counts=True)
    found = dict(zip(statuses.tolist(), counts.tolist(), strict=True))
    complete, missing = found.pop(COMPLETE, 0), found.pop(MISSING, 0)
    failed = sum(found.values())
    parts = [f"{complete} complete", *([f"{failed} failed"] * bool(failed)), *([f"{missing} missing"] * bool(missing))]
    lines = [f"{sweep['status'].size} points: {', '.join(parts)}"]
    most = sorted(found, key=lambda status: -found[status])
    lines += [f"  {found[status]} {status}" for status in most[:MESSAGES]]
    return "\n".join([*lines, *([f"  and {len(most) - MESSAGES} other messages"] * (len(most) > MESSAGES))])


def description_lines(sweep: xr.Dataset) -> list[str]:
    """Lines of `describe`, for reports."""
    return describe(sweep).splitlines()


MESSAGES = 3
"""Largest number of messages of failed points that are shown."""
