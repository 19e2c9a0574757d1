"""Studies that have a page of their own: numbers, figure, and page, written from what a study measured and judged."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from meanfield.cli import DONE, FAILED, at_least, parser
from meanfield.results.figure_files import save_figure
from meanfield.results.files import save
from meanfield.results.provenance import provenance
from validation import OUTPUT
from validation.pages import markdown_table, verdict
from validation.study import Statement


@dataclass(frozen=True)
class Publication:
    """Pages and figures that are written of a study.

    Parameters
    ----------
    script : Path
        The study, beside which its figure goes.
    title : str
        Of the numbers.
    draw : callable
        Numbers to the figure.
    table : callable
        Numbers to what is printed.
    page : callable
        Numbers and statements to the page.
    """

    script: Path
    title: str
    draw: Callable[[xr.Dataset], Figure]
    table: Callable[[xr.Dataset], str]
    page: Callable[[xr.Dataset, list[Statement]], str]

    @property
    def numbers(self) -> Path:
        """File of the numbers, in a folder named like that of the script."""
        return OUTPUT / self.script.parent.name / f"{self.script.stem}.nc"

    def write(self, data: xr.Dataset, statements: list[Statement], began: float, page: Path | None) -> int:
        """Write and print everything, and return the exit code; `began` is the `time.perf_counter` of the start."""
        data.attrs |= {
            "Conventions": "CF-1.11",
            "title": self.title,
            "statements": json.dumps([asdict(statement) for statement in statements]),
            "provenance": provenance(time.perf_counter() - began),
        }
        self.numbers.parent.mkdir(parents=True, exist_ok=True)
        save(data, self.numbers)
        save_figure(self.draw(data), self.script.with_suffix(".png"))
        print(self.table(data), *statements, sep="\n")
        if page:
            page.write_text(self.page(data, statements), encoding="utf-8")
        return DONE if all(statement.holds for statement in statements) else FAILED

    def measured(
        self,
        measure: Callable[[int, int, int], xr.Dataset],
        judge: Callable[[xr.Dataset], list[Statement]],
        dimension: int,
    ) -> int:
        """Main function of a study that measures runs of SGD: dimension N, replicas and seed come from its command."""
        command = parser(_docstring(self.script))
        command.add_argument("--dimension", type=at_least(100, "N"), default=dimension, metavar="N")
        command.add_argument("--replicas", type=at_least(2, "replicas"), default=16, metavar="RUNS")
        command.add_argument("--seed", type=at_least(0, "a seed"), default=0)
        command.add_argument("--page", type=Path, metavar="OUT.md", help="where the page of the site goes")
        arguments = command.parse_args()
        began = time.perf_counter()
        data = measure(arguments.dimension, arguments.replicas, arguments.seed)
        return self.write(data, judge(data), began, arguments.page)


def claim_of(script: Path) -> str:
    """The claim of a study: the second paragraph of its docstring."""
    return _docstring(script).split("\n\n")[1]


def _docstring(script: Path) -> str:
    return ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""


def verdicts(statements: Sequence[Statement]) -> str:
    """Table of statements for a page."""
    rows = [(s.text, verdict(s.source, s.holds), s.number) for s in statements]
    return markdown_table(("statement", "verdict", "number"), rows)
