"""Compare results of one problem, pair by pair: they agree, they differ, or they cannot tell.

Prints the verdicts and the largest differences, writes a report and, with --figure, a picture, with --animate the
density of the weights in motion over the histograms of SGD at its snapshots. All files must come from the same problem;
the methods' own settings may differ. Of true pairs one in twenty differs by chance.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.cli import FAILED
from meanfield.commands.outputs import check_outputs, loaded, write_figures
from meanfield.errors import InputError
from meanfield.process.start_up import start_up

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.animation import FuncAnimation


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("results", nargs="+", type=Path, metavar="RUN.nc", help="two or more results")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="REPORT.nc", help="report to write")
    parser.add_argument("--figure", type=Path, metavar="F.png", help="figure to write; png, pdf or svg")
    parser.add_argument("--animate", type=Path, metavar="F.gif", help="animation to write; gif, or mp4 by ffmpeg")
    parser.add_argument("--strict", action="store_true", help="exit with code 1 if results differ")


def run(arguments: Namespace) -> int:
    """Compare the results, save the comparison, and draw it."""
    with start_up():
        from meanfield import compare, save
        from meanfield.comparison import format_comparison
        from meanfield.plotting import plot_comparison
        from meanfield.problems.variable import DIFFERS
        from meanfield.results.figure_files import save_animation, save_figure
    check_outputs(arguments.results, [arguments.output], arguments.figure, arguments.animate)
    results = loaded(arguments.results)
    animation = _animation(results.values()) if arguments.animate else None  # refused before anything is compared
    report = compare(*results.values(), labels=list(results))
    save(report, arguments.output)
    figures = {arguments.figure: lambda path: save_figure(plot_comparison(results, report), path)}
    if animation is not None:
        figures[arguments.animate] = partial(save_animation, animation)
    code, written = write_figures(arguments.output, figures)
    print(f"{format_comparison(report)}\n{written}")
    return FAILED if arguments.strict and report.attrs["verdict"] == DIFFERS else code


def _animation(results: Iterable[xr.Dataset]) -> FuncAnimation:
    """Animation of the first density over the first run of SGD that has weights, if there is one."""
    from meanfield.plotting import animate_weights

    density = next((result for result in results if result.attrs["method"] == "density"), None)
    if density is None:
        raise InputError("--animate shows a density, and no result is one; add that of `meanfield density`")
    return animate_weights(density, next((result for result in results if "weights" in result), None))
