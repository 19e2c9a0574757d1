"""A result with what its attributes say, its family, its kind and its problem, found out once; and its tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meanfield.errors import InputError
from meanfield.problems.base import Problem
from meanfield.problems.family import Family
from meanfield.problems.file import parse_problem
from meanfield.problems.kind import Kind
from meanfield.problems.known_families import DEFAULT, find_family
from meanfield.results.made_by import FINGERPRINTS, MadeBy, from_json

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


@dataclass(frozen=True)
class Result:
    """Result of a method: a Dataset, and what its attributes say.

    Whoever is given Datasets by a user makes it once by `Result.of`, and hands it on.

    Parameters
    ----------
    dataset : xarray.Dataset
    family : Family
    kind : Kind
        Its kind, as the family declares it.
    find_problem : callable
        Returns its problem, the same one at each call; see `problem`.
    """

    dataset: xr.Dataset
    family: Family
    kind: Kind
    find_problem: Callable[[], Any]

    @classmethod
    def of(cls, dataset: xr.Dataset, problem: Problem | None = None) -> Result:
        """Result that a Dataset is. Nothing is imported because it names it, but for families that are installed.

        Parameters
        ----------
        dataset : xarray.Dataset
        problem : Problem, optional
            Its problem, where that is known; else it is read from the attributes when it is asked for.

        Raises
        ------
        InputError
            If it is none: of no family that is known, or of none of its kinds.
        """
        family = family_of_result(dataset)
        kind = family.all_kinds.get(str(dataset.attrs.get("method")))
        if kind is None or dataset.attrs.get("schema_version") is None:
            raise InputError(
                "not a result of meanfield: the attributes 'method' and 'schema_version' are missing or unknown; "
                "give a file written by one of the solvers"
            )
        return cls(dataset, family, kind, cache(lambda: _problem_of(dataset)) if problem is None else lambda: problem)

    def part(self, dataset: xr.Dataset) -> Result:
        """Result with another Dataset of the same problem and kind, such as a part of its own."""
        return replace(self, dataset=dataset)

    @property
    def problem(self) -> Any:
        """Problem that it solves, read when it is first asked for. Nothing that it names is opened or imported.

        Raises
        ------
        InputError
            If the attribute `problem` holds none.
        """
        return self.find_problem()

    @property
    def method(self) -> str:
        """Name of its kind."""
        return str(self.dataset.attrs["method"])

    @property
    def status(self) -> str:
        """`complete`, `interrupted` or `failed: why`."""
        return str(self.dataset.attrs["status"])

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Record of how it was made; empty where its attribute holds none, as in a file that somebody else wrote."""
        try:
            found = json.loads(self.dataset.attrs.get("provenance", ""))
        except (TypeError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def has_runs(self) -> bool:
        """Whether it holds compared quantities of runs one by one."""
        held = self.dataset
        return any("replica" in held[name].dims for name in self.family.compared if name in held)

    @cached_property
    def is_prediction(self) -> bool:
        """Whether it holds compared quantities without runs."""
        return not self.has_runs and not any(f"{name}_mean" in self.dataset for name in self.family.compared)

    @property
    def variables(self) -> list[str]:
        """Names of the variables that belong to the schema; a user may have added others."""
        held = self.dataset.variables  # a new view at each look
        return [name for name in self.kind.names if name in held]

    @property
    def made_by(self) -> MadeBy:
        """What made it; in place of fingerprints that it does not have, those of its problem, which are not known."""
        kept = from_json(self.dataset.attrs.get(FINGERPRINTS))
        found: MadeBy = self.problem.fingerprints() if kept is None else kept
        return found

    def label(self, name: str) -> float:
        """Number of the problem that results carry as an attribute; older files have it in the problem alone."""
        found = self.dataset.attrs.get(name)
        label: float = found if found is not None else self.problem.labels[name]
        return label

    @property
    def steps_per_time(self) -> float:
        """Factor of the variances that statistics hold: the dimension N, or what the problem has in its place."""
        known = "dimension" in self.dataset.attrs or "dimension" in self.problem.labels
        if known or "steps_per_time" in self.dataset.attrs:
            return self.label("dimension" if known else "steps_per_time")
        return float(self.problem.steps_per_time)

    def missing(self, held: Container[Any]) -> Iterator[str]:
        """Names of variables that it lacks, and that results of its kind with these dims hold."""
        for name in self.kind.variables:
            known = self.family.all_variables[name]
            if name not in self.dataset.variables and self.family.exists(known, held):
                yield name


def check_dataset(given: object) -> None:
    """Refuse what is no Dataset, and say how to get one.

    Raises
    ------
    InputError
    """
    import xarray as xr

    if isinstance(given, str | Path):
        raise InputError(f"a path is no result; call meanfield.load('{given}') first, and give what it returns")
    if isinstance(given, Problem):
        raise InputError("a problem is no result; give what meanfield.solve(problem, method) returns")
    if not isinstance(given, xr.Dataset):
        raise InputError(
            f"{type(given).__name__} is no result; give a Dataset, as solvers and meanfield.load return it"
        )


def family_of_result(dataset: xr.Dataset) -> Family:
    """Family that the attributes of a Dataset name, of whatever kind it is.

    Raises
    ------
    InputError
        If it is none that is known.
    """
    check_dataset(dataset)
    return find_family(dataset.attrs.get("family", DEFAULT), trusted=False)


def _problem_of(dataset: xr.Dataset) -> Any:
    text = dataset.attrs.get("problem")
    if not isinstance(text, str):
        raise InputError("the attribute 'problem' is missing, or is no text; run the solver again")
    try:
        return parse_problem(text, trusted=False)
    except InputError as error:
        raise InputError(f"the attribute 'problem' holds no problem: {error}") from error


def tables(dataset: xr.Dataset) -> dict[str, pd.DataFrame]:
    """Tables of a result, one for each set of dims, without a number twice.

    `dataset.to_dataframe()` has a row for each combination of all dims. That is what one wants of a few variables, and
    too much of results that hold things of several kinds, such as the overlaps of SGD at all times beside its weights.

    Parameters
    ----------
    dataset : xarray.Dataset
        A result of any method, or a part of one.

    Returns
    -------
    dict of str to pandas.DataFrame
        By the dims, such as `time, feature`. The index holds their coordinates, the columns the variables that have
        just these dims, and other coordinates along them. Variables without dims have no table.

    Raises
    ------
    InputError
        If a Dataset is not what is given.
    """
    check_dataset(dataset)
    names: dict[str, list[str]] = {}
    for name, variable in dataset.data_vars.items():
        if variable.dims:
            names.setdefault(", ".join(map(str, variable.dims)), []).append(str(name))
    return {dims: dataset[held].to_dataframe() for dims, held in names.items()}
