"""Statistics of ensembles of several channels, in the form in which results declare them."""

from __future__ import annotations

from typing import Any

import numpy as np


def with_declared_statistics(arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays of an ensemble with the dims of its results; those of single replicas stay as they are.

    Covariances of q have the dims (time, feature, feature_, channel, channel_). Of M and r only variances are kept.
    """
    found = dict(arrays)
    if "q_covariance" in found:
        found["q_covariance"] = found["q_covariance"].swapaxes(2, 3)
        found["r_variance"] = np.einsum("tkk->tk", found.pop("r_covariance"))
        found["M_variance"] = np.einsum("tkjkj->tkj", found.pop("M_covariance"))
    return found
