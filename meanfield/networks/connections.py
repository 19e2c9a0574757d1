"""Covariance operators of the layers of a dense network over a finite population of views (latent_tree.md, 1.3).

The connection of a layer for a view x is K(x) = f(x) J(x), the inputs of the layer times the derivative of the outputs
by its pre-activations. By the weights of a layer a loss has the gradient -2 sum_xx' M(x, x') K(x) y(x'), with outputs y
and a symmetric matrix M, so that without biases it is -2 OP vec W with OP = sum_xx' M(x, x') K(x) K'(x')^T. K' are the
connections divided by |f| where outputs are normalised, and K also follow the normalisation; else they are the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from meanfield.networks.dense import Activity, DenseWeights, forward, signals
from meanfield.networks.normalisation import Normalisation
from meanfield.networks.population import Evaluation, Views
from meanfield.typing import FloatArray


def pair_matrix(evaluation: Evaluation, views: Views) -> FloatArray:
    """Matrix M with which a loss has the derivative -2 M y by the outputs y, shape (views, views).

    Parameters
    ----------
    views : Views
        Of one part.
    """
    if evaluation.pull is not None:
        both = evaluation.pull(np.eye(len(views.whole[0])))
        return 0.5 * (both - np.diag(both.sum(axis=1)))
    assert evaluation.between is not None
    p, P = views.p, views.whole
    M = P.T @ weighted(p, evaluation.between) @ P
    if evaluation.within != 0.0:
        M -= evaluation.within * (np.diag(p @ P) - P.T @ (p[:, None] * P))
    return M


def weighted(p: FloatArray, weight: FloatArray) -> FloatArray:
    """Matrix of (1/2) sum p p' weight (m - m')^2 as a quadratic form in the means m of samples."""
    pairs = p[:, None] * p * weight
    return np.diag(pairs.sum(axis=1)) - pairs


class Operator(NamedTuple):
    """Covariance operator OP = left^T diag(sign) right of one layer.

    Parameters
    ----------
    left, right : ndarray, shape (columns, weights)
    sign : ndarray, shape (columns,)
    """

    left: FloatArray
    right: FloatArray
    sign: FloatArray

    @property
    def kernel(self) -> FloatArray:
        """Matrix diag(sign) right left^T, which has the eigenvalues of OP except for those that are 0.

        Where `left` is `right` and all signs are positive, it is the tangent kernel of the layer, centred.
        """
        return self.sign[:, None] * (self.right @ self.left.T)

    @property
    def norm(self) -> float:
        """Frobenius norm."""
        left, right = self.left @ self.left.T, self.right @ self.right.T
        signs = self.sign[:, None] * self.sign
        return float(np.sqrt(max(np.sum(left * right * signs), 0.0)))

    @property
    def top(self) -> float:
        """Largest real part of an eigenvalue; 0 where all others are negative."""
        if self.left is not self.right:
            return max(float(np.linalg.eigvals(self.kernel).real.max()), 0.0)
        G, last = self.left @ self.left.T, len(self.sign) - 1
        if (self.sign < 0.0).any():
            values, vectors = np.linalg.eigh(G)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            G = root.T @ (self.sign[:, None] * root)
        return max(float(scipy.linalg.eigh(G, eigvals_only=True, subset_by_index=(last, last))[0]), 0.0)


class Connections:
    """Connections of all layers for all views of a population.

    Parameters
    ----------
    weights : DenseWeights
        Of one network.
    x : ndarray, shape (views, inputs)
    """

    def __init__(self, weights: DenseWeights, x: FloatArray, normalisation: Normalisation) -> None:
        self.weights, self.found = weights, forward(weights, x)
        last = self.found.last
        self._outputs = last.shape[1]
        unit = np.broadcast_to(np.eye(last.shape[1])[:, None, :], (last.shape[1], *last.shape))
        self._right: Any = signals(weights, self.found, normalisation.gain(last) * unit)
        self._left: Any = (
            signals(weights, self.found, normalisation.back(last, unit)) if normalisation.active else self._right
        )

    @property
    def activity(self) -> Activity:
        """Values of all nodes."""
        return self.found

    def operator(self, layer: int, M: FloatArray) -> Operator:
        """Operator of a layer, counted from 0, for a matrix M of views."""
        values, vectors = np.linalg.eigh(M)
        kept = np.abs(values) > 1e-13 * np.abs(values).max()  # smaller eigenvalues of M are rounding
        rows = (vectors[:, kept] * np.sqrt(np.abs(values[kept]))).T
        right = self._mixed(self._right, layer, rows)
        left = right if self._left is self._right else self._mixed(self._left, layer, rows)
        return Operator(left, right, np.repeat(np.sign(values[kept]), self._outputs))

    def spread(self, layer: int, views: Views) -> tuple[float, float]:
        """Traces of VE, the variance of mean connections between samples, and EV, the mean of that of their views."""
        squares = self._squares(layer)
        means = self._mixed(self._right, layer, views.whole).reshape(len(views.p), -1)
        mean_squares = float(views.p @ (means * means).sum(axis=1))
        mean = views.p @ means
        return mean_squares - float(mean @ mean), float(views.p @ views.whole @ squares) - mean_squares

    def _squares(self, layer: int) -> FloatArray:
        """Squared norms of the connections of views, shape (views,)."""
        J, f = self._right[layer], self.found.inputs[layer]
        return np.asarray((f * f).sum(axis=1) * (J * J).sum(axis=(0, 2)))

    def _mixed(self, side: Any, layer: int, rows: FloatArray) -> FloatArray:
        """Sums over views of connections with the weights in each row, shape (rows outputs, weights)."""
        J, f = side[layer], self.found.inputs[layer]
        outputs, views, nodes = J.shape
        flat = np.moveaxis(J, 1, 2).reshape(outputs * nodes, views)
        mixed = np.empty((len(rows), outputs * nodes, f.shape[1]))
        for number, row in enumerate(rows):
            some = np.flatnonzero(row)
            np.matmul(flat[:, some] * row[some], f[some], out=mixed[number])
        return mixed.reshape(len(rows) * outputs, nodes * f.shape[1])
