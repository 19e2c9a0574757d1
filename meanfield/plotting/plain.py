"""Default figure of a result, for families that declare none of their own: a panel for each variable."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from textwrap import fill
from typing import Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.errors import InputError
from meanfield.plotting.style import ANY_TIME, TITLE_WIDTH, Panel, curve_style, draw_panels, marker_style
from meanfield.results.result import Result

MOST_PANELS = 9
"""Largest number of variables that are drawn."""


def plot_plain(dataset: xr.Dataset) -> Figure:
    """Every declared variable along the leading dim: lines in time, dots for states.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of a kind that declares no figure.

    Raises
    ------
    InputError
        If nothing in it varies along the leading dim.
    """
    result = Result.of(dataset)
    kind = result.kind
    # states are no continuum
    style = curve_style if kind.leading in result.family.variables else marker_style
    names = [name for name in kind.names if _varies(dataset, name, kind.leading)]
    if not names:
        raise InputError(f"nothing in a result of kind '{dataset.attrs['method']}' varies along '{kind.leading}'")
    draw = partial(_plot_variable, along=kind.leading, style=style)
    panels: list[Panel] = [partial(draw, name=name) for name in names[:MOST_PANELS]]
    return draw_panels(dataset, panels)


def _varies(dataset: xr.Dataset, name: str, along: str) -> bool:
    if name not in dataset or name == along or along not in dataset[name].dims or dataset[name].dtype.kind not in "fiu":
        return False
    return dataset[name].size <= 12 * dataset.sizes[along]  # some of many curves would say nothing


def _plot_variable(
    dataset: xr.Dataset, axes: Axes, name: str, along: str, style: Callable[[int], dict[str, Any]]
) -> Axes:
    """Plot one curve for each index of the other dims."""
    values = dataset[name].transpose(along, ...).values.reshape(dataset.sizes[along], -1)
    for i, curve in enumerate(values.T):
        axes.plot(dataset[along].values, curve, **style(i))
    axes.set(xlabel=ANY_TIME if along == "time" else along, ylabel=name)
    axes.set_title(fill(str(dataset[name].attrs.get("long_name", name)), TITLE_WIDTH), fontsize="small")
    return axes
