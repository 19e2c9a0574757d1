"""Estimates of what a problem needs from samples and weights: features, laws of hidden variables, starts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from meanfield.ensembles.own_runs import check_lengths
from meanfield.errors import InputError
from meanfield.numerics.quadrature import gauss_rules
from meanfield.samples.assumed import Assumed
from meanfield.samples.evidence import Evidence
from meanfield.typing import FloatArray

NODES = 8
"""Number of values of a law that stands for samples: all their moments to the fifteenth are those of the samples."""

VARIANCE = "variance of a coordinate beside features"

Number = tuple[float, float]
"""Estimate and its standard error."""


def leading(x: FloatArray, wanted: int) -> tuple[FloatArray, FloatArray]:
    """Directions of the largest variance that stand out of the spectrum of white samples, |u|^2 = N, in the samples.

    Returns
    -------
    U : ndarray, shape (N, found)
    cosine : ndarray, shape (found,)
        Of each with the feature that it stands for (Baik, Ben Arous, Peche).
    """
    away = x - x.mean(axis=0)
    n, N = x.shape
    _, sizes, directions = np.linalg.svd(away, full_matrices=False)
    root = np.sqrt(n) + np.sqrt(N)
    scale = root * (1.0 / np.sqrt(n) + 1.0 / np.sqrt(N)) ** (1.0 / 3.0)
    noise = float((sizes[wanted:] ** 2).sum()) / n / (N - wanted)
    # Scales of Tracy and Widom above the edge of the spectrum of white samples from which an eigenvalue is a
    # direction's: white samples have one there once in 10,000 cases.
    count = int((sizes[:wanted] ** 2 > noise * (root**2 + 5.0 * scale)).sum())
    gamma = N / n
    ratio = sizes[:count] ** 2 / noise / n - 1.0 - gamma
    spike = 0.5 * (ratio + np.sqrt(ratio**2 - 4.0 * gamma))
    return np.sqrt(N) * directions[:count].T, np.sqrt((1.0 - gamma / spike**2) / (1.0 + gamma / spike))


class Measured(NamedTuple):
    """Fields of features that may be known in part.

    Parameters
    ----------
    fields : ndarray, shape (samples, features)
    cosine : ndarray, shape (features,)
        Of the directions of these fields with the features.
    assumed : Assumed
    """

    fields: FloatArray
    cosine: FloatArray
    assumed: Assumed

    def moments(self, k: int) -> tuple[Number, Number]:
        """E[c^2] and E[c^4] of a hidden variable, by cumulants without the noise of its field."""
        gain = self.cosine[k] ** 2
        noise = gain * self.assumed.along + (1.0 - gain) * self.assumed.noise
        squares = self.fields[:, k] ** 2
        second, fourth, n = float(squares.mean()), float((squares**2).mean()), len(squares)
        m2 = (second - noise) / gain
        m4 = (fourth - 3.0 * second**2) / gain**2 + 3.0 * m2**2
        return (m2, squares.std() / gain / n**0.5), (m4, (squares**2).std() / gain**2 / n**0.5)

    def is_exact(self, k: int) -> bool:
        """Whether the field is the hidden variable itself."""
        return bool(self.cosine[k] == 1.0 and self.assumed.along == 0.0)


def laws(measured: Measured, like: Any) -> tuple[dict[str, Number], dict[str, Any]]:
    """Moments of hidden variables, and the keys of their laws in the problem."""
    numbers: dict[str, Number] = {}
    keys: dict[str, Any] = {}
    if not measured.assumed.laws:
        return numbers, keys
    joint = like.hidden is not None
    for k in range(measured.fields.shape[1]):
        name = f"features[{k}].hidden"
        second, fourth = measured.moments(k)
        numbers |= {f"{name}: E[c^2]": second, f"{name}: E[c^4]": fourth}
        if not joint:
            keys[name] = law_of(measured.fields[:, k]) if measured.is_exact(k) else _law_by(second[0], fourth[0])
    if joint:
        if not all(measured.is_exact(k) for k in range(measured.fields.shape[1])):
            raise InputError("hidden: a joint law is not known along directions that were found; give features=...")
        rows, counts = np.unique(measured.fields, axis=0, return_counts=True)
        keys["hidden"] = {"law": "discrete", "values": rows.tolist(), "probabilities": (counts / counts.sum()).tolist()}
    return numbers, keys


def law_of(samples: FloatArray) -> dict[str, Any]:
    """Discrete law with the first moments of samples, or their own values, if these are few."""
    digits = 4 - int(np.floor(np.log10(max(float(np.abs(samples).max()), 1e-300))))
    values, counts = np.unique(np.round(samples, digits), return_counts=True)
    probabilities = counts / counts.sum()
    if len(values) > 2 * NODES:
        x, weight = gauss_rules(samples[None], np.full((1, len(samples)), 1.0 / len(samples)), NODES)
        values, probabilities = x[0], weight[0] / weight.sum()
    return {"law": "discrete", "values": values.tolist(), "probabilities": probabilities.tolist()}


def _law_by(second: float, fourth: float) -> dict[str, Any]:
    """Law with two moments: that of c is not known where noise is added to it."""
    second = max(second, 1e-6)
    return {"law": "three_point", "second_moment": second, "fourth_moment": max(fourth, second**2)}


def start_of(
    w: FloatArray, U: FloatArray, cosine: FloatArray, assumed: Assumed
) -> tuple[dict[str, Number], dict[str, Any]]:
    """Overlaps and norms of weights at the start; a feature that was found has the sign of its first overlap."""
    N, K = w.shape
    R = w.T @ U / N / np.sqrt((U**2).sum(axis=0) / N) / cosine
    R = np.where(cosine < 1.0, R * np.sign(R[0]), R)
    Q = w.T @ w / N
    error = np.sqrt(np.maximum(1.0 - cosine**2, 0.0) / N) / cosine
    numbers: dict[str, Number] = {}
    keys: dict[str, Any] = {}
    if not assumed.student_key:
        check_lengths("weights", np.diag(Q)[None])
    for k in range(R.shape[1]):
        key = f"features[{k}].initial_overlap"
        numbers |= {f"{key}{f'[{i}]' if K > 1 else ''}": (float(R[i, k]), float(error[k])) for i in range(K)}
        keys[key] = float(R[0, k]) if K == 1 else R[:, k].tolist()
    for i in range(K if assumed.student_key else 0):
        keys[f"{assumed.student_key}[{i}].initial_norm"] = float(Q[i, i])
        if i:
            keys[f"{assumed.student_key}[{i}].initial_overlap"] = Q[i, :i].tolist()
        numbers[f"{assumed.student_key}[{i}].initial_norm"] = float(Q[i, i]), 0.0
    return numbers, keys


def spectrum_of(e: Evidence) -> tuple[FloatArray, tuple[float, float]]:
    """Eigenvalues of the covariance beside features that samples can tell from 0, and the edges of white samples."""
    n, N = e.rest.shape
    away = e.rest - e.rest.mean(axis=0)
    count = min(n - 1, N - e.fields.shape[1])
    eigenvalues = np.linalg.eigvalsh(away @ away.T if n < N else away.T @ away)[::-1][:count].clip(min=0.0) / n
    gamma = (N / n) ** 0.5
    return eigenvalues, (e.assumed.noise * (1.0 - gamma) ** 2, e.assumed.noise * (1.0 + gamma) ** 2)
