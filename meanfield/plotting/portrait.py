"""Phase portraits of two features."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Circle, Patch, Polygon
from scipy.ndimage import grey_dilation

from meanfield.arguments import as_array, wrong
from meanfield.plotting.arguments import draws
from meanfield.plotting.style import COLOURS
from meanfield.typing import FloatArray

REGION_COLOURS = (COLOURS[2], COLOURS[1], COLOURS[5], COLOURS[4], COLOURS[3])
"""Colours of regions of attraction, by the feature that is learnt best in them, the last one where none is."""

NULLCLINES: tuple[tuple[dict[str, Any], float], ...] = (
    ({"marker": ".", "markersize": 2.5, "color": COLOURS[3]}, 0.0),
    ({"marker": "x", "markersize": 4.0, "color": COLOURS[0]}, 0.025),
)
"""Style of the nullcline of each component, and the least distance of its marks in units of the side of the plane."""

MARKERS: dict[str, dict[str, Any]] = {
    "stable node": {"marker": "o", "markerfacecolor": "black"},
    "stable focus": {"marker": "s", "markerfacecolor": "black"},
    "saddle": {"marker": "D", "markerfacecolor": "white"},
    "unstable node": {"marker": "o", "markerfacecolor": "white"},
    "unstable focus": {"marker": "s", "markerfacecolor": "white"},
    "marginal": {"marker": "^", "markerfacecolor": "0.6"},
}


@draws(portrait="q_cell nullcline")
def plot_portrait(portrait: xr.Dataset, axes: Axes) -> Axes:
    """Phase portrait of two features: streamlines, nullclines, fixed points, separatrices, regions of attraction.

    Parameters
    ----------
    portrait : xarray.Dataset
        From `phase_portrait`; its attribute `plane` says whether overlaps q or their squares Q are on the axes.

    Returns
    -------
    Axes
        With labelled artists, so that `place_legend` explains them.
    """
    plane = portrait.attrs["plane"]
    whole = axes.add_patch(Polygon([(0, 0), (1, 0), (0, 1)]) if plane == "Q" else Circle((0, 0), 1))
    whole.set(fill=False, edgecolor="0.4", linewidth=0.8)
    _shade_regions(portrait, axes, whole)
    _draw_streamlines(portrait, axes)
    for k, (style, distance) in enumerate(NULLCLINES):
        points = _position(portrait["nullcline"].values[portrait["nullcline_component"].values == k], plane)
        x, y = _spaced(points, distance if plane == "Q" else 2 * distance).T
        axes.plot(x, y, linestyle="none", **style)
        entry = style | {"markersize": 4.0, "linestyle": "none", "label": rf"$\dot {plane}_{k + 1} = 0$"}
        axes.plot([], [], **entry)
    axes.plot(*_position(portrait["separatrix"].values, plane).T, color="black", lw=1.8, label="separatrix")
    plot_fixed_points(portrait, axes)
    low = 0.0 if plane == "Q" else -1.0
    margin = 0.03 * (1.0 - low)
    axes.set(xlabel=f"${plane}_1{_meaning(plane, 1)}$", ylabel=f"${plane}_2{_meaning(plane, 2)}$", aspect="equal")
    axes.set(xlim=(low - margin, 1 + margin), ylim=(low - margin, 1 + margin))
    return axes


@draws(portrait="kind q_cell")
def plot_fixed_points(portrait: xr.Dataset, axes: Axes) -> Axes:
    """Fixed points of two features, with a marker for each kind."""
    points = _position(portrait["q"].values, portrait.attrs["plane"])
    for kind, style in MARKERS.items():
        chosen = portrait["kind"].values == kind
        if chosen.any():
            shown: dict[str, Any] = style | {
                "linestyle": "",
                "markersize": 8,
                "markeredgecolor": "black",
                "label": kind,
            }
            axes.plot(points[chosen, 0], points[chosen, 1], zorder=4, clip_on=False, **shown)
    return axes


@draws()
def plot_trajectories(q: FloatArray, axes: Axes, plane: str = "Q", **style: Any) -> Axes:
    """Trajectories over a portrait, with a dot where they begin.

    Parameters
    ----------
    q : ndarray, shape (trajectories, times, 2)
        Overlaps.
    plane : {"q", "Q"}
    **style
        Of the lines.
    """
    wanted = "give overlaps in time, an array of shape (trajectories, times, 2)"
    paths = as_array(q, "q", wanted)
    if paths.ndim != 3 or paths.shape[2] != 2:
        raise wrong("q", q, wanted)
    for path in paths:
        x, y = _position(path, plane).T
        shown: dict[str, Any] = {"color": COLOURS[0], "linewidth": 1.6, "zorder": 3} | style
        line = axes.plot(x, y, **shown)[0]
        axes.plot(x[:1], y[:1], ".", color=line.get_color(), markersize=7, zorder=3)
        style.pop("label", None)
    return axes


def _meaning(plane: str, k: int) -> str:
    return f" = q_{k}^2" if plane == "Q" else ""


def _position(q: FloatArray, plane: str) -> FloatArray:
    return q**2 if plane == "Q" else q


def _spaced(points: FloatArray, distance: float) -> FloatArray:
    """Points of which no two are nearer to each other than a distance, as many as are found one after the other."""
    kept = np.empty((0, 2))
    while len(points):
        kept = np.vstack([kept, points[:1]])
        points = points[1:][np.hypot(*(points[1:] - points[0]).T) >= distance]
    return kept


def _sides(portrait: xr.Dataset) -> tuple[FloatArray, FloatArray]:
    """Coordinates of the columns and rows of the grid in the plane of the portrait."""
    cells = portrait.sizes["column"]
    centres = (np.arange(cells) + 0.5) / cells
    side = centres if portrait.attrs["plane"] == "Q" else 2.0 * centres - 1.0
    return side, side


def _shade_regions(portrait: xr.Dataset, axes: Axes, whole: Patch) -> None:
    """Shade regions: a colour for each feature that is learnt, the last one where the overlaps vanish."""
    q = np.abs(portrait["q"].values)
    learnt = np.where(q.max(axis=1) > 1e-6, q.argmax(axis=1), len(REGION_COLOURS) - 1)
    region = portrait["region"].values.astype(np.int64)  # other programs store whole numbers as floats
    shown = np.where(region >= 0, learnt[np.maximum(region, 0)], -1)
    # Cells that the edge cuts have their centres outside: they take the colour of a neighbour.
    # -2 is the index of cells outside of the disc
    shown = np.where(region == -2, grey_dilation(shown, size=(3, 3)), shown)
    x, y = _sides(portrait)
    mesh = axes.pcolormesh(
        x,
        y,
        np.ma.masked_less(shown, 0),
        cmap=ListedColormap(REGION_COLOURS),
        vmin=-0.5,
        vmax=len(REGION_COLOURS) - 0.5,
        alpha=0.3,
        shading="nearest",
        rasterized=True,
        linewidth=0,
    )
    mesh.set_clip_path(whole)


def _draw_streamlines(portrait: xr.Dataset, axes: Axes) -> None:
    velocity = portrait["velocity"].values
    if portrait.attrs["plane"] == "Q":
        velocity = 2.0 * portrait["q_cell"].values * velocity
    x, y = _sides(portrait)
    along = np.ma.masked_invalid(velocity)
    axes.streamplot(
        x, y, along[..., 0], along[..., 1], density=0.9, color="0.45", linewidth=0.6, arrowsize=0.7, zorder=1
    )
