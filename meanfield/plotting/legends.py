"""Legends that hide nothing: in a free place of a panel, or else in room that is made above the curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import StepPatch
from matplotlib.path import Path
from numpy.typing import NDArray

from meanfield.typing import FloatArray

FONT_SIZE = 9.0
"""Size of the text of a legend in points."""

PLACES = {
    "upper right": (1.0, 1.0),
    "upper left": (0.0, 1.0),
    "lower right": (1.0, 0.0),
    "lower left": (0.0, 0.0),
    "center right": (1.0, 0.5),
    "center left": (0.0, 0.5),
    "upper center": (0.5, 1.0),
    "lower center": (0.5, 0.0),
}
"""Places inside a panel, and the share of the free width and height that lies to their left and below."""

CELLS = 64
"""Number of rows, and of columns, of cells of a panel that are free or hold part of a curve."""

SIZE_MARGIN = 1.08
"""Factor on the size of a legend: files of other resolutions have texts of slightly other widths."""


def is_beside(legend: Legend) -> bool:
    """Whether a legend is beside its panel."""
    left = legend.get_bbox_to_anchor().x0
    return bool(left > 0.5 * (legend.axes.bbox.x0 + legend.axes.bbox.x1))


def place_legend(axes: Axes, **style: Any) -> Legend | None:
    """Put the legend of a panel, if it has one, where it hides no curve; call it when all is drawn and laid out.

    Where no place is free, the upper limit of the panel is raised until the legend fits above everything. A legend that
    would take too much of the panel, or one of a panel whose scales are tied to each other, goes beside it.

    Parameters
    ----------
    **style
        Of the legend, such as `ncols`.

    Returns
    -------
    Legend or None
        None if nothing in the panel has a label.
    """
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return None
    common: dict[str, Any] = {"fontsize": FONT_SIZE, "frameon": False, "handlelength": 2.4, "borderaxespad": 0.3}
    draw: Callable[..., Legend] = partial(axes.legend, handles, labels, **(common | style))
    axes.autoscale_view()
    taken, sizes = occupied(axes), {}
    for columns in (1, 2):
        legend = draw(loc="upper left", ncols=columns)
        extent, panel = legend.get_window_extent(), axes.bbox  # sizes from the corner on, which legends stay away from
        width, height = (extent.x1 - panel.x0) / panel.width, (panel.y1 - extent.y0) / panel.height
        sizes[columns] = SIZE_MARGIN * width, SIZE_MARGIN * height
        place = _free_place(taken, *sizes[columns])
        if place is not None and (columns == 1 or sizes[columns][0] < 1.0):
            legend.set_loc(place)  # type: ignore[arg-type]
            return legend
    columns = 2 if sizes[2][0] < 1.0 else 1
    width, height = sizes[columns]
    # a legend that takes more of the height of the panel goes beside it
    if height > 0.6 or axes.get_aspect() != "auto":
        # the middle of its left side is at the middle of the right side of the panel
        return draw(loc="center left", bbox_to_anchor=(1.0, 0.5))
    _raise_top(axes, (np.flatnonzero(taken.any(axis=1)).max() + 1) / CELLS, 1.0 - height)
    place = _free_place(occupied(axes), width, height)
    return draw(loc=place or "upper center", ncols=columns)


def share_legend(figure: Figure, *panels: Axes) -> Legend | None:
    """Put one legend for some panels, by default all of them, below the figure; equal labels make one entry.

    Parameters
    ----------
    figure : Figure
        With constrained layout, which makes the room.
    *panels : Axes

    Returns
    -------
    Legend or None
        None if nothing has a label.
    """
    found: dict[str, Any] = {}
    for axes in panels or figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        found |= {label: handle for label, handle in zip(labels, handles, strict=True) if label not in found}
    for columns in range(len(found), 0, -1):
        style: Any = {"loc": "outside lower center", "ncols": columns, "frameon": False, "fontsize": FONT_SIZE}
        legend = figure.legend(found.values(), found.keys(), handlelength=2.6, columnspacing=1.5, **style)
        if columns == 1 or legend.get_window_extent().width < figure.bbox.width:
            return legend
        legend.remove()
    return None


def occupied(axes: Axes) -> NDArray[np.bool_]:
    """Cells of a panel, rows from below, in which there is part of a line, a marker, a band or a bar."""
    taken = np.zeros((CELLS, CELLS), dtype=bool)
    centres = (np.arange(CELLS) + 0.5) / CELLS
    grid = np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)
    for path, filled in _paths(axes):
        if filled:
            taken |= path.contains_points(grid).reshape(CELLS, CELLS)
        column, row = np.floor(_points_along(path.vertices) * CELLS).astype(int).T
        inside = (column >= 0) & (column < CELLS) & (row >= 0) & (row < CELLS)
        taken[row[inside], column[inside]] = True
    return taken


def _paths(axes: Axes) -> Iterator[tuple[Path, bool]]:
    """Outlines of what is drawn, in shares of the panel, and whether they are filled."""
    to_panel = axes.transAxes.inverted()
    for line in axes.lines:
        yield Path(to_panel.transform(line.get_transform().transform(line.get_xydata()))), False
    for collection in axes.collections:
        if isinstance(collection, LineCollection | PolyCollection):
            to_pixels, filled = collection.get_transform(), isinstance(collection, PolyCollection)
            yield from ((to_panel.transform_path(to_pixels.transform_path(p)), filled) for p in collection.get_paths())
    for patch in axes.patches:
        if isinstance(patch, StepPatch) or patch.get_fill():  # under a legend may lie the outline of a region
            yield to_panel.transform_path(patch.get_transform().transform_path(patch.get_path())), True


def _points_along(vertices: Any) -> FloatArray:
    """Points along a path, no further from each other than half a cell."""
    points: FloatArray = np.asarray(vertices, dtype=float)
    points = np.clip(points[np.isfinite(points).all(axis=1)], -1.0, 2.0)
    if len(points) < 2:
        return points
    steps = np.maximum(1, np.ceil(2 * CELLS * np.abs(np.diff(points, axis=0)).max(axis=1))).astype(int)
    place = np.concatenate([[0.0], np.cumsum(steps)])
    fine = np.arange(place[-1] + 1)
    return np.column_stack([np.interp(fine, place, column) for column in points.T])


def _free_place(taken: NDArray[np.bool_], width: float, height: float) -> str | None:
    """First place where a box, given in shares of the panel, covers no cell that is taken."""
    columns, rows = int(np.ceil(width * CELLS)), int(np.ceil(height * CELLS))
    columns = min(columns, CELLS)
    for name, (right, above) in PLACES.items():
        column, row = round(right * (CELLS - columns)), round(above * (CELLS - rows))
        if not taken[row : row + rows, column : column + columns].any():
            return name
    return None


def _raise_top(axes: Axes, top: float, allowed: float) -> None:
    """Raise the upper limit so that what reached up to the share `top` of the panel reaches up to `allowed` of it."""
    scale = axes.yaxis.get_transform()
    low, high = scale.transform(np.array(axes.get_ylim()))
    raised = low + (high - low) * max(1.0, top / allowed)
    axes.set_ylim(top=float(scale.inverted().transform(np.array([raised]))[0]))
