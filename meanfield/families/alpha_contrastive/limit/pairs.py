"""Importance of pairs of atoms in the limit of large batches (alpha_contrastive.md, sections 2 to 4).

Outputs enter through D_ij, half the squared distance of two atoms. All quantities follow from an objective G(D), which
the flow of the filters ascends: M_ij = 2 dG/dD_ij is the importance of a pair with its probabilities, symmetrised, and
E_alpha(w) = 1/4 sum_ij M_ij (h_i - h_j)^2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.importance import Importance
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray, IntArray

Function = Callable[[FloatArray], FloatArray]

NORMALISED = ("infonce", "soft_triplet", "tuplet")
"""Importances that are divided by a sum over the other samples of a batch."""


@dataclass(frozen=True)
class Kernel:
    """Importance K(D) of a pair, its derivative, and its integral from 0."""

    value: Function
    slope: Function
    integral: Function


@dataclass(frozen=True)
class Pairs:
    """Objective of pairs of atoms, and its derivatives.

    Parameters
    ----------
    probability : ndarray, shape (atoms,)
    kernel : Kernel or None
        None for the uniform importance.
    normalised : float
        Temperature tau of an importance e^{-D/tau} that is divided by its mean over the other atom; 0 if it is not.
    diagonal : bool
        Whether that mean is over pairs of an atom with itself, too.
    views : ndarray, shape (atoms, atoms), optional
        Probabilities that two views of a sample are at two atoms, whose distance the objective lowers; None where both
        are the same.
    """

    probability: FloatArray
    kernel: Kernel | None = None
    normalised: float = 0.0
    diagonal: bool = False
    views: FloatArray | None = None

    @property
    def uniform(self) -> bool:
        """Whether the importance does not depend on the outputs."""
        return self.kernel is None and not self.normalised

    @cached_property
    def weight(self) -> FloatArray:
        """Probabilities of ordered pairs, shape (atoms, atoms); rows are those of the atom whose mean is taken."""
        p = self.probability
        if not self.normalised or self.diagonal:
            return np.outer(p, p)
        return np.where(np.eye(len(p), dtype=bool), 0.0, np.outer(p / (1.0 - p), p))

    def objective(self, D: FloatArray) -> FloatArray:
        """G, shape (...), of distances, shape (..., atoms, atoms)."""
        within = 0.0 if self.views is None else 0.5 * np.einsum("...ij,ij->...", D, self.views)
        if self.normalised:
            _, mean, offset = self._shares(D)
            tau, p = self.normalised, self.probability
            return np.asarray(-0.5 * tau * ((np.log(mean) - offset / tau) @ p) - within)
        integral = D if self.kernel is None else self.kernel.integral(D)
        return np.asarray(0.5 * np.einsum("...ij,ij->...", integral, self.weight) - within)

    def _shares(self, D: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Terms of the mean of e^{-D/tau} over the second atom, their sum, and the distance that is taken out of D."""
        tau, p = self.normalised, self.probability
        if self.diagonal:  # of which the smallest distance is 0
            terms = p * np.exp(-D / tau)
            return terms, terms.sum(axis=-1), np.zeros(D.shape[:-1])
        weight = self.weight / p[:, None]
        offset = np.min(np.where(weight > 0, D, np.inf), axis=-1)
        terms = weight * np.exp(-np.where(weight > 0, D - offset[..., None], 0.0) / tau)
        return terms, terms.sum(axis=-1), offset

    def shares(self, D: FloatArray) -> FloatArray:
        """Shares of the second atom in a normalised importance of the first, shape (..., atoms, atoms)."""
        terms, mean, _ = self._shares(D)
        return terms / mean[..., None]

    def importance(self, D: FloatArray, with_itself: bool = False) -> FloatArray:
        """M, the symmetric importance of pairs with their probabilities less `views`, shape (..., atoms, atoms).

        `with_itself` keeps pairs of an atom with itself, which are of two samples where an atom stands for many.
        """
        M = self.ordered(D)
        if self.normalised:
            M = 0.5 * (M + np.swapaxes(M, -1, -2))
        if self.views is not None:
            M = M - self.views
        return M if with_itself else _without_diagonal(M)

    def ordered(self, D: FloatArray) -> FloatArray:
        """Importance of ordered pairs of samples with their probabilities; the second of a pair is the one averaged."""
        if self.normalised:
            return np.asarray(self.probability[:, None] * self.shares(D))
        return np.asarray(self.weight * (np.ones_like(D) if self.kernel is None else self.kernel.value(D)))

    def response(self, D: FloatArray, u: FloatArray, v: FloatArray) -> FloatArray:
        """Change of 1/2 sum_ij M_ij u_ij when D changes by v_ij, shape (...).

        Parameters
        ----------
        D, u, v : ndarray, shape (..., atoms, atoms)
            u and v are symmetric.
        """
        if self.uniform:
            return np.zeros(np.shape(D)[:-2])
        if self.normalised:
            share = self.shares(D)
            mean_u, mean_v = np.sum(share * u, axis=-1), np.sum(share * v, axis=-1)
            covariance = np.sum(share * u * v, axis=-1) - mean_u * mean_v
            return np.asarray(-0.5 / self.normalised * (covariance @ self.probability))
        assert self.kernel is not None
        return np.asarray(0.5 * np.einsum("...ij,ij->...", self.kernel.slope(D) * u * v, self.weight))


