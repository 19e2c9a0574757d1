"""Families of problems as data: the variables and kinds of their results, and the methods that make them.

A family is one frozen value, because methods differ from family to family. What is heavy is named as "module:name" and
imported when it is used, so that reading a problem file or asking for help imports no solver.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest

NOTHING: Mapping[str, Any] = MappingProxyType({})


def resolve(address: str) -> Any:
    """Object at the address "module:name"; such addresses stand in declarations, never in files."""
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Variable:
    """Declaration of a variable of results: its meaning, its dims, and the values that it may have.

    Parameters
    ----------
    dims : tuple of str
    long_name : str
        Meaning of the variable. All quantities are dimensionless.
    optional_dims : tuple of str
        Dims that may come before the others, such as `replica`.
    range : (float, float)
        Smallest and largest value.
    gaps : {"allowed", "unfinished", "never"}
        Where values may be missing: anywhere, only in runs that failed or were interrupted, or nowhere.
    increasing : bool
        Whether values increase along its only dim.
    words : bool
        Whether it holds words instead of numbers.
    choices : tuple of str
        The words that there are; any, if none are given.
    compared : bool
        Whether `meanfield.compare` looks at its differences between results.
    conserved : (str, float), optional
        A quantity that should be constant: what its largest deviation is called, and the constant.
    needs : tuple of str
        Variables without which it says nothing.
    judged : bool
        Whether it is a distance of runs and a prediction that comparisons judge: beside it is the largest one that
        chance allows.
    bounded_by : str
        Error estimate whose sum for two results on the same grid is at least this distance of them if both are right.
    coordinate : bool
        Whether it says where other variables have their values, besides those that have the name of their only dim.
    index_of : str
        Dim whose places it tells apart. Where its other dims have a single entry it is the index of that dim, which
        then has its name: nodes in one feature coordinate u are a dim `u`, those in several a dim `node`.
    bounds : str
        Variable with the edges of its cells, by the CF conventions.
    label : str
        Name of the number among the problem's `labels` that it repeats, such as `learning_rate`; a scalar coordinate.
    """

    dims: tuple[str, ...]
    long_name: str
    optional_dims: tuple[str, ...] = ()
    range: tuple[float, float] = (-inf, inf)
    gaps: Literal["allowed", "unfinished", "never"] = "allowed"
    increasing: bool = False
    words: bool = False
    choices: tuple[str, ...] = ()
    compared: bool = False
    conserved: tuple[str, float] | None = None
    needs: tuple[str, ...] = ()
    judged: bool = False
    bounded_by: str = ""
    coordinate: bool = False
    index_of: str = ""
    bounds: str = ""
    label: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """CF attributes. Numbers without a unit have no `units`: CF allows it, and plots show no "[1]"."""
        return {"long_name": self.long_name} | ({"bounds": self.bounds} if self.bounds else {})


@dataclass(frozen=True)
class Kind:
    """Declaration of a kind of results: its variables, and how it is shown.

    Parameters
    ----------
    title : str
        Title of such results, for reports.
    variables, optional : tuple of str
        Names of variables that it must hold, and that it may hold besides.
    leading : str
        The dim of results that are not in time, such as `state`, in place of `time`.
    made_by : str
        The public function that returns it, for the documentation.
    check : str
        "module:function" of Dataset and problem, which yields what is wrong with numbers that belong together.
    figure, numbers, notes : str
        "module:function" of a Dataset, which returns its Figure, yields its key numbers as (name, value), or yields
        lines of text. Without them a figure of all variables is drawn, and a report shows none.
    summary : str
        "module:function" of a Dataset, which returns the text that commands print; nothing is printed without it.
    accuracy : float, optional
        Largest error of its compared variables, where the method fixes it and results do not state it.
    """

    title: str
    variables: tuple[str, ...]
    optional: tuple[str, ...] = ()
    leading: str = "time"
    made_by: str = ""
    check: str = ""
    figure: str = ""
    numbers: str = ""
    notes: str = ""
    summary: str = ""
    accuracy: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables that it may hold."""
        return (*self.variables, *self.optional)

    def dims(self, variable: Variable, indices: Mapping[str, str] = NOTHING) -> tuple[str, ...]:
        """Dims of a variable in results of this kind, without optional ones.

        Parameters
        ----------
        variable : Variable
        indices : mapping of str to str
            Dims that have the name of their index; see `Family.indices`.
        """
        if variable.index_of in indices:
            return (indices[variable.index_of],)
        return tuple(indices.get(dim, self.leading if dim == "time" else dim) for dim in variable.dims)


