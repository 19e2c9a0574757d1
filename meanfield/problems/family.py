"""Families of problems as data: the variables and kinds of their results, and the methods that make them.

A family is one frozen value, because methods differ from family to family. What is heavy is named as "module:name" and
imported when it is used, so that reading a problem file or asking for help imports no solver.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from meanfield.arguments import as_text
from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest
from meanfield.problems.kind import FIT, STATUS, SWEEP, Kind
from meanfield.problems.method import Method as Method
from meanfield.problems.method import resolve as resolve
from meanfield.problems.variable import FITTED, JUDGEMENT, PAIR, Variable


@dataclass(frozen=True)
class Family:
    """Declaration of a family of problems: their class, the variables and kinds of their results, their methods.

    Parameters
    ----------
    name, title : str
        The word in problem files, and a line about it.
    problem : str
        "module:class" of its problems, a subclass of `meanfield.problems.base.Problem`.
    example : str
        "module:file" of a problem that every method solves within a second, beside the module.
    variables : mapping of str to Variable
    kinds : mapping of str to Kind
        Kinds of results, but for comparisons and sweeps, which all families have.
    methods : mapping of str to Method
    distances : tuple of str
        Names of variables that comparisons hold besides the differences of compared variables.
    measure_distances : str
        "module:function" of results and pairs of their numbers that returns them; see `meanfield.comparison.weights`.
    measure_deviations : str
        "module:function" of a prediction and runs that returns what these are made of, run by run, to judge them.
    leaves_out : str
        "module:function" of two results that yields what of their weights is not measured, in words.
    start : str
        "module:function" of a result that returns the weights with which all of it starts, or None where each run draws
        its own, or has a law of them as its start; empty where starts do not matter; see `meanfield.comparison.inputs`.
    measure : str
        "module:function" of a problem that returns a function of times and arrays of runs of one's own there, by the
        names of variables, replicas first and then times, which returns what follows from them; see `meanfield.runs`.
    unordered : tuple of str
        Dims along which own runs have an order of their own, such as `student`; comparisons find that of the problem.
    samples : str
        "module:function" of a problem that returns what it assumes of inputs, see `meanfield.samples.assumed`; empty
        where data are of another form.
    noise_in_time : str
        "module:function" of a problem that returns what runs show with its covariance between all output times, a
        `meanfield.numerics.linear_noise.NoiseInTime`; see `meanfield.fit`.
    reductions, sweep_figures : mapping of str to str
        Reductions of results for sweeps: names and "module:function" of a Dataset, returning variables by name; and of
        those that have a figure of their own the "module:function" of a sweep that keeps them, which returns it.
    wording, warnings, equations : str
        "module:function" of a problem and `look_up` that says in words what it is, of a problem and predictions that
        returns warnings, each with a remedy, and of a problem and a table of symbols that yields sections of equations;
        see `meanfield.explain` and `Problem.latex`.
    key_words : mapping of str to str
        Regular expressions of keys, and the words for them on axes of figures.
    laws : mapping of str to str
        "module:FAMILY" by `data.law`: parts with the family's name, and a class and methods of their own, whose
        variables and kinds the family declares, too; "" for a law that the family's own class knows.
    lacking : mapping of str to str
        Methods that other parts of the family have, and why this one has not, with what to use instead.
    toward_limit : str
        What brings runs of SGD closer to the limit, with its key, or the "module:function" of a problem for it.
    counted : mapping of str to str
        What coordinates count from 0, of dims that no variable is named after and whose name does not say it.
    trials : tuple of mapping of str to Any
        Values of keys of the example, such as more replicas, with which the contract holds methods against each other:
        any two in time agree in the first trial that can compare them, and differ where one learns twice as fast.
    first_look : mapping of str to Any
        Values of keys of the example with which `meanfield.quick` shows the family; the first trial without them.
    untold : mapping of (str, str) to str
        Pairs of methods, in their order, that no trial can compare, and why.
    cites : mapping of str to tuple of str
        What to cite, keys of `references.bib` or BibTeX entries, by which results rest on it: "" for all, or a key of
        the problem or of the provenance, with any value or with one, as in `model.rule=ica`; see `meanfield.cite`.
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
    leaves_out: str = ""
    start: str = ""
    measure: str = ""
    unordered: tuple[str, ...] = ()
    samples: str = ""
    noise_in_time: str = ""
    reductions: Mapping[str, str] = field(default_factory=dict)
    sweep_figures: Mapping[str, str] = field(default_factory=dict)
    wording: str = ""
    warnings: str = ""
    equations: str = ""
    key_words: Mapping[str, str] = field(default_factory=dict)
    laws: Mapping[str, str] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)
    toward_limit: str = "a larger N (particles.dimension)"
    counted: Mapping[str, str] = field(default_factory=dict)
    trials: tuple[Mapping[str, Any], ...] = ({},)
    first_look: Mapping[str, Any] = field(default_factory=dict)
    untold: Mapping[tuple[str, str], str] = field(default_factory=dict)
    cites: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Family, ...]:
        """The family itself, and its parts for problems with other laws of data."""
        return (self, *(resolve(address) for address in self.laws.values() if address))

    def part(self, problem: Mapping[str, Any]) -> Family:
        """Part of the family that a problem belongs to, by the law in its table `data`.

        Raises
        ------
        InputError
            If there is no part for that law.
        """
        if not self.laws or not isinstance(problem.get("data"), Mapping):
            return self
        law, known = problem["data"].get("law"), list(self.laws)
        if law is None:
            raise InputError(f"data.law: is missing; known: {', '.join(known)}")
        if law not in known:
            raise InputError(f"data.law = {law!r:.60}: unknown; {nearest(str(law), known)}")
        address = self.laws[law]
        return resolve(address) if address else self

    def advice(self, problem: Any) -> str:
        """Remedy that brings runs of SGD of a problem closer to the limit."""
        return self.toward_limit if " " in self.toward_limit else str(resolve(self.toward_limit)(problem))

    def words_of(self, key: str) -> str:
        """Words and symbol of a key of a problem, or the key itself."""
        return next((words for pattern, words in self.key_words.items() if re.fullmatch(pattern, key)), key)

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
        as_text(name, "method", f"give one of {', '.join(map(repr, sorted(self.methods)))}")
        if name in self.lacking:
            raise InputError(f"method '{name}': {self.lacking[name]}")
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
            if variable.index_of
            and all(sizes.get(dim, 1) == 1 for dim in variable.dims if dim != variable.index_of)
            and not any(dim in sizes for dim in variable.no_index_with)
        }

    @cached_property
    def compared(self) -> dict[str, Variable]:
        """Variables that `meanfield.compare` compares, which are all in time there."""
        return {name: variable.in_time for name, variable in self.variables.items() if variable.compared}

    @cached_property
    def particular_dims(self) -> frozenset[str]:
        """Dims that only some problems of the family have: the last dims of its variables, and those they need."""
        return frozenset(dim for variable in self.variables.values() for dim in (*variable.last_dims, *variable.only))

    def exists(self, variable: Variable, held: Container[Any]) -> bool:
        """Whether a variable exists in results of a problem that has these dims."""
        needed = {*variable.only, *(dim for dim in variable.dims if dim in self.particular_dims)}
        return all(dim in held for dim in needed) and not any(dim in held for dim in variable.unless)

    def compared_with(self, held: Container[Any]) -> dict[str, Variable]:
        """Compared variables that exist in results that have these dims."""
        known = {name: variable for name, variable in self.compared.items() if self.exists(variable, held)}
        return {name: variable for name, variable in known.items() if all(dim in held for dim in variable.dims)}

    @cached_property
    def all_variables(self) -> dict[str, Variable]:
        """Variables of all kinds of results, comparisons and sweeps included."""
        found = {"pair": PAIR, "status": STATUS} | JUDGEMENT | dict(self.variables)
        found |= FITTED if self.noise_in_time else {}
        for name, variable in self.compared.items():
            dims, what = ("pair", *variable.dims), variable.long_name.partition(" = ")[0]
            difference = Variable(dims, f"second minus first {what}, means over replicas", last_dims=variable.last_dims)
            found[f"{name}_difference"] = difference
            words = "standard error of that difference"
            found[f"{name}_standard_error"] = replace(difference, long_name=words, range=(0.0, inf))
            words = f"largest difference of {name} that chance allows, in standard errors"
            found[f"{name}_chance"] = Variable(("pair",), words, range=(0.0, inf))
        for name in self.judged:
            words = f"largest {name} that chance allows"
            found[f"{name}_chance"] = replace(self.variables[name], long_name=words, range=(0.0, inf), judged=False)
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
            ("pair",),
            (*coordinates, *names, *JUDGEMENT, *(f"{name}_chance" for name in (*self.compared, *self.judged))),
            made_by="compare",
            figure="meanfield.plotting.results:plot_agreement",
        )
        fits = {"fit": FIT} if self.noise_in_time else {}
        return dict(self.kinds) | fits | {"comparison": comparison, "sweep": SWEEP}
