"""Output of solvers, and the one place where a Dataset with wall time and provenance is made of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from time import perf_counter
from typing import TYPE_CHECKING, Any, ParamSpec

from meanfield.problems.base import Problem
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset

if TYPE_CHECKING:
    import xarray as xr

P = ParamSpec("P")


@dataclass(frozen=True)
class Solved:
    """Kind, arrays and status that a solver computed.

    Parameters
    ----------
    kind : str
        A kind of results that the problem's family declares.
    arrays : dict
        One array per variable of the kind.
    status : str
        `complete`, `interrupted` or `failed: why`.
    warning : str
        Sentences for the attribute `warning`; without them there is none.
    effort : dict
        Numbers and words for the provenance, such as the number of cells or the scheme.
    attributes : dict
        Attributes of the Dataset besides those that the schema asks for.
    variable_attributes : dict
        Further attributes of variables, by the name of the variable.
    without : collection of str
        Numbers of the problem that the result does not repeat, because they differ along it.
    problem : Problem, optional
        The problem that was solved, where it is another one than was given.
    """

    kind: str
    arrays: dict[str, Any]
    status: str = "complete"
    warning: str = ""
    effort: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    variable_attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    without: Collection[str] = ()
    problem: Problem | None = None

    def dataset(self, problem: Problem, seconds: float) -> xr.Dataset:
        """Dataset of the schema; see `meanfield.results.schema.build_dataset`.

        Parameters
        ----------
        problem : Problem
            The problem that was given.
        seconds : float
            The wall time.
        """
        origin = provenance(seconds, **self.effort)
        built = build_dataset(self.kind, self.problem or problem, self.arrays, self.status, origin, self.warning)
        built = built.drop_vars(self.without, errors="ignore") if self.without else built
        built.attrs |= self.attributes
        for name, attributes in self.variable_attributes.items():
            built[name].attrs |= attributes
        return built


def solver(function: Callable[P, Solved]) -> Callable[P, xr.Dataset]:
    """Solver of problems that returns a Dataset, from a function that returns `Solved`: a decorator.

    Parameters
    ----------
    function : callable
        A function of a problem and options.

    Returns
    -------
    callable
        The same function with the Dataset as its value, whose provenance has the wall time.
    """

    @wraps(function)
    def solve(*args: P.args, **options: P.kwargs) -> xr.Dataset:
        started = perf_counter()
        solved = function(*args, **options)
        problem: Any = args[0] if args else options["problem"]
        return solved.dataset(problem, perf_counter() - started)

    # shown by help()
    solve.__signature__ = signature(function).replace(return_annotation="xr.Dataset")  # type: ignore[attr-defined]
    return solve
