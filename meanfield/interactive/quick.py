"""One line from a name, a rule or a problem to a picture: the limit and SGD, compared, judged and drawn."""

from __future__ import annotations

import base64
import inspect
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from meanfield.arguments import as_path, wrong
from meanfield.comparison import compare, format_comparison
from meanfield.errors import InputError
from meanfield.ingredients.nearest import nearest
from meanfield.methods import simulate_sgd, solve
from meanfield.plotting import plot_comparison
from meanfield.problems.base import Problem
from meanfield.problems.examples import example_files
from meanfield.problems.file import load_problem, problem_from
from meanfield.problems.known_families import DEFAULT, family_names, family_of, find_family
from meanfield.problems.problem_keys import held_by, settable_keys, with_values
from meanfield.process.atomic_files import save_text
from meanfield.process.start_up import say
from meanfield.report import report
from meanfield.results.collection import by_label, collect
from meanfield.results.figure_files import save_figure
from meanfield.results.files import ENDING, save

LIMITS = ("order_parameters", "density", "population")
"""Methods that predict SGD, the quickest one first; where weights are kept, the density comes first."""

PATIENCE = 2.0
"""Seconds after which a step says that it takes longer."""

RULE_PROBLEM: Mapping[str, Any] = {
    "family": "update_rule",
    "features": [{"initial_overlap": 0.2}],
    "time": {"stop": 4.0, "outputs": 25},
    "particles": {"dimension": 1000, "replicas": 16},
}
"""Problem of a rule of one's own, as far as it is not said."""

WANTED = (
    "give a function of a step, a meanfield.Rule, a problem, or the name of a family, of an example of `meanfield "
    "example` or of a problem file"
)


@dataclass(frozen=True, repr=False)
class Quick:
    """Limit and SGD of a problem, with their verdict: what `meanfield.quick` returns.

    Parameters
    ----------
    problem : Problem
    results : xarray.DataTree
        Both results, as `meanfield.collect` returns them.
    comparison : xarray.Dataset
        What `meanfield.compare` returns of them.
    figure : Figure
        Both in one picture. A notebook shows it below the verdict.
    """

    problem: Problem
    results: xr.DataTree
    comparison: xr.Dataset
    figure: Figure

    @property
    def verdict(self) -> str:
        """AGREES, DIFFERS or CANNOT TELL."""
        return str(self.comparison.attrs["verdict"])

    def save(self, path: str | Path) -> None:
        """Write the picture, both results (.nc), or a page with everything (.html), by the ending of the path."""
        path = as_path(path, "path", "give the path of a file, such as 'first.png', 'first.nc' or 'first.html'")
        if path.suffix == ENDING:
            save(self.results, path)
        elif path.suffix == ".html":
            save_text(report(self.results), path)
        else:
            save_figure(self.figure, path)

    def __repr__(self) -> str:
        title = str(self.comparison.attrs["title"])
        return f"{title}\n{format_comparison(self.comparison)}\n.save('first.png') draws it, see also .results"

    def _repr_html_(self) -> str:
        bitmap = io.BytesIO()
        self.figure.savefig(bitmap, format="png", dpi=100)
        source = base64.b64encode(bitmap.getvalue()).decode()
        verdict = self.comparison.meanfield._repr_html_()
        return f'<img alt="limit and SGD" src="data:image/png;base64,{source}"/>{verdict}'


