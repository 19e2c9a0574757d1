"""Put results on a page to move through: a slider over time, and sliders over the points of a sweep.

Results of one problem are compared at each time. The page needs no network and no other file.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from meanfield.cli import DONE
from meanfield.commands.outputs import loaded
from meanfield.process.start_up import start_up


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("results", nargs="+", type=Path, metavar="RUN.nc", help="results in time, or folders of sweeps")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="PAGE.html", help="HTML file to write")


def run(arguments: Namespace) -> int:
    """Load the results, and write the page."""
    with start_up():
        from meanfield.commands.outputs import check_outputs
        from meanfield.process.atomic_files import save_text
        from meanfield.report import explore
    paths = [path / "sweep.nc" if path.is_dir() else path for path in arguments.results]
    check_outputs(paths, page=arguments.output)
    results = loaded(paths)
    save_text(explore(results), arguments.output)
    print(f"wrote {arguments.output}")
    return DONE