@dataclass(frozen=True)
class Method:
    """Declaration of a method, which solves the problems of a family.

    Parameters
    ----------
    title : str
        Name of the method in words, for tables.
    solve : str
        "module:function" of a problem and options, which returns a Dataset.
    kinds : tuple of str
        Kinds of results that it may return.
    check : str
        "module:function" of a problem that raises `InputError` where the method does not apply, at no cost.
    cost : str
        "module:function" of a problem that returns a `meanfield.explanation.Prediction`.
    resumes : bool
        Whether it takes `record`, a `meanfield.Checkpoint`, and goes on with an interrupted run.
    threads : bool
        Whether it takes `workers`, a number of threads.
    keep : tuple of str
        Names of the family's reductions that apply to its results.
    purpose : str
        What it is for, in a line of `--help`; the title of its first kind of result if nothing is said.
    """

    title: str
    solve: str
    kinds: tuple[str, ...]
    check: str = ""
    cost: str = ""
    resumes: bool = False
    threads: bool = False
    keep: tuple[str, ...] = ()
    purpose: str = ""

    def __call__(self, problem: Any, **options: Any) -> Any:
        """Solve a problem; see `meanfield.methods.solve`."""
        return resolve(self.solve)(problem, **options)


STATUS = Variable((), "complete, missing, or failed and why", words=True)
PAIR = Variable(("pair",), "the two results that are compared: first - second", words=True)

AGREES, DIFFERS, CANNOT_TELL = VERDICTS = ("AGREES", "DIFFERS", "CANNOT TELL")
"""Words for the outcome of a comparison."""

JUDGEMENT = {
    "verdict": Variable(("pair",), "whether the two results agree", words=True, choices=VERDICTS),
    "p_value": Variable(
        ("pair",), "share of comparisons of true pairs that show a difference as unlikely as this", range=(0.0, 1.0)
    ),
    "reason": Variable(("pair",), "what decides it, and what to change", words=True),
}

SWEEP = Kind(
    "many problems at once, over values of some of their keys",
    ("status",),
    made_by="run_sweep",
    figure="meanfield.plotting.results:plot_sweep",
    numbers="meanfield.report.key_numbers:of_a_sweep",
    notes="meanfield.sweep.merge:description_lines",
)


