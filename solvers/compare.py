"""Compare results of one problem: SGD in standard errors and as distributions, densities in L1.

Prints a table, writes a report and, with --figure, a picture, with --animate the density of the weights in motion over
the histograms of SGD at its snapshots. All files must come from the same problem; the methods' own settings may differ.
"""

from pathlib import Path

import xarray as xr
from matplotlib.animation import FuncAnimation

from meanfield import compare, load, save
from meanfield.cli import DONE, checked_outputs, parser, run
from meanfield.comparison import format_comparison
from meanfield.errors import InputError
from meanfield.plotting import animate_weights, plot_comparison
from meanfield.results.files import check_animation_path, save_animation, save_figure


def animate(results: list[xr.Dataset]) -> FuncAnimation:
    """The first density over the first run of SGD that has weights, if there is one."""
    densities = [result for result in results if result.attrs["method"] == "density"]
    if not densities:
        raise InputError("--animate shows a density, and no result is one; add the output of solve_density.py")
    return animate_weights(densities[0], next((result for result in results if "weights" in result), None))


def main() -> int:
    """Parse, compare, save."""
    arguments_of = parser(__doc__ or "")
    arguments_of.add_argument("results", nargs="+", type=Path, metavar="RUN.nc", help="two or more results")
    arguments_of.add_argument("-o", "--output", type=Path, required=True, metavar="REPORT.nc", help="report to write")
    arguments_of.add_argument("--figure", type=Path, metavar="F.png", help="figure to write; png, pdf or svg")
    arguments_of.add_argument("--animate", type=Path, metavar="F.gif", help="animation to write; gif, or mp4 by ffmpeg")
    arguments = arguments_of.parse_args()
    outputs = checked_outputs(arguments)
    if arguments.animate:
        check_animation_path(arguments.animate)
        outputs.append(arguments.animate)
    results = {path.stem: load(path) for path in arguments.results}
    animation = animate(list(results.values())) if arguments.animate else None
    report = compare(*results.values(), labels=list(results))
    save(report, arguments.output)
    print(format_comparison(report))
    if arguments.figure:
        save_figure(plot_comparison(results), arguments.figure)
    if animation is not None:
        save_animation(animation, arguments.animate)
    print("wrote " + " and ".join(map(str, outputs)))
    return DONE


if __name__ == "__main__":
    run(main)
