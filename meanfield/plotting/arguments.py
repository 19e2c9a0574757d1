"""Checks of the arguments of plot functions: results that hold what is drawn, times, features, and Axes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

import xarray as xr
from matplotlib.axes import Axes

from meanfield.arguments import as_number, as_numbers, as_whole, wrong
from meanfield.errors import InputError
from meanfield.results.schema import check_dataset, family_of_result

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
        By the function: if such an argument is no Dataset or lacks a variable, `axes` is no Axes, `time` no number,
        `times` no list of some, or there is no such `feature`.
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
            _check_places(
                {name: value for name, value in given.items() if value is not signature.parameters[name].default}
            )
            if "axes" in given and not isinstance(given["axes"], Axes):
                raise wrong("axes", given["axes"], AXES)
            return plot(*args, **kwargs)

        return checked

    return decorate


def _check_places(given: Mapping[str, object]) -> None:
    """Refuse times that are no numbers, and features that the result does not have; defaults are right."""
    if "time" in given:
        as_number(given["time"], "time", "give a number; that of the nearest output is drawn")
    if "times" in given and not as_numbers(given["times"], "times", TIMES):
        raise wrong("times", given["times"], TIMES)
    if "feature" in given:
        features = next(value.sizes.get("feature", 1) for value in given.values() if isinstance(value, xr.Dataset))
        wanted = f"give the number of a feature, 0 to {features - 1}"
        as_whole(given["feature"], "feature", wanted, least=0, most=features - 1)


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
