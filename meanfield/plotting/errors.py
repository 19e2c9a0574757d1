"""Plots of the errors of a density: conservation of E[w^2] and of probability, and the solver's estimates."""

from __future__ import annotations

import xarray as xr
from matplotlib.axes import Axes

from meanfield.plotting.arguments import draws
from meanfield.plotting.style import TIME, curve_style, feature_label


@draws(density="norm|mass|q_error|P_error time")
def plot_errors(density: xr.Dataset, axes: Axes) -> Axes:
    """Deviations of E[w^2] and of the total probability from 1, and the estimated errors of q, M, r and P, where known.

    Parameters
    ----------
    density : xarray.Dataset
        From `meanfield.solve_density`; it holds estimates if it was solved to a tolerance.
    axes : Axes
        Its scale becomes logarithmic; errors that are mere rounding are left out.
    """
    conserved = {"norm": "$|E[w^2] - 1|$", "mass": "|probability $-$ 1|"}
    curves = {label: _largest(abs(density[name] - 1.0)) for name, label in conserved.items() if name in density}
    if "q_error" in density and "channel" not in density.dims:
        for k in range(density.sizes["feature"]):
            curves[f"estimate for {feature_label(density, 'q', k)}"] = density["q_error"].isel(feature=k)
    for name in ("q", "M", "r", "P") if "channel" in density.dims else ("r", "P"):
        if f"{name}_error" in density:
            error = density[f"{name}_error"]
            several = "largest " if error.ndim > 1 else ""
            curves[f"{several}estimate for ${name}$"] = _largest(error)
    for i, (label, values) in enumerate(curves.items()):
        # errors up to this size are rounding in sums over cells, and would add empty decades to the scale
        size = abs(values).where(abs(values) > 1e-14)
        if size.notnull().any():
            axes.plot(density["time"], size, label=label, **curve_style(i))
    axes.set(xlabel=TIME, ylabel="error", yscale="log")
    return axes


def _largest(error: xr.DataArray) -> xr.DataArray:
    """Largest error of all components at each time."""
    return error.max([dim for dim in error.dims if dim != "time"])
