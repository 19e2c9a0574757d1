"""Key numbers of results, for reports."""

from __future__ import annotations

from collections.abc import Iterator

import xarray as xr

from meanfield.results.numbers import plain


def of_critical_points(dataset: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Numbers of stable points by kind, and the largest energy."""
    stable, wall, lme = (dataset[name].values > 0 for name in ("stable", "wall", "lme"))
    yield "critical points", f"{dataset.sizes['point']}"
    yield "stable points between walls", f"{int((stable & ~wall).sum())}"
    yield "stable points on walls", f"{int((stable & wall).sum())}"
    yield "stable points that are locally maximal eigenvectors", f"{int((stable & lme).sum())}"
    if stable.any():
        yield "largest energy of a stable point", plain(float(dataset["energy"].values[stable].max()))
