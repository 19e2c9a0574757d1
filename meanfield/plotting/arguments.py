"""Checks of the arguments of plot functions: results that hold what is drawn, and the Axes of one panel."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import xarray as xr
from matplotlib.axes import Axes

from meanfield.arguments import wrong
from meanfield.errors import InputError
from meanfield.results.schema import check_dataset, family_of_result

P = ParamSpec("P")
R = TypeVar("R")

AXES = "give the Axes of one panel, such as matplotlib.figure.Figure().subplots()"


def draws(**needed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of a plot function that checks its results, and its `axes` where it has them, before it draws.

    Parameters
    ----------
    **needed : str
        For each argument that is a result, the variables that it must hold, in one text: "U weights". One of some is
        "q|q_mean", and "{quantity}" is the value of that argument. An argument that is None is not checked if None is
        its default.

    Raises
    ------
    InputError
        By the function: if such an argument is no Dataset or lacks a variable, or `axes` is no Axes.
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
            if "axes" in given and not isinstance(given["axes"], Axes):
                raise wrong("axes", given["axes"], AXES)
            return plot(*args, **kwargs)

        return checked

    return decorate


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
