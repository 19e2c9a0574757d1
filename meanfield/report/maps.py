"""Densities on maps: of two weights that train together, alone and given u, and of directions on the sphere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

from meanfield.comparison.distributions import groups_among
from meanfield.mckean_vlasov.cells import edges_of, nodes_of
from meanfield.plotting.histograms import VISIBLE
from meanfield.report.charts import Chart
from meanfield.results.result import Result
from meanfield.typing import FloatArray

PLANE_CELLS = 32
"""Number of cells of a map in each direction."""

SQUARE = (np.linspace(-1.0, 1.0, PLANE_CELLS + 1), np.linspace(-1.0, 1.0, PLANE_CELLS // 2 + 1))
"""Edges of the cells of a map of the sphere, by azimuth/pi and by height: all have the same area."""


def plane(dataset: xr.Dataset) -> Iterator[Chart]:
    """Density of two weights that train together, alone and given each feature coordinate, mostly on one grid for all.

    Parameters
    ----------
    dataset : xarray.Dataset
        With `P_joint`, a sample `w_sample` of the limit, or `weights` of runs; of two channels or students.
    """
    held = dataset.get("w_sample", dataset.get("weights"))
    if "P_joint" in dataset:
        maps: _Maps = _OfCells(dataset)
    elif held is not None and 2 in (held.sizes.get("channel"), held.sizes.get("student")):
        maps = _OfPoints(dataset, held)
    else:
        return
    yield maps.chart("density of both weights")
    for k, law in enumerate(Result.of(dataset).problem.coordinates):
        name, u = f"u{k + 1}" if maps.u.shape[1] > 1 else "u", maps.u[:, k]
        # runs normalise features, so that values of a discrete law are not quite those of runs
        for group in groups_among(np.unique(law.quadrature(law.default_nodes[0])[0])):
            tab = f"{name} = {group.centre:.3g}"
            yield maps.chart("density of both weights given u", group.membership(u), tab)


class _Maps:
    """Densities of both weights on one grid, with the times and the coordinates u of what has a membership."""

    times: xr.DataArray
    grid: FloatArray
    u: FloatArray

    def shares(self, membership: FloatArray) -> FloatArray:
        """Shares of cells, shape (times, w1, w2), weighted by memberships."""
        raise NotImplementedError

    def chart(self, title: str, membership: FloatArray | None = None, tab: str = "") -> Chart:
        """Chart of the weights, by default of all."""
        shares = self.shares(np.ones(len(self.u)) if membership is None else membership)
        density = shares.swapaxes(1, 2) / (self.grid[1] - self.grid[0]) ** 2  # rows are the second weight
        places = {"x": self.grid, "y": self.grid, "xlabel": "w1", "ylabel": "w2"}
        return Chart("map", title, in_time(self.times, density), places, tab=tab)


class _OfCells(_Maps):
    """Of densities at nodes, as far as they came."""

    def __init__(self, joint: xr.Dataset) -> None:
        P = joint["P_joint"].dropna("density_time")
        self.times = P["density_time"]
        nodes, self._weight = nodes_of(joint)
        self.u = nodes[:, : joint["u"].size // len(nodes)]
        self._given = joint["P_joint_given_u"].sel(density_time=self.times).values
        self._edges = [edges_of(joint, name) for name in ("w1", "w2")]
        mass = P.values * self._area()
        sides = ((joint["w1"].values, mass.sum(axis=2)), (joint["w2"].values, mass.sum(axis=1)))
        self.grid = _grid([_reach(w, each) for w, side in sides for each in side])

    def _area(self) -> FloatArray:
        return np.outer(*map(np.diff, self._edges))

    def shares(self, membership: FloatArray) -> FloatArray:
        """See `_Maps.shares`."""
        weight = self._weight * membership
        P = np.einsum("n,tnij->tij", weight / weight.sum(), self._given)
        return _regridded(P * self._area(), self._edges, (self.grid, self.grid))


class _OfPoints(_Maps):
    """Of a sample of the limit or of runs, as far as they came."""

    def __init__(self, dataset: xr.Dataset, w: xr.DataArray) -> None:
        w = w.transpose("snapshot_time", ..., w.dims[-1])
        self.times = w["snapshot_time"]
        u = dataset["u_sample" if "u_sample" in dataset else "U"]
        u = u.transpose(..., "feature").broadcast_like(w[0, ..., 0].drop_vars("snapshot_time"))
        self.u = u.transpose(*w.dims[1:-1], "feature").values.reshape(-1, u.sizes["feature"])
        self._w = w.values.reshape(len(w), -1, 2)
        self._known = np.isfinite(self._w).all(axis=2)
        sides = [each for row, known in zip(self._w, self._known, strict=True) for each in row[known].T if known.any()]
        self.grid = _grid([_reach(np.sort(each), np.ones(len(each))) for each in sides])

    def shares(self, membership: FloatArray) -> FloatArray:
        """See `_Maps.shares`."""
        kept = [self._known[k] & (membership > 0.0) for k in range(len(self._w))]
        drawn = [
            np.histogram2d(w[at, 0], w[at, 1], bins=(self.grid, self.grid), weights=membership[at])[0]
            / membership[at].sum()
            if at.any()
            else np.zeros((PLANE_CELLS, PLANE_CELLS))
            for w, at in zip(self._w, kept, strict=True)
        ]
        return np.array(drawn)


def sphere(title: str, dataset: xr.Dataset) -> Iterator[Chart]:
    """Density of directions in three dimensions, from `rho_on_sphere` or `weights`, on a map that keeps areas.

    Parameters
    ----------
    title : str
    dataset : xarray.Dataset
        With a density in time, or vectors of shape (..., coordinate) of runs.
    """
    if "rho_on_sphere" in dataset:
        polar, azimuth = edges_of(dataset, "polar"), edges_of(dataset, "azimuth")
        height = np.cos(polar)
        mass = dataset["rho_on_sphere"].values * np.outer(-np.diff(height), np.diff(azimuth))
        # rows from the south pole on, as the map has them
        shares = _regridded(mass[:, ::-1], [height[::-1], azimuth / np.pi], SQUARE[::-1])
    else:
        w = dataset["weights"].transpose("coordinate", "time", ...).values
        w = w.reshape(*w.shape[:2], -1)
        height, turned = w[2] / np.linalg.norm(w, axis=0), np.arctan2(w[1], w[0]) / np.pi
        known = np.isfinite(height)
        counts = [
            np.histogram2d(z[at], x[at], bins=SQUARE[::-1])[0] for z, x, at in zip(height, turned, known, strict=True)
        ]
        shares = np.array(counts) / np.where(known.any(axis=1), known.sum(axis=1), np.nan)[:, None, None]
    area = 4.0 * np.pi / (PLANE_CELLS * (PLANE_CELLS // 2))
    places = {"x": SQUARE[0], "y": SQUARE[1], "xlabel": "azimuth/π", "ylabel": "third coordinate"}
    yield Chart("map", title, in_time(dataset["time"], shares / area), places)


def in_time(times: xr.DataArray, values: FloatArray) -> xr.DataArray:
    """Values of charts with their times as the coordinate of the first dim."""
    dim = str(times.dims[0])
    return xr.DataArray(values, {dim: times}, (dim, *("row", "column")[: values.ndim - 1]))


def _regridded(mass: FloatArray, edges: Sequence[FloatArray], grids: Sequence[FloatArray]) -> FloatArray:
    """Masses of other cells, shape (times, rows, columns), as if each cell were even."""
    F = np.pad(mass.cumsum(axis=1).cumsum(axis=2), ((0, 0), (1, 0), (1, 0)))
    at = [
        np.array([np.interp(grid, edge, unit) for unit in np.eye(len(edge))])
        for grid, edge in zip(grids, edges, strict=True)
    ]
    return np.asarray(np.diff(np.diff(at[0].T @ F @ at[1], axis=1), axis=2))


def _reach(x: FloatArray, mass: FloatArray) -> float:
    """Largest absolute value between the visible ends of a law of points in order."""
    F = np.cumsum(mass) / mass.sum()
    return float(np.abs(np.interp([VISIBLE, 1.0 - VISIBLE], F, x)).max())


def _grid(reaches: list[float]) -> FloatArray:
    """Edges of cells about 0, whose range is one of a few so that results of one problem mostly share it."""
    reach = max(reaches, default=0.0) or 1.0
    power = 10.0 ** np.floor(np.log10(reach))
    end = next(power * factor for factor in (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0) if power * factor >= reach)
    return np.linspace(-end, end, PLANE_CELLS + 1)
