"""Tables and sections of the pages that studies write."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import xarray as xr

from meanfield.cli import DONE
from validation import ROOT


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def sections(page: Path) -> dict[str, str]:
    """Sections of a page by their titles."""
    known = re.split(r"\n+(?=## )", page.read_text(encoding="utf-8").strip())[1:]
    return {text.split("\n")[0].removeprefix("## "): text for text in known}


def write_page(
    page: Path, head: str, files: Iterable[Path], scripts: Path, table_page: Callable[[xr.Dataset], str] | None = None
) -> int:
    """Write a page of studies from their files, in their order.

    Parameters
    ----------
    head : str
        Title and introduction.
    files, scripts
        See `study_section`.
    table_page : callable, optional
        Markdown of the numbers of a study of a table, whose file is called so, before its statements.
    """

    def note(file: Path) -> str:
        return table_page(xr.load_dataset(file)) if table_page and file.stem.startswith("table_") else ""

    page.write_text("\n".join([head, *(study_section(file, scripts, note(file)) for file in files)]))
    print(f"wrote {page.relative_to(ROOT)}")
    return DONE


def update_page(page: Path, head: str, numbers: Path, scripts: Path) -> int:
    """Write a page of studies from the files of a folder, in alphabetical order; sections of others stay as they are.

    Parameters
    ----------
    head : str
        Title and introduction.
    numbers, scripts : Path
        Folders; see `study_section`.
    """
    written = [study_section(file, scripts).rstrip() for file in in_order(numbers)]
    before = sections(page) if page.exists() else {}
    found = before | {text.partition("\n")[0].removeprefix("## "): text for text in written}
    page.write_text("\n\n".join([head.rstrip(), *(found[title] for title in sorted(found))]) + "\n")
    print(f"wrote {page.relative_to(ROOT)}")
    return DONE


def study_section(numbers: Path, scripts: Path, note: str = "") -> str:
    """A study on a page: its claim, its figure, and what it decides.

    Parameters
    ----------
    numbers : Path
        File that the study wrote.
    scripts : Path
        Folder of the study's script, which has its name, and of the figure beside it.
    note : str
        Markdown between the figure and the table of statements.
    """
    name = numbers.stem
    claim = ast.get_docstring(ast.parse((scripts / f"{name}.py").read_text())) or ""
    with xr.open_dataset(numbers) as dataset:
        statements = json.loads(dataset.attrs["statements"])
    rows = [(s["text"], s["source"], verdict(s["source"], s["holds"]), s["number"]) for s in statements]
    table = markdown_table(("statement", "made in", "verdict", "number"), rows)
    title = re.sub(r" [a-z](?=\d)", lambda found: found[0].upper(), name.replace("_", " ").capitalize())
    image = f"![{title}](../{scripts.relative_to(ROOT).as_posix()}/{name}.png)"
    return "\n\n".join([f"## {title}", claim, image, *([note] if note else []), f"{table}\n"])


def verdict(source: str, holds: bool | None) -> str:
    """Verdict in a word: the paper is confirmed or contradicted, the software's own statements hold or fail."""
    if holds is None:
        return "undecided"
    if source.startswith("paper"):
        return "confirmed" if holds else "**contradicted**"
    return "holds" if holds else "**fails**"


def in_order(numbers: Path) -> list[Path]:
    """Files of studies in a folder: the paper's figures and tables in its order, then our own studies."""
    return sorted(numbers.glob("*.nc"), key=lambda path: (_kind(path.stem), _number(path.stem)))


def _kind(name: str) -> int:
    """Figures come first, then those of a supplement, then tables."""
    places = {"figure_s": 1, "figure_": 0, "table_": 2}
    return next((place for kind, place in places.items() if name.startswith(kind)), len(places))


def _number(name: str) -> tuple[int, str]:
    """Figure 10a comes after figure 9."""
    digits = "".join(filter(str.isdigit, name))
    return int(digits or 0), name
