"""Solve many problems at once: a base problem, and all combinations of values along axes over its keys.

OUT is a folder: a file for each point in OUT/points, and OUT/sweep.nc, one Dataset of all of them with the axes as its
dims. A sweep that was interrupted or killed goes on with what is missing when the same command is given again. Points
that fail are recorded with the reason and do not stop others. Numbers depend neither on the number of workers nor on
where they are. Failed points are tried again once their files are deleted.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.cli import FAILED, at_least
from meanfield.commands.outputs import write_figures
from meanfield.commands.solving import add_restart
from meanfield.errors import InputError
from meanfield.process.start_up import start_up

if TYPE_CHECKING:
    from meanfield import Sweep


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("sweep", type=Path, metavar="SWEEP.toml", help="sweep file; data/sweeps has examples")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="folder of the results")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--workers", type=at_least(1, "workers"), metavar="N", help="processes; by default one per core")
    where.add_argument("--scheduler", metavar="ADDRESS", help="use the Dask cluster of this scheduler instead")
    add_restart(parser)
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="F.png",
        help="figure to draw, a phase diagram or curves; png, pdf or svg",
    )


def run(arguments: Namespace) -> int:
    """Solve all points of the sweep, and draw its figure."""
    with start_up():
        from matplotlib.figure import Figure

        from meanfield import load_sweep, run_sweep
        from meanfield.plotting import plot_phase_diagram
        from meanfield.plotting.results import plot_sweep, sweep_figure
        from meanfield.problems.known_families import family_of
        from meanfield.results.figure_files import save_figure
        from meanfield.sweep import describe
    sweep = load_sweep(arguments.sweep)
    own = sweep_figure(family_of(sweep.problem), sweep.methods)
    if arguments.figure:
        _check_figure(sweep, arguments.figure, bool(own))
    result = run_sweep(sweep, arguments.output, arguments.workers, arguments.scheduler, arguments.restart)
    status = str(result.attrs["status"])
    if status == "interrupted":
        print(describe(result))
        print(f"{arguments.sweep}: interrupted; what was computed is in {arguments.output}", file=sys.stderr)
        print("to go on, give the same command again", file=sys.stderr)
        return FAILED

    def draw(path: Path) -> None:
        if own:
            save_figure(plot_sweep(result), path)
            return
        figure = Figure(figsize=(6.4, 4.8), layout="constrained")
        plot_phase_diagram(result, figure.subplots())
        save_figure(figure, path)

    code, written = write_figures(arguments.output / "sweep.nc", {arguments.figure: draw})
    print(f"{describe(result)}\n{written}")
    if status != "complete":
        print(f"{arguments.sweep}: {status}", file=sys.stderr)
        return FAILED
    return code


def _check_figure(sweep: Sweep, path: Path, has_own: bool) -> None:
    """Refuse a sweep without figure before anything is computed, if one is asked for."""
    from meanfield.results.figure_files import check_figure_path

    check_figure_path(path)
    if has_own:
        return
    keeping = [method for method, kept in sweep.methods.items() if "similarity" in kept]
    if len(sweep.axes) != 2 or len(keeping) != 1:
        raise InputError(
            "--figure draws the similarity of stationary states over two axes; keep 'similarity' of one of the methods "
            "stationary, fixed_points and dynamics, or draw the result yourself"
        )
