"""Put results on one self-contained HTML page: status, key numbers with errors, conservation, figures, provenance.

Results of the same problem are compared in standard errors; those of others have sections of their own. The page needs
no network and no other file, so that it can be mailed, printed and archived.
"""

from pathlib import Path

from meanfield import load
from meanfield.cli import DONE, parser, run
from meanfield.report import report
from meanfield.results.files import check_writable, save_text


def main() -> int:
    """Parse, load, write the page."""
    arguments_of = parser(__doc__ or "")
    arguments_of.add_argument("results", nargs="+", type=Path, metavar="RUN.nc", help="one or more results")
    arguments_of.add_argument(
        "-o", "--output", type=Path, required=True, metavar="PAGE.html", help="HTML file to write"
    )
    arguments = arguments_of.parse_args()
    check_writable(arguments.output)
    save_text(report(_labelled(arguments.results)), arguments.output)
    print(f"wrote {arguments.output}")
    return DONE


def _labelled(paths: list[Path]) -> dict:
    """Results by the names of their files, with their folders where names repeat."""
    stems = [path.stem for path in paths]
    return {path.stem if stems.count(path.stem) == 1 else str(path): load(path) for path in paths}


if __name__ == "__main__":
    run(main)
