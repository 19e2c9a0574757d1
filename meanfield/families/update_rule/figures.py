"""Figures of update rules: observables, overlaps and side variables in time."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting import order_parameters

PANELS = {
    "observables": ("observables", ""),
    "R": ("overlap with features $R_{km}$", "R"),
    "Q": ("overlap of students $Q_{kl}$", "Q"),
    "v": ("side variables", "v"),
}
"""Label of the axis and symbol of each variable."""

NAMES = {"observables": "observable_name", "v": "side_name"}
"""Variables whose entries have names, and where these are."""


def plot_order_parameters(dataset: xr.Dataset) -> Figure:
    """Observables, overlaps and side variables, as far as there are some; means over replicas with bands.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of the kind `order_parameters`, `particles` or `ensemble`.
    """
    shown = {name: words for name, words in PANELS.items() if {name, f"{name}_mean"} & {*dataset}}
    return order_parameters.plot_order_parameters(dataset, shown, NAMES)
