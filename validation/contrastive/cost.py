"""Growth of the time of a density with cells, u-nodes, steps, features and cores.

One setting grows at a time. Solutions take turns, so that other programs disturb all of them alike, and times are
medians: the processor time of one core, but for the last table, in which threads share the work.

Writes docs/cost.md and validation/contrastive/cost.png.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

import meanfield
from meanfield.cli import DONE, run
from meanfield.families.contrastive.problem import Problem
from meanfield.plotting import COLOURS, place_legend
from meanfield.problems.file import parse_problem
from meanfield.process.cores import available_cores
from meanfield.results.figure_files import save_figure
from meanfield.results.provenance import describe_machine
from validation import ROOT
from validation.pages import markdown_table

REPEATS = 5
FEATURE = '{{ hidden = {{ law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }}, initial_overlap = {q} }}'
TEXT = """
model = {{ activation = "quadratic", learning_rate = 0.02, batch_size = 10 }}
features = [{features}]
prior = {{ name = "l1", strength = 1.0 }}
time = {{ stop = 5.0, outputs = 2 }}
density = {{ order = 2, half_width = 20.0, cells = {cells}, feature_nodes = {feature_nodes}, steps = {steps} }}
"""


class Size(NamedTuple):
    """Size of a solution, by which it costs."""

    cells: int = 800
    feature_nodes: int = 48
    steps: int = 400
    features: int = 1


class Point(NamedTuple):
    """A solution and the time that it took."""

    size: Size
    nodes: int
    seconds: float


SCANS: dict[str, list[Size]] = {
    "cells": [Size(cells=n) for n in (200, 400, 800, 1600, 3200, 6400, 12800)],
    "nodes": [Size(cells=3200, feature_nodes=n) for n in (16, 32, 64, 96, 128, 160)],
    "steps": [Size(steps=n) for n in (100, 200, 400, 800, 1600, 3200)],
    "features": [Size(feature_nodes=n, features=k) for k, n in ((1, 64), (2, 8), (3, 4))],
}
SHARED = [Size(steps=400, cells=cells, feature_nodes=nodes) for cells, nodes in ((1600, 96), (1600, 192), (3200, 192))]
"""Sizes of the last table, whose work is shared among cores. Half of the nodes are mirror images, which are not
solved."""


def problem_of(size: Size) -> Problem:
    """Three-point features of falling overlap under an l1 prior."""
    features = ", ".join(FEATURE.format(q=0.5 / 2**k) for k in range(size.features))
    return parse_problem(TEXT.format(**size._asdict() | {"features": features}))


@contextmanager
def cores(count: int) -> Iterator[None]:
    """Let this process use so many cores, where the system can tell it so."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(all_cores)[:count]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cores)


def measure(sizes: Sequence[Size], clock: Callable[[], float]) -> list[Point]:
    """Median time of each solution; all take turns."""
    problems = [problem_of(size) for size in sizes]
    nodes, times = [], [[] for _ in sizes]  # type: list[int], list[list[float]]
    for problem in problems:
        result = meanfield.solve_density(problem)  # not timed: the first call compiles
        if result.attrs["status"] != "complete":
            raise RuntimeError(f"{problem.density}: {result.attrs['status']}")
        nodes.append(result["u_weight"].size)
    for _ in range(REPEATS):
        for problem, column in zip(problems, times, strict=True):
            started = clock()
            meanfield.solve_density(problem)
            column.append(clock() - started)
    return [Point(*row) for row in zip(sizes, nodes, map(median, times), strict=True)]


def grows_with(name: str, point: Point) -> int:
    """Size that the scan varies; features are scanned at one number of nodes."""
    return point.nodes if name in ("nodes", "features") else int(getattr(point.size, name))


def slope(name: str, points: Sequence[Point]) -> float:
    """Power of growth over the upper half of the scan, where the cost per step of calling no longer counts."""
    upper = points[len(points) // 2 - 1 :]
    x, y = np.log([[grows_with(name, point), point.seconds] for point in upper]).T
    return float(np.polyfit(x, y, 1)[0])


def per_cell_step(point: Point) -> float:
    """Nanoseconds."""
    return 1e9 * point.seconds / (point.size.cells * point.size.steps * point.nodes)


def write_page(scans: dict[str, list[Point]], shared: list[tuple[Point, Point]]) -> str:
    parts = [
        "# Cost of the density",
        "Written by `make cost`, which measures it anew. One solution of order 2 with an l1 prior, in processor time of"
        " one core; order 4 adds a second one with twice as many cells and twice as many steps, five times the work in"
        " all. The kernel takes u-nodes in blocks of 16 and fills the last block up.",
        f"Machine: {describe_machine()}",
        "![time against cells, nodes and steps](../validation/contrastive/cost.png)",
    ]
    for name, points in scans.items():
        rows = [
            (*point.size, point.nodes, f"{1e3 * point.seconds:.1f}", f"{per_cell_step(point):.2f}") for point in points
        ]
        header = ("cells", "feature_nodes", "steps", "features", "nodes", "ms", "ns per cell, node and step")
        growth = (
            "The density costs by its u-nodes, however many features they belong to; what more features add is the"
            " evaluation of their drift and diffusion, once per step."
            if name == "features"
            else f"Grows with the power **{slope(name, points):.2f}** of {name} in the upper half."
        )
        parts += [f"## {name.capitalize()}", growth, markdown_table(header, rows)]
    rows = [
        (
            one.size.cells,
            one.nodes,
            f"{1e3 * one.seconds:.1f}",
            f"{1e3 * all_.seconds:.1f}",
            f"{one.seconds / all_.seconds:.2f}",
        )
        for one, all_ in shared
    ]
    parts += [
        "## Cores",
        "Wall time. Blocks of nodes are shared out over threads where there are enough; numbers do not depend on it.",
        markdown_table(("cells", "nodes", "one core, ms", f"{available_cores()} cores, ms", "times as fast"), rows),
    ]
    return "\n\n".join(parts) + "\n"


def plot(scans: dict[str, list[Point]]) -> Figure:
    names = ["cells", "nodes", "steps"]
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
    for ax, name, colour in zip(axes, names, COLOURS, strict=False):
        points = scans[name]
        x, y = np.array([[grows_with(name, point), 1e3 * point.seconds] for point in points]).T
        ax.loglog(x, y, "o-", color=colour)
        ax.loglog(x, y[-1] * x / x[-1], ":", color="0.5", label="proportional")
        ax.set_xlabel(name)
        ax.set_title(rf"time $\propto$ {name}$^{{{slope(name, points):.2f}}}$ in the upper half", fontsize="medium")
        ax.set_xticks(x[::2], [f"{size:g}" for size in x[::2]])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.grid(alpha=0.25, lw=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("processor time, ms")
    place_legend(axes[0])
    return figure


def main() -> int:
    """Measure, write the page, draw."""
    with cores(1):
        scans = {name: measure(sizes, time.process_time) for name, sizes in SCANS.items()}
        alone = measure(SHARED, time.perf_counter)
    shared = list(zip(alone, measure(SHARED, time.perf_counter), strict=True))
    page = write_page(scans, shared)
    (ROOT / "docs/cost.md").write_text(page)
    save_figure(plot(scans), ROOT / "validation/contrastive/cost.png")
    print(page)
    return DONE


if __name__ == "__main__":
    run(main)
