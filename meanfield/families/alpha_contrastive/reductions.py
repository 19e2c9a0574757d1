"""Reductions of results: what sweeps keep of critical points."""

from __future__ import annotations

import numpy as np
import xarray as xr


def critical_points(dataset: xr.Dataset) -> dict[str, xr.Variable]:
    """Numbers of stable points between walls and on walls, of eigenvectors among them, and of unstable points."""
    stable, wall, lme = (dataset[name].values > 0 for name in ("stable", "wall", "lme"))
    counts = {
        "stable_between_walls": stable & ~wall,
        "stable_on_walls": stable & wall,
        "stable_lmes": stable & lme,
        "unstable_points": ~stable,
    }
    return {name: xr.Variable((), float(np.count_nonzero(chosen))) for name, chosen in counts.items()}
