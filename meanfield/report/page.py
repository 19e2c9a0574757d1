"""Page of a report: results grouped by problem, each group with a comparison where there can be one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from meanfield.comparison import compare
from meanfield.comparison.inputs import different_origins, differing_keys, is_comparable
from meanfield.errors import InputError
from meanfield.explanation.explanation import Statement, in_words
from meanfield.problems.base import Problem
from meanfield.process.floating_point import own_errstate
from meanfield.process.progress import counted
from meanfield.report.content import Content, Table, content_of, tables_of_pairs
from meanfield.report.figures import Picture, picture_together, pictures_of
from meanfield.results.result import Result
from meanfield.results.schema import validate

_ILLEGAL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), "�")
"""Control characters, which are illegal in HTML."""


@dataclass(frozen=True)
class Run:
    """Result on a page."""

    label: str
    content: Content
    pictures: list[Picture]


@dataclass
class Section:
    """Section of a page: all results of one problem."""

    title: str
    statements: list[Statement]
    toml: str
    differences: list[str]
    runs: list[Run] = field(default_factory=list)
    comparisons: list[Table] = field(default_factory=list)
    together: Picture | None = None
    remark: str = ""
    origins: list[str] = field(default_factory=list)
    """Functions and files that results which are not compared do not have in common with the first one."""


@own_errstate()
def report(datasets: Mapping[str, xr.Dataset]) -> str:
    """Self-contained HTML page of results, as text.

    Parameters
    ----------
    datasets : mapping of str to xarray.Dataset
        Labels, such as names of files, and results of any methods. Results of the same problem, whatever the settings
        of the methods, share a section, and are compared there, with a verdict on each pair.

    Returns
    -------
    str
        HTML that needs no network, no script and no other file. Everything that comes from the results is shown as
        text; nothing that their problems name is opened or imported.

    Raises
    ------
    InputError
        If there is no result, one of them is none of ours, or its problem cannot be read.
    """
    if not datasets:
        raise InputError("0 results given, but a page needs one or more; add a result of a solver")
    groups: list[tuple[Problem, dict[str, Result]]] = []
    for label, dataset in datasets.items():
        result, problem = _checked(label, dataset)
        alike = (group for first, group in groups if type(first) is type(problem) and first.limit() == problem.limit())
        same = next(alike, None)
        if same is None:
            groups.append((problem, {label: result}))
        else:
            same[label] = result
    sections = [_section(problem, group, groups[0][0], len(datasets)) for problem, group in groups]
    page = _template().render(title=_page_title(sections), sections=sections)
    return page.translate(_ILLEGAL).encode(errors="replace").decode()


def _checked(label: str, dataset: xr.Dataset) -> tuple[Result, Problem]:
    try:
        result = Result.of(dataset)
        validate(result)
        return result, result.problem
    except InputError as error:
        raise InputError(f"{label}: {error}") from error


def _section(problem: Problem, group: dict[str, Result], first: Problem, share: int) -> Section:
    section = Section(
        problem.title or "Untitled problem",
        in_words(problem, look_up=False),
        str(next(iter(group.values())).dataset.attrs["problem"]),
        differing_keys(first.limit(), problem.limit()),
    )
    section.runs = [
        Run(label, content_of(r), pictures_of(r, share)) for label, r in counted([*group.items()], "report", "result")
    ]
    results = {label: r for label, r in group.items() if r.method != "comparison"}
    comparable = {label: r for label, r in results.items() if is_comparable(r) and not r.status.startswith("failed")}
    section.origins = _origins(results, comparable)
    if len(comparable) > 1:
        try:
            compared = compare(*(r.dataset for r in comparable.values()), labels=list(comparable))
        except InputError as error:
            section.remark = str(error)
            return section
        section.comparisons = list(tables_of_pairs(Result.of(compared, problem)))
        section.together = picture_together(comparable, share)
    return section


def _origins(group: Mapping[str, Result], compared: Mapping[str, Result]) -> list[str]:
    """Differences in origin from the first result of their problem, for pairs that are not compared."""
    if not group:
        return []
    (first, result), *others = group.items()
    found = [(label, different_origins(result, other, (first, label))) for label, other in others]
    return [f"{first} and {label}: {text}" for label, text in found if text and not {first, label} <= set(compared)]


def _page_title(sections: list[Section]) -> str:
    first = sections[0].title
    return first if len(sections) == 1 else f"{first}, and {len(sections) - 1} more"


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("meanfield.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("template.html")
