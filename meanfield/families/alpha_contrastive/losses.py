"""Pairwise losses of a batch, their importances, and the contrastive covariance (alpha_contrastive.md, section 1).

Losses are L = sum_i phi(sum_j psi(x_ij)) with x_ij = d_i^2 - d_ij^2 from half squared distances of outputs. The
gradient of each is -2 N^2 times that of E = tr C/2 with the importance alpha_ij = phi'(xi_i) psi'(x_ij) held fixed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from meanfield.arguments import as_number, wrong
from meanfield.errors import InputError
from meanfield.families.alpha_contrastive.weighing import PairLoss, half_squares, weighing_of
from meanfield.typing import BoolArray, FloatArray


@dataclass(frozen=True)
class ContrastiveCovariance:
    """Contrastive covariance of a batch.

    Parameters
    ----------
    importance : ndarray, shape (N, N)
        alpha_ij.
    matrix : ndarray
        C_alpha[a, b].
    energy : float
        E_alpha = tr C_alpha[f]/2 of the outputs.
    loss : float
        Loss of the batch; NaN for the Gaussian importance, which belongs to none.
    """

    importance: FloatArray
    matrix: FloatArray
    energy: float
    loss: float


def contrastive_covariance(
    outputs: ArrayLike,
    outputs_of_view: ArrayLike,
    importance: str | PairLoss = "quadratic",
    *,
    temperature: float = 1.0,
    epsilon: float = 0.0,
    diagonal: Literal["exclude", "include"] = "exclude",
    first: tuple[ArrayLike, ArrayLike] | None = None,
    second: tuple[ArrayLike, ArrayLike] | None = None,
    source: ArrayLike | None = None,
) -> ContrastiveCovariance:
    """Contrastive covariance C_alpha[a, b] of a batch of pairs of views, for any pairwise loss.

    Parameters
    ----------
    outputs, outputs_of_view : array_like, shape (N, d)
        Outputs f of the first view of each sample, and f' of the second.
    importance : str or PairLoss
        A name such as "infonce", or a loss of your own.
    temperature : float
        tau, and 1/c of "modified_triplet".
    epsilon : float
        Weight of the positive pair of "infonce"; margin of "triplet"; shift of "soft_triplet" and "lifted".
    diagonal : {"exclude", "include"}
        Whether pairs of a sample with itself count.
    first, second : (array_like, array_like), optional
        Values of a and b in both views, shapes (N, k); the outputs if nothing is said.
    source : array_like, shape (N, k), optional
        Outputs at the samples before augmentation, which the Gaussian importance compares; the first view if nothing is
        said.

    Returns
    -------
    ContrastiveCovariance

    Raises
    ------
    InputError
        If shapes do not fit, numbers are not finite, or the importance is unknown.

    Notes
    -----
    Source: alpha_contrastive.md, section 1, equation (C).

    Examples
    --------
    >>> import numpy as np
    >>> import meanfield
    >>> f = np.array([[1.0, 0.0], [0.5, 1.0], [-1.0, 0.5], [0.0, -1.0]])
    >>> view = np.array([[0.8, 0.1], [0.6, 0.7], [-0.9, 0.8], [0.3, -1.0]])
    >>> found = meanfield.alpha_contrastive.contrastive_covariance(f, view, "infonce", temperature=0.5)
    >>> print(f"{np.trace(found.matrix):.12f}")
    0.256196035780
    """
    f, view = _samples("outputs", outputs), _samples("outputs_of_view", outputs_of_view)
    _check_same("outputs_of_view", view.shape, f.shape)
    N = len(f)
    if N < 2:
        raise InputError(f"outputs has {N} sample(s), and a pair needs 2; give more")
    if diagonal not in ("exclude", "include"):
        raise InputError(f"diagonal = {diagonal!r:.40}: it is 'exclude' or 'include'")
    counts = np.ones((N, N), dtype=bool) if diagonal == "include" else ~np.eye(N, dtype=bool)
    alpha, loss = _weigh(f, view, importance, temperature, epsilon, counts, source)
    a, b = (
        (f, view) if given is None else _views(name, given) for name, given in (("first", first), ("second", second))
    )
    for name, pair in (("first", a), ("second", b)):
        _check_same(name, (len(pair[0]), *pair[1].shape), (N, *pair[0].shape))
    matrix = _covariance(alpha, a, b)
    energy = 0.5 * float(np.trace(_covariance(alpha, (f, view), (f, view))))
    return ContrastiveCovariance(alpha, matrix, energy, loss)


def _covariance(alpha: FloatArray, a: tuple[FloatArray, FloatArray], b: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Sum over pairs of alpha times products of differences, less that of differences of views."""
    rows, columns = alpha.sum(axis=1), alpha.sum(axis=0)
    x, y = a[0] - a[0].mean(axis=0), b[0] - b[0].mean(axis=0)  # differences are the same, with less rounding
    between = (x * (rows + columns)[:, None]).T @ y - x.T @ (alpha + alpha.T) @ y
    within = ((a[0] - a[1]) * rows[:, None]).T @ (b[0] - b[1])
    return np.asarray(between - within) / (2.0 * len(alpha) ** 2)


def _weigh(
    f: FloatArray,
    view: FloatArray,
    importance: str | PairLoss,
    temperature: float,
    epsilon: float,
    counts: BoolArray,
    source: ArrayLike | None,
) -> tuple[FloatArray, float]:
    """Importance of pairs, and the loss."""
    as_number(temperature, "temperature", "give a number greater than 0", above=0.0)
    least = 0.0 if importance == "infonce" else -math.inf
    as_number(epsilon, "epsilon", "give a finite number, for infonce 0 or more", least)
    if importance == "gaussian":
        g = f if source is None else _samples("source", source)
        _check_same("source", (len(g),), (len(f),))
        return np.where(counts, np.exp(-half_squares(g) / temperature), 0.0), float("nan")
    if source is not None:
        raise InputError("source is for importance = 'gaussian'; remove it")
    x = 0.5 * np.sum((f - view) ** 2, axis=1)[:, None] - half_squares(f)
    with np.errstate(over="ignore", invalid="ignore"):
        alpha, terms = weighing_of(importance, temperature, epsilon)(x, counts)
    if not np.all(np.isfinite(alpha)):
        raise InputError("the importance of a pair is not finite; lower the outputs, or raise the temperature")
    return alpha, float(np.sum(terms))


def _samples(name: str, given: ArrayLike) -> FloatArray:
    """Array of shape (N, k) of finite numbers.

    Raises
    ------
    InputError
    """
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is no array of numbers ({error}); give one of shape (N, d)") from error
    if values.ndim != 2 or not values.size:
        raise InputError(f"{name} has shape {values.shape}; give (N, d), one row per sample")
    if not np.all(np.isfinite(values)):
        raise InputError(f"{name} holds {values[~np.isfinite(values)][0]}; give finite numbers")
    return values


def _views(name: str, given: tuple[ArrayLike, ArrayLike]) -> tuple[FloatArray, FloatArray]:
    if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str) or len(given) != 2:
        raise wrong(name, given, "give two arrays of shape (N, k), the values in both views")
    return _samples(name, given[0]), _samples(name, given[1])


def _check_same(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if shape != wanted:
        raise InputError(f"{name} has shape {shape}, not {wanted}; give one row per sample in both views")
