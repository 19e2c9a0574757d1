"""Batch normalisation with means and variances through which gradients pass or not (the paper's table 1)."""

from __future__ import annotations

import numpy as np

from meanfield.families.alpha_contrastive.model import BatchNorm
from meanfield.typing import FloatArray

Kept = tuple[FloatArray, FloatArray]
"""Normalised activations and the factor 1/sigma."""


def normalised(settings: BatchNorm, values: FloatArray) -> Kept:
    """Activations over samples, the last but one dim, with mean 0 and variance 1, and the factor 1/sigma.

    Constant activations become 0.
    """
    centred = values - _mean(values)
    variance = np.einsum("...ik,...ik->...k", centred, centred)[..., None, :] / values.shape[-2]
    gain = np.divide(1.0, np.sqrt(variance + settings.epsilon), out=np.zeros_like(variance), where=variance > 0.0)
    centred *= gain
    return centred, gain


def through_statistics(settings: BatchNorm, kept: Kept, slope: FloatArray) -> None:
    """Turn the derivative by normalised activations into that by activations, with what the settings let through."""
    y, gain = kept
    mean = _mean(slope)
    along = np.einsum("...ik,...ik->...k", slope, y)[..., None, :] / slope.shape[-2]
    if settings.differentiate_mean:
        slope -= mean
    if settings.differentiate_variance:
        slope -= along * y
    slope *= gain


def _mean(values: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("...ik->...k", values)[..., None, :] / values.shape[-2])
