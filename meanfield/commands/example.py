"""List problem files and sweep files to begin with, or print one.

meanfield example sparse_prior > P.toml
meanfield density P.toml -o density.nc
"""

from __future__ import annotations

import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from meanfield.cli import DONE
from meanfield.problems.examples import example_file, example_files, text_of


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="the example to print; all are listed without it")


def run(arguments: Namespace) -> int:
    """List the examples, or print one of them."""
    print("\n".join(_listed()) if arguments.name is None else text_of(example_file(arguments.name)), end="")
    return DONE


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
