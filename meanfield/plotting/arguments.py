"""Checks of the arguments of plot functions: results that hold what is drawn, times, features, and Axes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.arguments import as_number, as_numbers, as_whole, wrong
from meanfield.errors import InputError
from meanfield.results.result import check_dataset, family_of_result

P = ParamSpec("P")
R = TypeVar("R")

TIMES = "give a list of numbers, such as [0.0, 10.0]"

AXES = "give the Axes of one panel, such as matplotlib.figure.Figure().subplots()"


def draws(**needed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of a plot function that checks its results, times, feature and `axes`, as it has them, before it draws.

    Parameters
    ----------
    **needed : str
        For each argument that is a result, the variables that it must hold, in one text: "U weights". One of some is
        "q|q_mean", and "{quantity}" is the value of that argument. An argument that is None is not checked if None is
        its default.

    Raises
    ------
    InputError
        By the function: if such an argument is no Dataset or lacks a variable, `axes` is no Axes, `time` is none at
        which all of them hold numbers, `times` no list of such, or there is no such `feature` or `channel`.
    """

    def decorate(plot: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(plot)

        @wraps(plot)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            for name, variables in needed.items():
                if given[name] is not None or signature.parameters[name].default is not None:
                    _check_holds(given[name], variables.format(**given).split(), plot.__name__)
            chosen = {name: value for name, value in given.items() if value is not signature.parameters[name].default}
            asked = _check_places(chosen)
            if "axes" in given and not isinstance(given["axes"], Axes):
                raise wrong("axes", given["axes"], AXES)
            for name, variables in needed.items():
                for time in asked if given[name] is not None else ():
                    _check_time(given[name], variables.split(), time)
            return plot(*args, **kwargs)

        return checked

    return decorate


def _check_places(given: Mapping[str, object]) -> tuple[float, ...]:
    """Times that are asked for; refuse what is no number, and features that there are not. Defaults are right."""
    for name in ("feature", "channel"):
        if name in given:
            size = next(value.sizes.get(name, 1) for value in given.values() if isinstance(value, xr.Dataset))
            wanted = f"give the number of a {name}, 0 to {size - 1}"
            as_whole(given[name], name, wanted, least=0, most=size - 1)
    if "times" in given and not as_numbers(given["times"], "times", TIMES):
        raise wrong("times", given["times"], TIMES)
    times = as_numbers(given["times"], "times", TIMES) if "times" in given else ()
    return (*times, *([as_number(given["time"], "time", "give a number")] if "time" in given else []))


def _check_time(result: xr.Dataset, variables: list[str], time: float) -> None:
    """Refuse a time at which a result has no numbers."""
    for coordinate in set(variables).intersection(("density_time", "snapshot_time", "time")):
        index = index_at(result, coordinate, time)
        held = [name for name in variables if name in result and coordinate in result[name].dims and name != coordinate]
        known = np.isfinite(result[held[0]].transpose(coordinate, ...).values).reshape(result.sizes[coordinate], -1)
        reached = result[coordinate].values[known.any(axis=1)]
        if not known[index].any():
            upto = f"; give one up to {reached[-1]:.6g}" if len(reached) else ""
            raise InputError(
                f"time = {time:.6g}: the run has no '{held[0]}' there ({result.attrs.get('status')}){upto}"
            )


def index_at(result: xr.Dataset, coordinate: str, time: float) -> int:
    """Index of a time along a coordinate of a result.

    Raises
    ------
    InputError
        If the result has none that equals it; nothing is drawn at another time than was asked for.
    """
    known = result[coordinate].values
    index = int(np.argmin(np.abs(known - time)))
    if not abs(known[index] - time) <= 1e-5 * abs(known[-1]):  # people type five digits or so
        what = {"snapshot_time": "weights of SGD", "density_time": "a joint density"}.get(coordinate, "an output")
        raise InputError(
            f"time = {time:.6g}: the result of method '{result.attrs.get('method')}' has {what} at {len(known)} times "
            f"from {known[0]:.6g} to {known[-1]:.6g}, of which {known[index]:.6g} is the nearest; give one of them"
        )
    return index


def _check_holds(result: object, variables: list[str], function: str) -> None:
    """Refuse what is no Dataset, and one that lacks variables; say which results hold them."""
    check_dataset(result)
    assert isinstance(result, xr.Dataset)
    choices = [names.split("|") for names in variables]
    for choice in choices:
        if not any(name in result for name in choice):
            what = " or ".join(map(repr, choice))
            raise InputError(f"{function} draws {what}, which {_remedy(result, choices)}")


def _remedy(result: xr.Dataset, choices: list[list[str]]) -> str:
    """Which kinds of results hold, of each choice of variables, one."""
    method, kinds = str(result.attrs.get("method")), family_of_result(result).all_kinds
    holding = [
        kind for kind, known in kinds.items() if all(any(name in known.names for name in choice) for choice in choices)
    ]
    if method in holding:
        what = "compare results that have it" if method == "comparison" else "change the settings of the problem for it"
        return f"this result lacks, and others of method '{method}' hold; {what}"
    others = f"give a result of {' or '.join(map(repr, holding))}, or " if holding else ""
    return f"a result of method '{method}' does not hold; {others}call plot_result, which draws any"