@dataclass(frozen=True)
class Family:
    """Declaration of a family of problems: their class, the variables and kinds of their results, their methods.

    Parameters
    ----------
    name : str
        The word in problem files.
    title : str
        A line about it.
    problem : str
        "module:class" of its problems, a subclass of `meanfield.problems.base.BaseProblem`.
    example : str
        "module:file" of a problem that every method solves within a second, beside the module.
    variables : mapping of str to Variable
    kinds : mapping of str to Kind
        Kinds of results, but for comparisons and sweeps, which all families have.
    methods : mapping of str to Method
    distances : tuple of str
        Names of variables that comparisons hold besides the differences of compared variables.
    measure_distances : str
        "module:function" of a pair of results that returns them; see `meanfield.comparison.comparison`.
    measure_deviations : str
        "module:function" of a prediction and runs that returns what the distances are made of, run by run, with which
        they are judged; see `meanfield.comparison.weight_deviations`. Without it distances have no part in verdicts.
    reductions : mapping of str to str
        Reductions of results for sweeps: names and "module:function" of a Dataset, returning variables by name.
    wording : str
        "module:function" of a problem and `look_up` that says in words what it is; see `meanfield.explain`.
    warnings : str
        "module:function" of a problem and predictions that returns warnings, each with a remedy.
    key_words : mapping of str to str
        Regular expressions of keys, and the words for them on axes of figures.
    """

    name: str
    title: str
    problem: str
    example: str
    variables: Mapping[str, Variable]
    kinds: Mapping[str, Kind]
    methods: Mapping[str, Method]
    distances: tuple[str, ...] = ()
    measure_distances: str = ""
    measure_deviations: str = ""
    reductions: Mapping[str, str] = field(default_factory=dict)
    wording: str = ""
    warnings: str = ""
    key_words: Mapping[str, str] = field(default_factory=dict)

    @property
    def problem_class(self) -> Any:
        """Class of the family's problems."""
        return resolve(self.problem)

    @property
    def example_path(self) -> Path:
        """Path of the example file, beside the module that `example` names."""
        module, _, file = self.example.partition(":")
        return Path(str(importlib.import_module(module).__file__)).parent / file

    def method(self, name: str) -> Method:
        """Method with a name.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        if name not in self.methods:
            hint, known = nearest(name, self.methods), f"known: {', '.join(sorted(self.methods))}"
            raise InputError(
                f"unknown method '{name}' of family '{self.name}'; {hint if hint == known else f'{hint} ({known})'}"
            )
        return self.methods[name]

    def indices(self, sizes: Mapping[Any, int]) -> dict[str, str]:
        """Dims that have the name of the variable that is their index, in results with such sizes of other dims."""
        return {
            variable.index_of: name
            for name, variable in self.variables.items()
            if variable.index_of and all(sizes.get(dim) == 1 for dim in variable.dims if dim != variable.index_of)
        }

    @cached_property
    def compared(self) -> dict[str, Variable]:
        """Variables that `meanfield.compare` compares."""
        return {name: variable for name, variable in self.variables.items() if variable.compared}

    @cached_property
    def all_variables(self) -> dict[str, Variable]:
        """Variables of all kinds of results, comparisons and sweeps included."""
        found = {"pair": PAIR, "status": STATUS} | JUDGEMENT | dict(self.variables)
        for name, variable in self.compared.items():
            dims, what = ("pair", *variable.dims), variable.long_name.partition(" = ")[0]
            found[f"{name}_difference"] = Variable(dims, f"second minus first {what}, means over replicas")
            found[f"{name}_standard_error"] = Variable(dims, "standard error of that difference", range=(0.0, inf))
            found[f"{name}_chance"] = Variable(
                ("pair",), f"largest difference of {name} that chance allows, in standard errors", range=(0.0, inf)
            )
        for name in self.judged:
            known = self.variables[name]
            found[f"{name}_chance"] = replace(
                known, long_name=f"largest {name} that chance allows", range=(0.0, inf), judged=False
            )
        return found

    @property
    def judged(self) -> list[str]:
        """Names of the distances that comparisons judge."""
        return [name for name in self.distances if self.variables[name].judged]

    @cached_property
    def all_kinds(self) -> dict[str, Kind]:
        """Kinds of results, comparisons and sweeps included."""
        differences = [f"{name}_{what}" for name in self.compared for what in ("difference", "standard_error")]
        names = [*differences, *self.distances]
        dims = {dim for name in names for dim in self.all_variables[name].dims}
        coordinates = [name for name in self.variables if name in dims]
        comparison = Kind(
            "comparison of results",
            ("pair", *coordinates, *names),
            (*JUDGEMENT, *(f"{name}_chance" for name in (*self.compared, *self.judged))),
            made_by="compare",
            figure="meanfield.plotting.results:plot_agreement",
        )
        return dict(self.kinds) | {"comparison": comparison, "sweep": SWEEP}
