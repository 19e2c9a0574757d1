"""Compare results of one problem: SGD in standard errors and as distributions, densities in L1.

Prints a table, writes a report and, with --figure, a picture. All files must come from the same problem; the
methods' own settings may differ.
"""

from pathlib import Path

from meanfield import compare, load, save
from meanfield.analysis import format_comparison
from meanfield.cli import DONE, checked_outputs, parser, run
from meanfield.plotting import plot_comparison
from meanfield.storage import save_figure


def main() -> int:
    """Parse, compare, save."""
    arguments_of = parser(__doc__ or "")
    arguments_of.add_argument("results", nargs="+", type=Path, metavar="RUN.nc", help="two or more results")
    arguments_of.add_argument("-o", "--output", type=Path, required=True, metavar="REPORT.nc", help="report to write")
    arguments_of.add_argument("--figure", type=Path, metavar="F.png", help="figure to write; png, pdf or svg")
    arguments = arguments_of.parse_args()
    outputs = checked_outputs(arguments)
    results = {path.stem: load(path) for path in arguments.results}
    report = compare(*results.values(), labels=list(results))
    save(report, arguments.output)
    print(format_comparison(report))
    if arguments.figure:
        save_figure(plot_comparison(results), arguments.figure)
    print("wrote " + " and ".join(map(str, outputs)))
    return DONE


if __name__ == "__main__":
    run(main)
