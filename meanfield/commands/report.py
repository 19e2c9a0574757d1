"""Put results on one self-contained HTML page: status, key numbers with errors, conservation, figures, provenance.

Results of the same problem are compared, with a verdict on each pair; those of others have sections of their own. The
page needs no network and no other file, so that it can be mailed, printed and archived.
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
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="PAGE.html", help="HTML file to write")


def run(arguments: Namespace) -> int:
    """Load the results, and write the page."""
    with start_up():
        from meanfield.commands.outputs import check_outputs
        from meanfield.process.atomic_files import save_text
        from meanfield.report import report
    check_outputs(arguments.results, page=arguments.output)
    results = loaded(arguments.results)
    save_text(report(results), arguments.output)
    print(f"wrote {arguments.output}")
    return DONE
