"""Methods by name: each takes a problem of its family and returns a Dataset."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest
from meanfield.problems.family import resolve
from meanfield.problems.known_families import family_of

if TYPE_CHECKING:
    import xarray as xr

    from meanfield.problems.base import BaseProblem


def solve(problem: BaseProblem, method: str, **options: Any) -> xr.Dataset:
    """Solve a problem of any family by one of the methods that the family declares.

    Parameters
    ----------
    problem : BaseProblem
        From `meanfield.load_problem`.
    method : str
        Such as `density`, `order_parameters` or `particles`; `family_of(problem).methods` has them all.
    **options
        What the method takes besides the problem, such as `workers` or `record` for SGD.

    Returns
    -------
    xarray.Dataset
        Of one of the kinds that the method declares.

    Raises
    ------
    InputError
        If the family has no such method, the method does not apply to the problem, or takes no such option.

    Examples
    --------
    >>> import meanfield
    >>> problem = meanfield.load_problem("data/problems/no_prior.toml")
    >>> meanfield.solve(problem, "order_parameters")["q"].shape
    (41, 1)
    """
    chosen = family_of(problem).method(method)
    if chosen.check:
        resolve(chosen.check)(problem)
    _check_options(method, resolve(chosen.solve), options)
    result: xr.Dataset = chosen(problem, **options)
    return result


def _check_options(method: str, function: Callable[..., Any], options: Iterable[str]) -> None:
    """Refuse options that a method does not take; its settings are keys of the problem file."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    known = [parameter.name for parameter in parameters]
    for name in options:
        if name not in known:
            hint = nearest(name, known) if known else "it takes none"
            raise InputError(f"{name}: no option of method '{method}'; {hint}; settings are keys of the problem file")
