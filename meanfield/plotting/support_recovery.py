"""Figure of support recovery: rates for every threshold, and mean square errors, in time."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from meanfield.plotting.order_parameters import plot_order_parameters

PANELS = {
    "true_positive_rate": ("true positive rate", "TPR"),
    "false_positive_rate": ("false positive rate", "FPR"),
    "sign_error_rate": ("found with the wrong sign", "SER"),
    "share_below": ("share of weights below the threshold", "F"),
    "mean_square_error": ("mean square error", "MSE"),
    "debiased_mean_square_error": ("mean square error, debiased", "MSE"),
}
"""Label of the axis and symbol of each variable."""


def plot_support_recovery(dataset: xr.Dataset) -> Figure:
    """Rates of support recovery and mean square errors; means over replicas with bands.

    Parameters
    ----------
    dataset : xarray.Dataset
        From `meanfield.support_recovery`.
    """
    shown = {name: words for name, words in PANELS.items() if name in dataset}
    names: dict[str, str] = {}
    if dataset.sizes["feature"] == 1:  # else curves have numbers
        dataset = dataset.squeeze("feature", drop=True)
        for dim in ("threshold", "gain"):
            texts = [f"{dim} {value:g}" for value in dataset[dim].values] if dim in dataset else []
            dataset = dataset.assign({f"{dim}_text": (dim, texts)}) if texts else dataset
            names |= {name: f"{dim}_text" for name in shown if dim in dataset[name].dims}
    return plot_order_parameters(dataset, shown, names)
