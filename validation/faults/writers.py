"""Everything that writes a file: each writes version 0 or 1 of it, the same bytes every time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.animation import FuncAnimation
from matplotlib.artist import Artist
from matplotlib.figure import Figure

import meanfield
from meanfield.ensembles.checkpoint import Checkpoint
from meanfield.problems.file import parse_problem
from meanfield.process.atomic_files import save_text
from meanfield.report import report
from meanfield.results import files
from meanfield.results.figure_files import save_animation, save_figure

TEXT = """
title = "small"
[model]
activation = "quadratic"
learning_rate = 0.05
batch_size = 4
[[features]]
hidden = { law = "three_point", second_moment = 1.1, fourth_moment = 6.05 }
initial_overlap = 0.5
[time]
stop = 1.0
outputs = 3
[density]
cells = 200
feature_nodes = 15
[particles]
method = "plain"
dimension = 64
replicas = 3
"""
"""Problem file that every method solves in well under a second."""


class Writer(NamedTuple):
    """A name for the table, the file's name, and what writes version 0 or 1 of it to a path."""

    name: str
    file: str
    write: Callable[[Path, int], None]

    def __str__(self) -> str:
        return self.name

    def contents(self, path: Path) -> dict[bytes, str]:
        """The bytes of versions 1 and 0, and what they are called; version 0 stays there."""
        result = {}
        for version, name in ((1, "new file"), (0, "earlier file")):
            self.write(path, version)
            result[path.read_bytes()] = name
        return result


@cache
def _result(version: int) -> xr.Dataset:
    return meanfield.simulate_sgd(parse_problem(TEXT.replace("replicas = 3", f"replicas = {3 + version}")), workers=1)


@cache
def _weights(version: int) -> xr.Dataset:
    """Weights that `meanfield.save` writes in many pieces, once it takes smaller ones than usual."""
    text = TEXT.replace("dimension = 64", "dimension = 1000\nsnapshots = [0.0, 0.01]").replace("plain", "projected")
    result = meanfield.simulate_sgd(parse_problem(text.replace("stop = 1.0", "stop = 0.01")), workers=1)
    return result.assign_attrs(title=f"version {version}")


def _save_small(path: Path, version: int) -> None:
    meanfield.save(_result(version), path)


def _save_compressed(path: Path, version: int) -> None:
    files.COMPRESSED_FROM = 10
    try:
        meanfield.save(_result(version), path)
    finally:
        files.COMPRESSED_FROM = 10_000


def _save_pieces(path: Path, version: int) -> None:
    files.WRITTEN_IN_PIECES, files.CHUNK = 1 << 9, 1 << 8
    try:
        meanfield.save(_weights(version), path)
    finally:
        files.WRITTEN_IN_PIECES, files.CHUNK = 1 << 22, 1 << 18


def _save_figure(path: Path, version: int) -> None:
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # else a PDF says when it was made
    figure = Figure()
    figure.subplots().plot(np.arange(5) ** (1 + version))
    save_figure(figure, path)


def _save_state(path: Path, version: int) -> None:
    numbers = np.random.default_rng(version).normal(size=20_000)
    Checkpoint(path.parent).save_state(path.stem, {"numbers": numbers, "step": np.array(version)})


def _save_page(path: Path, version: int) -> None:
    save_text(_page(version), path)


@cache
def _page(version: int) -> str:
    return report({"run": _result(version)})


def _save_animation(path: Path, version: int) -> None:
    figure = Figure(figsize=(2, 2))
    (line,) = figure.subplots().plot(np.arange(5))

    def draw(frame: int) -> list[Artist]:
        line.set_ydata(np.arange(5.0) * frame * (1 + version))
        return [line]

    save_animation(FuncAnimation(figure, draw, frames=4), path)


WRITERS = (
    Writer("`meanfield.save`, small", "out.nc", _save_small),
    Writer("`meanfield.save`, compressed", "out.nc", _save_compressed),
    Writer("`meanfield.save`, large, in pieces", "out.nc", _save_pieces),
    Writer("`save_figure`, PNG", "out.png", _save_figure),
    Writer("`save_figure`, PDF", "out.pdf", _save_figure),
    Writer("`Checkpoint.save_state`", "state.npz", _save_state),
    Writer("`save_text`, a page of `meanfield.report`", "out.html", _save_page),
    Writer("`save_animation`, GIF", "out.gif", _save_animation),
)

FILMS = (Writer("`save_animation`, MP4", "out.mp4", _save_animation),) if shutil.which("ffmpeg") else ()
"""Writers of animations for which another program writes the file."""