def quick(what: Any = DEFAULT, /, **values: Any) -> Quick:
    """Solve the limit and SGD of a problem, compare both, and draw them: one line to a picture with a verdict.

    Parameters
    ----------
    what : str, Path, callable, Rule or Problem
        Name of a family, of an example that `meanfield example` lists, or of a problem file; a function of a step, or a
        `meanfield.Rule`; or a problem.
    **values
        Values of keys, by their last word, such as `strength=2.0`, or in full, `**{"prior.strength": 2.0}`. Those that
        have the name of an argument of a rule are its parameters.

    Returns
    -------
    Quick
        With `figure`, `results`, `comparison` and `verdict`. Notebooks show it; `save("first.png")` writes the figure.

    Raises
    ------
    InputError
        If there is no such name or key, several keys end in one word, or a method refuses the problem.

    Notes
    -----
    Problems of families are small, so that they take seconds; those of examples and files are solved as they are. The
    first run of a method compiles it, which takes a minute or two, and stays on disk.

    Examples
    --------
    >>> import numpy as np
    >>> import meanfield
    >>> def perceptron(s, y, rate):
    ...     return rate * np.sign(y) * (s * y < 0)
    >>> meanfield.quick(meanfield.Rule(perceptron, kinks=("y", "s")), rate=0.7).verdict
    'AGREES'
    """
    problem = _problem_of(what, values)
    with _said("solves the limit"):
        limit = _limit_of(problem)
    with _said("simulates SGD"):
        sgd = simulate_sgd(problem)
    with _said("compares and draws"):
        results = collect(limit, sgd, labels=[limit.attrs["method"], "SGD"])
        comparison = compare(results)
        drawn = {label.replace("_", " "): each for label, each in by_label(results).items()}
        return Quick(problem, results, comparison, plot_comparison(drawn, comparison))


def _problem_of(what: Any, values: dict[str, Any]) -> Problem:
    """Problem with the values of keys."""
    if isinstance(what, Problem):
        problem = what
    elif isinstance(what, Path) or (isinstance(what, str) and what.endswith(".toml")):
        problem = load_problem(what)
    elif isinstance(what, str):
        problem = _named(what)
    elif callable(what) or hasattr(what, "functions"):
        problem, values = _problem_of_rule(what, values)
    else:
        raise wrong("what", what, WANTED)
    return with_values(problem, {_whole_key(problem, key): value for key, value in values.items()})


def _named(name: str) -> Problem:
    """Problem of a family in a small size, or an example."""
    if name in family_names():
        family = find_family(name)
        return with_values(load_problem(family.example_path), family.first_look or family.trials[0])
    examples = {name: path for name, path in example_files().items() if path.parent.name == "problems"}
    if name not in examples:
        raise InputError(f"what = '{name:.60}': {nearest(name, [*family_names(), *examples])}; {WANTED}")
    return load_problem(examples[name])


def _problem_of_rule(rule: Any, values: Mapping[str, Any]) -> tuple[Problem, dict[str, Any]]:
    """Problem of a rule with its parameters and whole tables, and the values that are left."""
    functions = rule.functions.values() if hasattr(rule, "functions") else [rule]
    read = {name for each in filter(callable, functions) for name in inspect.signature(each).parameters}
    parameters = {name: value for name, value in values.items() if name in read}
    tables = {name: value for name, value in values.items() if isinstance(value, dict | list) and name not in read}
    name = getattr(getattr(rule, "step", rule), "__name__", "Rule")
    data = {**RULE_PROBLEM, "title": name, "model": {"rule": rule, "rule_parameters": parameters}, **tables}
    return problem_from(data), {name: value for name, value in values.items() if name not in {*parameters, *tables}}


def _whole_key(problem: Problem, word: str) -> str:
    """Key that a word is, or that ends in it."""
    keys = settable_keys(problem)
    ending = [key for key in keys if key.endswith(f".{word}")]
    if word in keys or word in type(problem).model_fields or not ending:
        return word
    if len(ending) > 1:
        full = f"give one in full, **{{'{ending[0]}': ...}}"
        raise InputError(f"{word}: {len(ending)} keys end in this word ({', '.join(ending[:6])}); {full}")
    return ending[0]


def _limit_of(problem: Problem) -> xr.Dataset:
    """Result of the first method of the family that predicts SGD of the problem."""
    keeps_weights = held_by(problem, "particles.snapshots") is not None
    methods = sorted(LIMITS, key=lambda name: keeps_weights and name != "density")
    reasons = []
    for method in (name for name in methods if name in family_of(problem).methods):
        try:
            return solve(problem, method)
        except InputError as error:
            reasons.append(f"{method}: {error}")
    raise InputError("\n".join(["no method predicts SGD of this problem", *reasons]))


@contextmanager
def _said(what: str) -> Iterator[None]:
    """Context of a step that says what it does if it takes long."""
    text = f"meanfield {what} ... (the first run of a method compiles it, which takes a minute)"
    timer = Timer(PATIENCE, say, [text])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
