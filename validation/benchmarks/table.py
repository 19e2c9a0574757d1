"""Tables of measured numbers of all benchmarks, each beside a reference, in print and in a file.

A benchmark is a module with `tables`, a generator of them. `python -m validation benchmarks.NAME` prints its tables and
writes them to data/runs/benchmarks; `make bench` runs all, and page.py makes one page of them.
"""

from __future__ import annotations

import json
import math
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

from meanfield.cli import DONE, run
from meanfield.results.provenance import provenance
from validation import OUTPUT
from validation.pages import markdown_table

NUMBERS = OUTPUT / "benchmarks"
HEADER = ("what", "measured", "held against", "ratio", "required", "note")


def digits(number: float) -> str:
    """Three of them, and all before the decimal point; words where there is no number."""
    if math.isnan(number):
        return "not measured"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


@dataclass(frozen=True)
class Row:
    """A number, and what it is held against.

    Parameters
    ----------
    what : str
    value : float
        NaN where nothing could be measured.
    unit : str
    against : str
        A limit of the machine, other software, or the same with another setting.
    limit : float, optional
        That number, in the same unit; NaN where it could not be measured.
    required : str
        What the value or the ratio has to be, where anything has to be.
    note : str
    """

    what: str
    value: float
    unit: str
    against: str = ""
    limit: float | None = None
    required: str = ""
    note: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """As in `HEADER`."""
        held = ratio = ""
        if self.limit is not None:
            held = f"{self.against}: {digits(self.limit)}"
            ratio = digits(self.value / self.limit) if self.limit and math.isfinite(self.value / self.limit) else ""
        measured = digits(self.value) if math.isnan(self.value) else f"{digits(self.value)} {self.unit}"
        return self.what, measured, held, ratio, self.required, self.note


@dataclass(frozen=True)
class Table:
    """Rows that were measured in one way.

    Parameters
    ----------
    title : str
    how : str
        Clock and cores, and what is compared; may be empty.
    rows : tuple of Row
    figure : str
        Path of a figure of them, from the folder of the page.
    """

    title: str
    how: str
    rows: tuple[Row, ...]
    figure: str = ""

    @property
    def columns(self) -> list[tuple[str, ...]]:
        """Header and rows, without columns beside the measured numbers in which there is nothing."""
        lines = [HEADER, *(row.cells for row in self.rows)]
        used = [k for k in range(len(HEADER)) if k < 2 or any(line[k] for line in lines[1:])]
        return [tuple(line[k] for k in used) for line in lines]

    def __str__(self) -> str:
        lines = self.columns
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([f"\n{self.title} ({self.how})" if self.how else f"\n{self.title}", *text])

    def markdown(self) -> str:
        """As a section of a page."""
        head, *rows = self.columns
        how = f"{self.how[:1].upper()}{self.how[1:]}." if self.how else ""
        figure = f"![{self.title}]({self.figure})" if self.figure else ""
        return "\n\n".join(filter(None, [f"### {self.title}", how, markdown_table(head, rows), figure]))


def run_benchmark(module: ModuleType, arguments: Sequence[str]) -> None:
    """Measure, print and save the `tables` of a module; what `python -m validation benchmarks.NAME` does."""
    words = f"python -m {module.__name__.replace('.', ' ', 1)}"
    command = ArgumentParser(words, description=module.__doc__, formatter_class=RawDescriptionHelpFormatter)
    command.parse_args(arguments)
    run(lambda: _run(module.tables, Path(str(module.__file__)).stem, str(module.__doc__)))


def _run(tables: Callable[[], Iterable[Table]], name: str, description: str) -> int:
    started, done = time.perf_counter(), []
    for table in tables():
        print(table, flush=True)
        done.append(asdict(table))
    seconds = time.perf_counter() - started
    print(f"\n{name}: all this in {seconds:.0f} s", flush=True)
    NUMBERS.mkdir(parents=True, exist_ok=True)
    found = {"about": description, "tables": done, "provenance": json.loads(provenance(seconds))}
    (NUMBERS / f"{name}.json").write_text(json.dumps(found, indent=1))
    return DONE


def saved_tables(path: Path) -> tuple[str, list[Table]]:
    """Title of a benchmark, and its tables, from the file that it wrote."""
    found = json.loads(path.read_text())
    rows = [tuple(Row(**row) for row in table["rows"]) for table in found["tables"]]
    return found["about"], [
        Table(table["title"], table["how"], r, table["figure"]) for table, r in zip(found["tables"], rows, strict=True)
    ]
