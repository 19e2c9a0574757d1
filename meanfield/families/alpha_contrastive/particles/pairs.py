"""Importances of the pairs of a batch, its energy, and the derivative of the energy with the importances held fixed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.families.alpha_contrastive.importance import Importance
from meanfield.families.alpha_contrastive.weighing import Weighing, half_squares, weighing_of
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import BoolArray, FloatArray

DIVIDED = ("infonce", "soft_triplet", "tuplet", "lifted")
"""Importances that are divided by a sum over the batch. They are of order 1/N, and are multiplied by N here."""

OF_PAIRS = ("gaussian",)
"""Importances that belong to no loss, but are functions of the distance of two samples, as those of users are."""


@dataclass(frozen=True)
class Weighed:
    """Importances of a batch.

    Parameters
    ----------
    alpha : ndarray, shape (..., N, N)
        Times N for those that are divided by a sum over the batch.
    loss : ndarray, shape (...)
        Mean loss of the samples; NaN where there is none.
    """

    alpha: FloatArray
    loss: FloatArray

    def energy(self, f: FloatArray, view: FloatArray) -> FloatArray:
        """E_alpha = tr C_alpha[f]/2 of outputs of shape (..., N, d) in both views, shape (...)."""
        rows, columns = self.alpha.sum(axis=-1), self.alpha.sum(axis=-2)
        x = f - f.mean(axis=-2, keepdims=True)
        between = np.sum((rows + columns) * np.sum(x * x, axis=-1), axis=-1)
        between = between - 2.0 * np.sum((self.alpha @ x) * x, axis=(-1, -2))
        within = np.sum(rows * np.sum((f - view) ** 2, axis=-1), axis=-1)
        return np.asarray((between - within) / (4.0 * self.alpha.shape[-1] ** 2))

    def slopes(self, f: FloatArray, view: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the energy by the outputs of both views, the importances held fixed."""
        N = self.alpha.shape[-1]
        rows, columns = self.alpha.sum(axis=-1)[..., None], self.alpha.sum(axis=-2)[..., None]
        within = rows * (f - view)
        both = self.alpha + np.swapaxes(self.alpha, -1, -2)
        between = (rows + columns) * f - both @ f
        return (between - within) / (2.0 * N**2), within / (2.0 * N**2)


class BatchPairs:
    """Importance of a problem.

    Parameters
    ----------
    N : int
        Samples of a batch.
    """

    def __init__(self, importance: Importance, N: int) -> None:
        self._importance, self._own = importance, importance.own
        self._counts: BoolArray = np.ones((N, N), dtype=bool)
        if importance.diagonal == "exclude":
            np.fill_diagonal(self._counts, False)
        self._scale = float(N) if importance.kind in DIVIDED else 1.0

    @property
    def has_loss(self) -> bool:
        """Whether the importance comes from a loss."""
        return self._own is None and self._importance.kind not in OF_PAIRS

    @cached_property
    def _weighing(self) -> Weighing:
        return weighing_of(self._importance.kind, self._importance.temperature, self._importance.epsilon)

    def weigh(self, f: FloatArray, view: FloatArray) -> Weighed:
        """Importances from outputs in both views, or from those of samples before augmentation in place of both.

        Parameters
        ----------
        f, view : ndarray, shape (..., N, d)
        """
        distance = half_squares(f)
        if not self.has_loss:
            own, none = self._own, np.full(f.shape[:-2], np.nan)
            d = distance if own is not None else distance / self._importance.temperature
            alpha = np.exp(-d) if own is None else evaluate(own.value, d)
            return Weighed(np.where(self._counts, alpha, 0.0), none)
        x = 0.5 * np.sum((f - view) ** 2, axis=-1)[..., None] - distance
        alpha, terms = self._weighing(x, self._counts)
        return Weighed(self._scale * alpha if self._scale != 1.0 else alpha, terms.mean(axis=-1))