def _without_diagonal(M: FloatArray) -> FloatArray:
    """Importance of pairs of different atoms; what is left would cancel where it is used, and leave its rounding."""
    diagonal = np.arange(M.shape[-1])
    M[..., diagonal, diagonal] = 0.0
    return M


def laplacian(M: FloatArray) -> FloatArray:
    """Matrix L with 1/2 sum_ij M_ij (a_i - a_j)(b_i - b_j) = a.L b."""
    L = -M
    diagonal = np.arange(M.shape[-1])
    L[..., diagonal, diagonal] += M.sum(axis=-1)
    return L


def of_views(sample: IntArray, probability: FloatArray) -> FloatArray:
    """Probabilities that two views of a sample are at two atoms, shape (atoms, atoms).

    Parameters
    ----------
    sample : ndarray of int, shape (atoms,)
        Sample that each atom is a view of.
    probability : ndarray, shape (atoms,)
    """
    own = np.bincount(sample, probability)[sample]
    return np.where(sample[:, None] == sample, np.outer(probability, probability / own), 0.0)


def check_views(importance: Importance) -> None:
    """Refuse importances with which samples that have different views have no objective of pairs.

    Raises
    ------
    InputError
    """
    if importance.kind == "quadratic":
        return
    if importance.kind in NORMALISED and importance.argument == "views":
        return
    key = (
        f"importance.argument = '{importance.argument}' with importance.kind = '{importance.kind}'"
        if importance.kind in NORMALISED
        else f"importance.kind = '{importance.kind}'"
    )
    raise InputError(
        f"{key} is no importance of pairs of views whose sum is the same for all samples, so that data with augmented "
        "views have no such limit of one layer; take importance.kind = 'infonce' with importance.argument = 'views', "
        "or 'quadratic', or solve by particles"
    )


def half_squares(h: FloatArray) -> FloatArray:
    """Half the squared difference of every two atoms, shape (..., atoms, atoms)."""
    return 0.5 * (h[..., :, None] - h[..., None, :]) ** 2


def make_pairs(importance: Importance, probability: FloatArray) -> Pairs:
    """Importance of a problem in the limit of large batches.

    Raises
    ------
    InputError
        If it has no such limit, or one that is not smooth.
    """
    kind, tau = importance.kind, importance.temperature
    include = importance.diagonal == "include"
    if kind == "quadratic":
        return Pairs(probability)
    if kind in NORMALISED:
        return Pairs(probability, normalised=1.0 if kind == "tuplet" else tau, diagonal=include)
    if kind == "gaussian":
        return Pairs(probability, _gaussian(tau))
    if kind == "modified_triplet":
        return Pairs(probability, _sigmoid(1.0 / tau))
    if kind == "triplet":
        raise InputError(
            "importance.kind = 'triplet' jumps where d^2 is the margin, so that the limit has no smooth field; take "
            "'modified_triplet' or 'gaussian'"
        )
    if kind == "lifted":
        raise InputError(
            "importance.kind = 'lifted' grows with the logarithm of the batch size and has no limit; take 'infonce', "
            "or meanfield.alpha_contrastive.contrastive_covariance for a batch"
        )
    return Pairs(probability, _own(importance))


def _gaussian(tau: float) -> Kernel:
    return Kernel(lambda D: np.exp(-D / tau), lambda D: -np.exp(-D / tau) / tau, lambda D: -tau * np.expm1(-D / tau))


def _sigmoid(c: float) -> Kernel:
    """Importance c s (1 - s), s = sigmoid(-c D)."""

    def slope(D: FloatArray) -> FloatArray:
        s = expit(-c * D)
        return -c * c * s * (1.0 - s) * (1.0 - 2.0 * s)

    return Kernel(lambda D: c * expit(-c * D) * expit(c * D), slope, lambda D: np.asarray(0.5 * np.tanh(0.5 * c * D)))


def _own(importance: Importance) -> Kernel:
    own: Any = importance.own
    x, weight = np.polynomial.legendre.leggauss(64)  # of the integral over d^2

    def integral(D: FloatArray) -> FloatArray:
        nodes = 0.5 * (1.0 + x) * D[..., None]
        return 0.5 * D * (evaluate(own.value, nodes) @ weight)

    return Kernel(lambda D: evaluate(own.value, D), lambda D: evaluate(own.slope, D), integral)
