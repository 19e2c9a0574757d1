"""Filters on the circle or the sphere at each time, for pages to move through."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from meanfield.families.alpha_contrastive.density.grid import TURN
from meanfield.mckean_vlasov.cells import edges_of
from meanfield.report.charts import Chart
from meanfield.report.maps import in_time, sphere

RING_CELLS = 120
"""Number of cells of a density along the circle."""


def charts(dataset: xr.Dataset) -> Iterator[Chart]:
    """The circle or sphere of filters: their density, or histograms of all runs; on the circle also the first run."""
    title, edges = "filters on the circle", np.linspace(-np.pi, np.pi, RING_CELLS + 1)
    if "rho" in dataset:
        cells = edges_of(dataset, "angle")
        F = np.pad(np.cumsum(dataset["rho"].values * np.diff(cells), axis=1), ((0, 0), (1, 0)))
        # The circle is cut where cells begin, which is not where the ring begins.
        turns = np.concatenate([cells[:-1] - TURN, cells[:-1], cells + TURN])
        rows = [np.interp(edges, turns, np.concatenate([f[:-1] - f[-1], f[:-1], f + f[-1]])) for f in F]
        yield Chart("ring", title, in_time(dataset["time"], np.diff(rows, axis=1) / np.diff(edges)), {"x": edges})
        return
    if dataset.sizes["coordinate"] == 3 and dataset.sizes.get("place", 1) == 1:
        yield from sphere("filters on the sphere", dataset)
    if dataset.sizes["coordinate"] != 2 or dataset.sizes["place"] != 1:
        return
    w = dataset["weights"].isel(place=0).transpose("coordinate", "time", ..., "filter").values
    angle = np.arctan2(w[1], w[0]).reshape(w.shape[1], -1, w.shape[-1])
    edges = edges[:: 1 if angle[0].size > 30 * RING_CELLS else 4]  # so that a bar has some filters
    counts = np.array([np.histogram(each, edges)[0] for each in angle])
    known = np.isfinite(angle).sum(axis=(1, 2))[:, None]
    P = counts / np.where(known > 0, known, np.nan) / np.diff(edges)
    yield Chart("ring", title, in_time(dataset["time"], P), {"x": edges, "bars": True})
    yield Chart("ring", title, in_time(dataset["time"], angle[:, 0, :60]), label="first run")
