"""Page of a report: results and their figures by problem, each group with a comparison where there can be one."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from meanfield.comparison import compare
from meanfield.comparison.inputs import different_origins, differing_keys, is_comparable
from meanfield.errors import InputError
from meanfield.explanation.explanation import Statement, in_words
from meanfield.plotting import plot_comparison, plot_result
from meanfield.plotting.legends import place_legend
from meanfield.plotting.style import ANY_TIME, curve_style
from meanfield.problems.base import Problem
from meanfield.process.floating_point import own_errstate
from meanfield.process.progress import counted
from meanfield.report.content import Content, Table, content_of, tables_of_pairs
from meanfield.report.motion import motion_of
from meanfield.results.collection import by_label
from meanfield.results.figure_files import laid_out
from meanfield.results.result import Result
from meanfield.results.schema import validate

if TYPE_CHECKING:
    from meanfield.report.widget import Widget

RESOLUTIONS = (144, 100, 72, 50, 36)
"""Resolutions of a bitmap in dots per inch, of which the first that is small enough is taken."""

MOST_BYTES = 5_000_000
"""Largest size of a page."""

STYLE: Any = {"font.size": 10.5, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "meanfield"}


@dataclass(frozen=True)
class Picture:
    """Figure on a page.

    Parameters
    ----------
    source : str
        A data URI.
    description : str
        Text that stands for the figure, for people who do not see it.
    """

    source: str
    description: str


def pictures_of(result: Result, share: int = 1) -> list[Picture]:
    """Pictures of one result.

    Parameters
    ----------
    share : int
        Number of results that share the page.
    """
    # A title is not ours, and what matplotlib takes for mathematics would be an error; the page shows it.
    untitled = result.part(result.dataset.assign_attrs(title=""))
    found = []
    with mpl.rc_context(STYLE):
        for make, description in ((_overview, "what the result holds"), (_conservation, "what should be constant")):
            figure = make(untitled)
            if figure is not None:
                found.append(Picture(_data(figure, share), f"{result.method}: {description}"))
    return found


def picture_together(results: Mapping[str, Result], share: int) -> Picture:
    """Picture of all results of one problem in one figure."""
    shown = {label.replace("$", r"\$"): result.dataset.assign_attrs(title="") for label, result in results.items()}
    with mpl.rc_context(STYLE):
        return Picture(_data(plot_comparison(shown), share), "all results of this problem together")


def _data(figure: Figure, share: int) -> str:
    """Data of a figure: a vector graphic if it is small, else a bitmap."""
    # bytes of one figure, and its share of the bytes of all figures of a page
    limit = min(300_000, 2_400_000 // max(2 * share + 1, 1))
    with laid_out(figure, "svg", RESOLUTIONS[0]):
        vector = _rendered(figure, "svg")
        if len(vector) <= limit:
            return "data:image/svg+xml;base64," + base64.b64encode(vector).decode()
        for resolution in RESOLUTIONS:
            bitmap = _rendered(figure, "png", resolution)
            if len(bitmap) <= limit:
                break
    return "data:image/png;base64," + base64.b64encode(bitmap).decode()


def _rendered(figure: Figure, kind: str, resolution: int = 100) -> bytes:
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {}
    figure.savefig(buffer, format=kind, dpi=resolution, metadata=metadata)
    return buffer.getvalue()


def _overview(result: Result) -> Figure | None:
    """Figure of the method, as far as the run came; none of one that ended where it began."""
    dataset = result.dataset
    if "time" in dataset.dims and result.status != "complete":
        dataset = dataset.isel(time=slice(_reached(result)))
        if dataset.sizes["time"] < 2:
            return None
    if 0 in dataset.sizes.values():
        return None
    try:
        return plot_result(dataset)
    except InputError:  # sweeps over many axes
        return None


def _reached(result: Result) -> int:
    """Number of output times that the run has reached."""
    dataset = result.dataset
    name = next(word for name in result.family.compared for word in (f"{name}_mean", name) if word in dataset)
    values = dataset[name].transpose("time", ...).values
    return int(np.isfinite(values.reshape(len(values), -1)).any(axis=1).sum())


def _conservation(result: Result) -> Figure | None:
    """Figure of the deviations of mass and norm in time, on a logarithmic scale."""
    dataset = result.dataset
    if "norm" not in dataset or not np.isfinite(dataset["norm"].values).any():
        return None
    figure = Figure(figsize=(10, 2.8), layout="constrained")
    axes = figure.subplots()
    for number, (name, label) in enumerate((("mass", "|probability $-$ 1|"), ("norm", "$|E[w^2] - 1|$"))):
        deviation = np.maximum(np.abs(dataset[name].values - 1.0), np.finfo(float).eps)
        axes.semilogy(dataset["time"], deviation, label=label, **curve_style(number))
    axes.set(xlabel=ANY_TIME, ylabel="deviation")
    place_legend(axes)
    return figure


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
    motion: dict[str, Any] | None = None
    remark: str = ""
    equations: str | None = None
    origins: list[str] = field(default_factory=list)
    """Functions and files that results which are not compared do not have in common with the first one."""


@own_errstate()
def report(datasets: Mapping[str, xr.Dataset] | xr.DataTree) -> Page:
    """Self-contained HTML page of results, as text that notebooks show.

    Parameters
    ----------
    datasets : mapping of str to xarray.Dataset, or DataTree
        Labels, such as names of files, and results of any methods, or what `meanfield.collect` returns of them. Results
        of the same problem, whatever the settings of the methods, share a section, and are compared there, with a
        verdict on each pair.

    Returns
    -------
    Page
        A str, HTML that needs no network and no other file, with figures for print and, where scripts run, a panel to
        move through results in time. Everything that comes from the results is shown as text; nothing that their
        problems name is opened or imported.

    Raises
    ------
    InputError
        If there is no result, one of them is none of ours, its problem cannot be read, or the page would be too large.
    """
    if not datasets:
        raise InputError("0 results given, but a page needs one or more; add a result of a solver")
    single = by_label(datasets)
    groups = grouped(single)
    names = names_of([problem for problem, _ in groups])
    sections = [
        _section(name, problem, group, groups[0][0], len(single))
        for name, (problem, group) in zip(names, groups, strict=True)
    ]
    title = sections[0].title + (f", and {len(sections) - 1} more" if len(sections) > 1 else "")
    motions = [section.motion for section in sections if section.motion is not None]
    return rendered("template.html", title=title, sections=sections, motions=motions)


class Page(str):
    """Text of a page in HTML, which notebooks show in a frame of its own, with its script and nobody else's style."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        frame = "width: 100%; height: 44rem; border: 0"
        return f'<iframe srcdoc="{escape(self)}" sandbox="allow-scripts" style="{frame}"></iframe>'

    def widget(self) -> Widget:
        """Widget of notebooks that shows the page, and whose `time` and `parameters` Python reads and sets.

        Raises
        ------
        InputError
            If anywidget is not installed.
        """
        if find_spec("anywidget") is None:
            raise InputError("widgets are those of anywidget; pip install 'meanfield-dynamics[widget]'")
        from meanfield.report.widget import Widget

        return Widget(page=str(self))


