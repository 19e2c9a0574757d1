"""Maps of densities on the unit sphere."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from meanfield.typing import FloatArray


def draw_on_sphere(axes: Axes, dataset: xr.Dataset, rho: FloatArray, time: float, of: str) -> Axes:
    """Density by azimuth and polar angle, with its scale of colours.

    Parameters
    ----------
    axes : Axes
    dataset : xarray.Dataset
        With `polar_bnds` and `azimuth_bnds`.
    rho : ndarray, shape (polar, azimuth)
    time : float
    of : str
        What has the angles, as "a filter".
    """
    edges = [np.append(dataset[f"{name}_bnds"][:, 0], dataset[f"{name}_bnds"][-1, 1]) for name in ("azimuth", "polar")]
    # densities below a thousandth of the largest have one colour
    least = max(float(rho.max()) * 1e-3, float(rho[rho > 0].min()))
    norm = LogNorm(least, float(rho.max()) * 1.0000001)
    shown = axes.pcolormesh(edges[0] / np.pi, edges[1] / np.pi, np.maximum(rho, least), norm=norm, rasterized=True)
    axes.figure.colorbar(shown, ax=axes, label=rf"density $\rho$ at $t = {time:g}$")
    axes.set(xlabel=rf"azimuth $\varphi/\pi$ of {of}", ylabel=r"polar angle $\theta/\pi$", ylim=(1.0, 0.0))
    return axes
