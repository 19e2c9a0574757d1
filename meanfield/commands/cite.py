"""Print what to cite for results, as BibTeX: papers behind their models, data and methods, software, and its version.

meanfield cite density.nc sgd.nc > references.bib
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from meanfield.cli import DONE
from meanfield.commands.outputs import loaded
from meanfield.process.start_up import start_up


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("results", nargs="+", type=Path, metavar="RUN.nc", help="one or more results")


def run(arguments: Namespace) -> int:
    """Load the results, and print the entries."""
    with start_up():
        from meanfield import cite
    print(cite(*loaded(arguments.results).values()), end="")
    return DONE
