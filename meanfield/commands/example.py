"""List problem files and sweep files to begin with, or print one.

meanfield example sparse_prior > P.toml
meanfield density P.toml -o density.nc
"""

from __future__ import annotations

import re
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from meanfield.cli import DONE
from meanfield.errors import InputError

FAMILIES = Path(__file__).parents[1] / "families"
"""Folder of the families, each of which has its examples in `examples/problems` and `examples/sweeps`."""

RELATIVE = re.compile(r'"(\.\./[^"]+)"')
"""Pattern of the names of other files in an example, which are relative to its own folder."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="the example to print; all are listed without it")


def run(arguments: Namespace) -> int:
    """List the examples, or print one of them."""
    print("\n".join(_listed()) if arguments.name is None else text_of(_found(arguments.name)), end="")
    return DONE


def example_files() -> dict[str, Path]:
    """Files of all examples by name."""
    return {path.stem: path for path in sorted(FAMILIES.glob("*/examples/*/*.toml"))}


def text_of(path: Path) -> str:
    """Text of an example for use anywhere on this machine: other files are named by their absolute paths."""

    def absolute(found: re.Match[str]) -> str:
        return f'"{(path.parent / found[1]).resolve().as_posix()}"'

    return RELATIVE.sub(absolute, path.read_text(encoding="utf-8"))


def _found(name: str) -> Path:
    files = example_files()
    if name not in files:
        from meanfield.ingredients.nearest import nearest

        raise InputError(f"unknown example '{name}'; {nearest(name, files)}; meanfield example lists all")
    return files[name]


def _listed() -> Iterator[str]:
    """Lines that list all examples: for each family a heading for its problems and one for its sweeps."""
    files = example_files()
    width = max(map(len, files))
    for folder in dict.fromkeys(path.parent for path in files.values()):
        yield f"{folder.name} of the family {folder.parents[1].name}:"
        for name, path in files.items():
            if path.parent == folder:
                title = tomllib.loads(path.read_text(encoding="utf-8"))["title"]
                yield f"  {name:{width}}  {title}"
        yield ""
