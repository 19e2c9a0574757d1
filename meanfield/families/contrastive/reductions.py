"""Reductions of contrastive results: similarities, counts and growth rates of stationary states that sweeps keep."""

from __future__ import annotations

import numpy as np
import xarray as xr

Variables = dict[str, xr.Variable]


def similarity(dataset: xr.Dataset) -> Variables:
    """Largest and least cosine similarity |q| of weights and features among states that are not unstable."""
    size = np.linalg.norm(dataset["q"].values, axis=1)[dataset["stability"].values >= 0]
    best, least = (size.max(), size.min()) if size.size else (np.nan, np.nan)
    return {"similarity": xr.Variable((), best), "least_similarity": xr.Variable((), least)}


def states(dataset: xr.Dataset) -> Variables:
    """Number of states, and number of stable ones."""
    stable = np.count_nonzero(dataset["stability"].values == 1)
    return {"state_count": xr.Variable((), dataset.sizes["state"]), "stable_count": xr.Variable((), stable)}


def growth(dataset: xr.Dataset) -> Variables:
    """Growth rates of small overlaps; NaN where q = 0 is not stationary."""
    rates = (
        dataset["uninformed_rate"].values if "uninformed_rate" in dataset else np.full(dataset.sizes["feature"], np.nan)
    )
    return {"uninformed_rate": xr.Variable(("mode",), rates)}
