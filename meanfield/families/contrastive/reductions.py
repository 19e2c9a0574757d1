"""Reductions of contrastive results: what sweeps keep of stationary states, and who learns what among channels."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import xarray as xr

from meanfield.errors import InputError

Variables = dict[str, xr.Variable]

LEARNT_OVERLAP = 0.5
"""Least overlap |q| with a feature of a channel that has learnt it."""

COLLAPSED_OVERLAP = 0.99
"""Least overlap |M| of two channels that count as one, up to a sign."""


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
    if "channel" in dataset.sizes:
        shape = dataset.sizes["feature"], dataset.sizes["channel"]
        absent = xr.Variable(("feature", "channel"), np.full(shape, np.nan))
        return {"uninformed_channel_rate": dataset.variables.get("uninformed_channel_rate", absent)}
    rates = (
        dataset["uninformed_rate"].values if "uninformed_rate" in dataset else np.full(dataset.sizes["feature"], np.nan)
    )
    return {"uninformed_rate": xr.Variable(("mode",), rates)}


def arrangement(dataset: xr.Dataset) -> Variables:
    """Shares of the pairs of channels, over replicas, that are collapsed, tilted or distinct at the last time.

    Each channel belongs to the feature with its largest |q|, if that is at least `LEARNT_OVERLAP`. Two channels of one
    feature are collapsed if their overlap |M| is at least `COLLAPSED_OVERLAP`, and tilted if not; two of different
    features are distinct. Pairs with a channel that has learnt nothing are none of these. Order and signs of channels
    do not matter.

    Raises
    ------
    InputError
        If there is a single channel, or the result holds statistics and no replicas.
    """
    if "M" not in dataset or "q" not in dataset:
        raise InputError(
            "arrangement: it takes the overlaps q and M of several channels in each replica; set model.channels to 2 "
            "or more, and particles.record to 'replicas'"
        )
    last = dataset.isel(time=-1)
    q = np.abs(last["q"].transpose(..., "feature", "channel").values)
    M = np.abs(last["M"].transpose(..., "channel", "channel_").values)
    owner = np.where(q.max(axis=-2) >= LEARNT_OVERLAP, q.argmax(axis=-2), -1)  # false where q is NaN
    pairs = list(combinations(range(owner.shape[-1]), 2))
    first, second = (owner[..., side] for side in np.transpose(pairs))
    both = (first >= 0) & (second >= 0)
    equal = np.stack([M[..., j, k] >= COLLAPSED_OVERLAP for j, k in pairs], axis=-1)
    kinds = {
        "collapsed": both & (first == second) & equal,
        "tilted": both & (first == second) & ~equal,
        "distinct": both & (first != second),
    }
    return {f"{name}_share": xr.Variable((), float(found.mean())) for name, found in kinds.items()}