def rendered(template: str, **values: Any) -> Page:
    """Page from a template of this room, or an `InputError` if it is too large to open well."""
    page = _templates().get_template(template).render(**values).translate(_ILLEGAL).encode(errors="replace")
    if len(page) > MOST_BYTES:
        raise InputError(
            f"the page would have {len(page) / 1e6:.1f} MB, and at most {MOST_BYTES / 1e6:g} open well; give fewer "
            "results, or those of problems with a smaller time.outputs, or a sweep of fewer points"
        )
    return Page(page.decode())


def grouped(datasets: Mapping[str, xr.Dataset]) -> list[tuple[Problem, dict[str, Result]]]:
    """Results by problem, whatever the settings of the methods, each group with the problem of its first one.

    Raises
    ------
    InputError
        If one of them is none of ours, or its problem cannot be read.
    """
    groups: list[tuple[Problem, dict[str, Result]]] = []
    for label, dataset in datasets.items():
        result, problem = _checked(label, dataset)
        alike = (group for first, group in groups if type(first) is type(problem) and first.limit() == problem.limit())
        same = next(alike, None)
        if same is None:
            groups.append((problem, {label: result}))
        else:
            same[label] = result
    return groups


def names_of(problems: Sequence[Problem]) -> list[str]:
    """Titles of problems; those that have none or one in common are told apart by the first keys that differ."""
    names = []
    for problem in problems:
        title = problem.title or "Untitled problem"
        other = next((each for each in problems if each is not problem and each.title == problem.title), problem)
        # Largest number of keys in the name of a problem.
        differences = differing_keys(problem.limit(), other.limit())[:2]
        names.append(", ".join([title, *(each.partition(" against ")[0] for each in differences)]))
    return names


def _checked(label: str, dataset: xr.Dataset) -> tuple[Result, Problem]:
    try:
        result = Result.of(dataset)
        validate(result)
        return result, result.problem
    except InputError as error:
        raise InputError(f"{label}: {error}") from error


def _section(name: str, problem: Problem, group: dict[str, Result], first: Problem, share: int) -> Section:
    section = Section(
        name,
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
    compared = None
    if len(comparable) > 1:
        try:
            compared = compare(*(r.dataset for r in comparable.values()), labels=list(comparable))
        except InputError as error:
            section.remark = str(error)
        else:
            section.comparisons = list(tables_of_pairs(Result.of(compared, problem)))
            section.together = picture_together(comparable, share)
    section.equations = problem._repr_html_()
    section.motion = motion_of({k: r for k, r in results.items() if not r.status.startswith("failed")}, compared)
    return section


def _origins(group: Mapping[str, Result], compared: Mapping[str, Result]) -> list[str]:
    """Differences in origin from the first result of their problem, for pairs that are not compared."""
    if not group:
        return []
    (first, result), *others = group.items()
    found = [(label, different_origins(result, other, (first, label))) for label, other in others]
    return [f"{first} and {label}: {text}" for label, text in found if text and not {first, label} <= set(compared)]


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("meanfield.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
