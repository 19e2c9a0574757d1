"""Importances of the pairs of a batch from distances of outputs (alpha_contrastive.md, section 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.importance import KINDS
from meanfield.ingredients.nearest import nearest
from meanfield.typing import BoolArray, FloatArray

Function = Callable[[FloatArray], Any]

Weighing = Callable[[FloatArray, BoolArray], tuple[FloatArray, FloatArray]]
"""Function of x, shape (..., N, N), and of the pairs that count, which returns alpha and the terms of the loss."""

EXPONENTIAL = ("infonce", "soft_triplet", "tuplet", "lifted")
"""Losses with an exponential psi, which are computed by logarithms so that no temperature overflows."""


@dataclass(frozen=True)
class PairLoss:
    """A loss L = sum_i phi(sum_j psi(x_ij)) of your own.

    Parameters
    ----------
    phi, psi : callable
        Increasing functions of arrays.
    phi_slope, psi_slope : callable
        Their derivatives.
    """

    phi: Function
    psi: Function
    phi_slope: Function
    psi_slope: Function

    def __call__(self, x: FloatArray, counts: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Importance of pairs, shape (..., N, N), and terms of the loss, shape (..., N)."""
        xi = np.sum(np.where(counts, self.psi(x), 0.0), axis=-1)
        alpha = np.asarray(self.phi_slope(xi))[..., None] * self.psi_slope(x)
        return np.where(counts, alpha, 0.0), np.asarray(self.phi(xi), dtype=float)


def weighing_of(importance: str | PairLoss, temperature: float, epsilon: float) -> Weighing:
    """Importance by name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if isinstance(importance, PairLoss):
        return importance
    if importance not in KINDS:
        raise InputError(f"importance = {importance!r:.60}: {nearest(str(importance), list(KINDS))}")
    if importance in EXPONENTIAL:
        return partial(_exponential, importance, temperature, epsilon)
    if importance == "triplet":
        return PairLoss(_same, lambda x: np.maximum(x + epsilon, 0.0), np.ones_like, lambda x: 1.0 * (x + epsilon > 0))
    if importance == "modified_triplet":
        return PairLoss(
            _same,
            lambda x: expit(x / temperature),
            np.ones_like,
            lambda x: expit(x / temperature) * expit(-x / temperature) / temperature,
        )
    return PairLoss(_same, _same, np.ones_like, np.ones_like)


def _same(x: FloatArray) -> FloatArray:
    return x


def _exponential(
    kind: str, temperature: float, epsilon: float, x: FloatArray, counts: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Importance and terms of the loss where psi is exponential, by logarithms.

    psi is e^(x/tau) of InfoNCE, with phi = tau log(eps + xi), and with a shift and phi = tau log(1 + xi) that of the
    soft triplet; the N+1 tuplet is the latter at tau = 1 without a shift. Lifted structures have phi = [log xi]_+^2.
    """
    scale = temperature if kind in ("infonce", "soft_triplet") else 1.0
    shift = epsilon if kind in ("soft_triplet", "lifted") else 0.0
    psi = np.where(counts, x / scale + shift, -np.inf)
    largest = psi.max(axis=-1, keepdims=True)
    shares = np.exp(np.subtract(psi, largest, out=psi), out=psi)  # of the largest term, so that nothing overflows
    total = shares.sum(axis=-1, keepdims=True)
    log_xi = (largest + np.log(total))[..., 0]
    if kind == "lifted":
        positive = np.maximum(log_xi, 0.0)
        return shares * (2.0 * positive[..., None] / total), positive**2
    constant = epsilon if kind == "infonce" else 1.0
    whole = np.logaddexp(log_xi, np.log(constant)) if constant > 0 else log_xi
    return shares * np.exp(largest - whole[..., None]), scale * whole


def half_squares(f: FloatArray) -> FloatArray:
    """Half the squared distance of every two samples, shape (..., N, N), of outputs of shape (..., N, d)."""
    centred = f - f.mean(axis=-2, keepdims=True)  # with less rounding
    squares = 0.5 * np.sum(centred * centred, axis=-1)
    found = squares[..., :, None] + squares[..., None, :] - centred @ np.swapaxes(centred, -1, -2)
    return np.asarray(np.maximum(found, 0.0))
