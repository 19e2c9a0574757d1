"""Example of a family, and its results, which checks share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import xarray as xr

import meanfield.methods
from meanfield.problems.base import Problem
from meanfield.problems.family import Family
from meanfield.problems.file import load_problem
from meanfield.problems.problem_keys import with_value


class Example:
    """Example problem of a family, solved by each method once.

    Parameters
    ----------
    family : Family
    """

    def __init__(self, family: Family) -> None:
        self.family = family
        self._results: dict[str, xr.Dataset] = {}

    @cached_property
    def problem(self) -> Problem:
        """Problem in the example file."""
        return load_problem(self.family.example_path)

    @property
    def data(self) -> dict[str, Any]:
        """Problem as plain data of TOML."""
        return self.problem.model_dump(exclude_none=True, mode="json")

    def result(self, method: str) -> xr.Dataset:
        """Result of a method, solved once."""
        if method not in self._results:
            self._results[method] = self.solve(method)
        return self._results[method]

    def solve(self, method: str, **options: Any) -> xr.Dataset:
        """Result of a method, solved anew."""
        return meanfield.methods.solve(self.problem, method, **options)

    def changed(self, key: str, value: Any) -> Problem:
        """Problem with another value of a key."""
        return with_value(self.problem, key, value)
