"""Plots of densities in two dimensions: of the weights of two channels, over weights of SGD, and on the unit sphere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

from meanfield.mckean_vlasov.cells import edges_of
from meanfield.plotting.arguments import draws, index_at
from meanfield.plotting.style import COLOURS
from meanfield.plotting.weights import MOST_DOTS, plot_densities, visible_range
from meanfield.typing import FloatArray

SHARES = (0.5, 0.9, 0.99)
"""Probabilities within the contours of a joint density."""


@draws(density="P time")
def plot_channel_densities(
    density: xr.Dataset, axes: Axes, channel: int = 0, times: Sequence[float] | None = None
) -> Axes:
    """Density of the weights of one channel alone at some times; by default four of the output times."""
    plot_densities(density.isel(channel=channel), axes, times)
    axes.set(xlabel=f"weight $w_{channel + 1}$", ylabel=f"density $P_t(w_{channel + 1})$")
    return axes


@draws(density="P_joint density_time", particles="weights snapshot_time")
def plot_joint_density(
    density: xr.Dataset, axes: Axes, time: float | None = None, particles: xr.Dataset | None = None
) -> Axes:
    """Density of the weights of two channels as an image, with weights of SGD as dots beneath its contours.

    Parameters
    ----------
    density : xarray.Dataset
        The second result of `meanfield.contrastive.solve_joint_density`.
    axes : Axes
        A colour bar is put beside it.
    time : float, optional
        One of the times at which joint densities are there; by default the last one.
    particles : xarray.Dataset, optional
        SGD with weights at a snapshot at that time. Dots take the place of the image then.

    Raises
    ------
    InputError
        If the result holds no joint density, or a result nothing at that time.
    """
    last = density["P_joint"].dropna("density_time")["density_time"].values[-1] if time is None else time
    snapshot = density["P_joint"].isel(density_time=index_at(density, "density_time", float(last)))
    at, P = float(snapshot["density_time"]), snapshot.values
    w1, w2 = density["w1"].values, density["w2"].values
    if particles is None:
        mesh = axes.pcolormesh(w1, w2, P.T, cmap="cividis", shading="nearest", rasterized=True)
        axes.figure.colorbar(mesh, ax=axes, label="density $P_t(w_1, w_2)$")
    else:
        _dots(particles, at, axes)
    colour = "white" if particles is None else COLOURS[-1]
    axes.contour(w1, w2, P.T, levels=sorted(_levels(P)), colors=colour, linewidths=0.9)
    ranges = [_visible(P.sum(axis=1 - k), edges_of(density, f"w{k + 1}")) for k in (0, 1)]
    axes.set(xlabel="weight $w_1$", ylabel="weight $w_2$", xlim=ranges[0], ylim=ranges[1])
    shares = ", ".join(f"{100 * share:g}" for share in SHARES)
    axes.set_title(f"$t = {at:.4g}$\ncontours: {shares} % of the weights within", fontsize="medium")
    return axes


def _visible(sums: np.ndarray, edges: np.ndarray) -> tuple[float, float]:
    """Range of a weight in which its density is visible, from sums of the joint one over the other weight."""
    return visible_range(np.append(0.0, np.cumsum(sums)) / sums.sum(), edges)


def _dots(particles: xr.Dataset, time: float, axes: Axes) -> None:
    """Some of the weights of SGD at a snapshot."""
    snapshot = particles["weights"].isel(snapshot_time=index_at(particles, "snapshot_time", time))
    w = snapshot.transpose(..., "channel").values.reshape(-1, 2)
    some = w[:: max(1, len(w) // MOST_DOTS)]
    axes.plot(*some.T, ".", markersize=1.5, color=COLOURS[0], alpha=0.5, rasterized=True)


def _levels(P: np.ndarray) -> list[float]:
    """Densities at the contours that hold the `SHARES` of the probability."""
    values = np.sort(P.ravel())[::-1]
    within = np.cumsum(values) / values.sum()
    return [float(values[np.searchsorted(within, share)]) for share in SHARES]


def draw_on_sphere(axes: Axes, dataset: xr.Dataset, rho: FloatArray, time: float, of: str) -> Axes:
    """Density by azimuth and polar angle, with its scale of colours.

    Parameters
    ----------
    dataset : xarray.Dataset
        With `polar_bnds` and `azimuth_bnds`.
    rho : ndarray, shape (polar, azimuth)
    of : str
        What has the angles, as "a filter".
    """
    edges = [edges_of(dataset, name) for name in ("azimuth", "polar")]
    # densities below a thousandth of the largest have one colour
    least = max(float(rho.max()) * 1e-3, float(rho[rho > 0].min()))
    norm = LogNorm(least, float(rho.max()) * 1.0000001)
    shown = axes.pcolormesh(edges[0] / np.pi, edges[1] / np.pi, np.maximum(rho, least), norm=norm, rasterized=True)
    axes.figure.colorbar(shown, ax=axes, label=rf"density $\rho$ at $t = {time:g}$")
    axes.set(xlabel=rf"azimuth $\varphi/\pi$ of {of}", ylabel=r"polar angle $\theta/\pi$", ylim=(1.0, 0.0))
    return axes
