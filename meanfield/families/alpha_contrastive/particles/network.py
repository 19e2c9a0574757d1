"""Networks of one or two layers on a batch, and the derivative of its energy by all weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.families.alpha_contrastive.initial import Weights
from meanfield.families.alpha_contrastive.particles.first_layer import FirstLayer
from meanfield.families.alpha_contrastive.particles.pairs import BatchPairs, Weighed
from meanfield.families.alpha_contrastive.settings import BatchNorm, Model
from meanfield.networks.normalisation import Normalisation
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


@dataclass(frozen=True)
class Activity:
    """Networks at a batch, and the importances of its pairs. Both views may be the same, and are then kept once.

    Parameters
    ----------
    kept : object
        Of the first layer.
    norm : tuple of ndarray, or None
        Of batch normalisation.
    hidden : ndarray, shape (networks, views, N, places * filters)
        What the top layer reads.
    last : ndarray, shape (networks, views, N, outputs)
        What it returns.
    outputs : ndarray
        The same, divided by its length where the model says so.
    """

    kept: Any
    norm: tuple[FloatArray, FloatArray] | None
    hidden: FloatArray
    last: FloatArray
    outputs: FloatArray
    weighed: Weighed

    @property
    def energy(self) -> FloatArray:
        """E_alpha, shape (networks,)."""
        return self.weighed.energy(self.outputs[:, 0], self.outputs[:, -1])

    @property
    def covariance_trace(self) -> FloatArray:
        """Trace of C_alpha of what the top layer reads, shape (networks,)."""
        return 2.0 * self.weighed.energy(self.hidden[:, 0], self.hidden[:, -1])


class BatchNetwork:
    """Network of a problem."""

    def __init__(self, model: Model, layer: FirstLayer, pairs: BatchPairs) -> None:
        self._model, self._layer, self._pairs = model, layer, pairs
        self._outputs = Normalisation(model.normalise_outputs)

    def forward(self, weights: Weights, views: Any, source: Any = None) -> Activity:
        """Activity at a batch.

        Parameters
        ----------
        weights : Weights
            Of several networks.
        views : array, shape (networks, views, N, ...)
            Inputs in one view, or two.
        source : array, shape (networks, 1, N, ...), optional
            Inputs before augmentation, if the importances look at these and not at the views.
        """
        kept, norm, hidden, last, y = self._run(weights, views)
        of = y if source is None else self._run(weights, source)[-1]
        return Activity(kept, norm, hidden, last, y, self._pairs.weigh(of[:, 0], of[:, -1]))

    def _run(self, weights: Weights, inputs: Any) -> tuple[Any, Any, FloatArray, FloatArray, FloatArray]:
        networks, views, N = inputs.shape[:3]
        flat = inputs.reshape(networks, views * N, *inputs.shape[3:])
        hidden, kept = self._layer.forward(weights.filters, flat)
        if self._model.layers == 1:
            f = hidden.reshape(networks, views, N, -1) / np.sqrt(hidden.shape[-1])
            return kept, None, f, f, f
        norm = None
        if self._model.batch_norm.active:
            norm = normalised(self._model.batch_norm, hidden.reshape(networks, views, N, -1))
            hidden = norm[0].reshape(hidden.shape)
        last = (hidden @ np.swapaxes(weights.top, -1, -2)).reshape(networks, views, N, -1)
        return kept, norm, hidden.reshape(networks, views, N, -1), last, self._outputs.value(last)

    def slope(self, weights: Weights, activity: Activity) -> Weights:
        """Derivative of the energy with the importances held fixed; times the number of filters for one layer.

        Then each filter of one layer moves as it would alone, which is the time of the limit of many filters.
        """
        y = activity.outputs
        slopes = activity.weighed.slopes(y[:, 0], y[:, -1])
        slope = np.stack(slopes, axis=1) if y.shape[1] == 2 else (slopes[0] + slopes[1])[:, None]
        networks, samples = len(y), y.shape[1] * y.shape[2]
        if self._model.layers == 1:
            by_hidden = slope.reshape(networks, samples, -1) * np.sqrt(slope.shape[-1])
            return Weights(self._layer.backward(activity.kept, by_hidden), np.zeros_like(weights.top))
        by_last = self._outputs.back(activity.last, slope).reshape(networks, samples, -1)
        top = np.swapaxes(by_last, -1, -2) @ activity.hidden.reshape(networks, samples, -1)
        by_hidden = by_last @ weights.top
        if activity.norm is not None:
            through_statistics(self._model.batch_norm, activity.norm, by_hidden.reshape(activity.hidden.shape))
        return Weights(self._layer.backward(activity.kept, by_hidden), top)
