"""Products with Jacobians of the layers of a network on a population, and what they say of operators that do not fit.

J_l(x) is the derivative of the last layer by the weights of layer l. `push` has its products with a step of these
weights, and `pull` those with a derivative by the last layer, summed over views; no matrix is kept.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg
from numpy.random import Generator
from scipy.stats import chi2

from meanfield.networks.dense import DenseWeights, forward, gradient, signals
from meanfield.networks.normalisation import Normalisation
from meanfield.networks.population import Views
from meanfield.process.progress import counted
from meanfield.typing import FloatArray


class Jacobians(ABC):
    """A network at its weights, on the views of a population.

    `W` are the weights by layer, and `last` is the last layer, shape (views, outputs).
    """

    W: list[FloatArray]
    last: FloatArray

    @abstractmethod
    def last_of(self, x: FloatArray) -> FloatArray:
        """Last layer for other inputs."""

    @abstractmethod
    def gradient(self, by_last: FloatArray) -> list[FloatArray]:
        """Derivatives by the weights of layers of what has the derivative `by_last` by the last layer."""

    @abstractmethod
    def push(self, layer: int, steps: FloatArray) -> FloatArray:
        """Changes of the last layer, shape (..., views, outputs), while the weights of a layer take steps in rows."""

    @abstractmethod
    def pull(self, layer: int, by_last: FloatArray) -> FloatArray:
        """The adjoint of `push`, shape (..., weights), of derivatives, shape (..., views, outputs)."""

    def pulls(self, by_last: FloatArray) -> list[FloatArray]:
        """What `pull` gives for all layers, in the shapes of their weights."""
        return self.gradient(by_last)

    def rounding(self, by_last: FloatArray) -> FloatArray:
        """Rounding of `pulls`, relative to what they give, by layer; 0 in double precision."""
        return np.zeros(len(self.W))

    def rests(self, normalisation: Normalisation, slope: FloatArray, main: FloatArray) -> list[FloatArray]:
        """What the gradient for a derivative `slope` by the outputs has beside that for `main`, by layer."""
        return self.gradient(normalisation.back(self.last, slope - main))


class DenseJacobians(Jacobians):
    """See `Jacobians`; of a dense network."""

    def __init__(self, weights: DenseWeights, x: FloatArray) -> None:
        self._weights, self._found = weights, forward(weights, x)
        self.W, self.last = weights.W, self._found.last

    def last_of(self, x: FloatArray) -> FloatArray:
        """See `Jacobians.last_of`."""
        return np.asarray(forward(self._weights, x).last)

    def gradient(self, by_last: FloatArray) -> list[FloatArray]:
        """See `Jacobians.gradient`."""
        return gradient(self._weights, self._found, by_last).W

    def push(self, layer: int, steps: FloatArray) -> FloatArray:
        """See `Jacobians.push`."""
        u = self._found.inputs[layer] @ steps.reshape(*steps.shape[:-1], *self.W[layer].shape).swapaxes(-1, -2)
        for inputs, W in zip(self._found.inputs[layer + 1 :], self.W[layer + 1 :], strict=True):
            u = (u * (inputs > 0.0)) @ W.T
        return np.asarray(u)

    def pull(self, layer: int, by_last: FloatArray) -> FloatArray:
        """See `Jacobians.pull`."""
        by_before = signals(self._weights, self._found, by_last)[layer]
        found = by_before.swapaxes(-1, -2) @ self._found.inputs[layer]
        return np.asarray(found.reshape(*by_last.shape[:-2], -1))


class Products(Protocol):
    """Products with a square matrix."""

    size: int

    def apply(self, steps: FloatArray) -> FloatArray:
        """The matrix times steps, shape (..., size)."""


class LayerProducts:
    """Products with the covariance operator OP = sum_xx' M(x, x') K(x) K'(x')^T of one layer.

    Parameters
    ----------
    M : ndarray, shape (views, views)
        Symmetric.
    """

    def __init__(self, jacobians: Jacobians, layer: int, M: FloatArray, normalisation: Normalisation) -> None:
        self._jacobians, self._layer, self._M, self.normalisation = jacobians, layer, M, normalisation
        self.size = jacobians.W[layer].size
        self._gain = normalisation.gain(jacobians.last)

    def apply(self, steps: FloatArray) -> FloatArray:
        """OP times steps, shape (..., weights)."""
        return self._from(self._gain * self._jacobians.push(self._layer, steps))

    def bypass(self, outputs: FloatArray) -> FloatArray:
        """OP vec W less its value if the weights of the layer carried all of the outputs."""
        carried = self._gain * self._jacobians.push(self._layer, self._jacobians.W[self._layer].ravel())
        return self._from(outputs - carried)

    def mixed(self, outputs: FloatArray) -> FloatArray:
        """Derivative by the last layer, shape (..., views, outputs), of which OP is the pull."""
        return self.normalisation.back(self._jacobians.last, self._M @ outputs)

    def _from(self, outputs: FloatArray) -> FloatArray:
        return self._jacobians.pull(self._layer, self.mixed(outputs))


class Estimate(NamedTuple):
    """Estimates of the norm and of the largest real part of an eigenvalue, 0 if all are negative, with their errors."""

    norm: float
    norm_error: float
    top: float
    top_error: float


def spreads(
    jacobians: Jacobians, views: Views, normalisation: Normalisation, rng: Generator
) -> tuple[FloatArray, FloatArray]:
    """Squared sizes of random sums of connections, whose means are the traces of VE and EV, by sum and layer.

    Views of the whole belong to one sample each.

    Notes
    -----
    Means of n samples are off by 1/sqrt(n), relative to them, where values of samples vary as much as they are large.
    Sums are no longer drawn where what they are off by is less than that for all layers.
    """
    p, P, root = views.p[:, None], views.whole, np.sqrt(views.whole)
    gain, outputs = normalisation.gain(jacobians.last), jacobians.last.shape[1]

    def between() -> FloatArray:
        of_samples = np.sqrt(p) * rng.standard_normal((TOGETHER, len(p), outputs))
        return np.asarray(P.T @ (of_samples - p * of_samples.sum(axis=1, keepdims=True)))

    def within() -> FloatArray:
        of_views = rng.standard_normal((TOGETHER, P.shape[1], outputs))
        return np.asarray((root.T @ np.sqrt(p)) * of_views - P.T @ (np.sqrt(p) * (root @ of_views)))

    def sizes(draw: Callable[[], FloatArray]) -> FloatArray:
        found: list[FloatArray] = []
        for _ in counted(range(MOST_SUMS // TOGETHER), "traces", "sums"):
            pulled = jacobians.pulls(gain * draw())
            found += list(np.transpose([(part * part).reshape(TOGETHER, -1).sum(axis=1) for part in pulled]))
            if len(found) % SUMS == 0 and np.all(error_of_trace(np.array(found)) <= np.mean(found, axis=0) / root_n):
                break
        return np.array(found)

    root_n = math.sqrt(len(p))
    return sizes(between), sizes(within)


SUMS, MOST_SUMS, TOGETHER = 32, 128, 4
"""Random sums of connections, after as many of which more of them may be left out; most of all; and drawn at once."""


def error_of_trace(sizes: FloatArray) -> FloatArray:
    """How far a trace may be from the mean of squared sizes of random sums.

    Parameters
    ----------
    sizes : ndarray, shape (sums, ...)

    Notes
    -----
    A squared size is a sum of squares of Gaussian numbers times eigenvalues, for which the law of as many equal ones
    stands as have its spread, at least one. Two traces in a thousand are further off with 128 sums, or with as many
    as `spreads` draws, and seven in a thousand with 24, whatever the eigenvalues.
    """
    mean, variance = sizes.mean(axis=0), sizes.var(axis=0, ddof=1)
    alike = np.maximum(2.0 * mean * mean / np.maximum(variance, 1e-300), 1.0)
    squares = len(sizes) * alike
    # A mean is above by less than it is below, as a ratio, with the same chance.
    return np.asarray(mean * (squares / chi2.ppf(0.0005, squares) - 1.0))


COLUMNS, BLOCKS = 3, 6
"""Columns of a block, and blocks of the space on which an operator is known."""

PROBES = 24
"""Random steps that say what an operator does outside of that space."""


def estimate(products: Products, rng: Generator) -> Estimate:
    """Norm and top of an operator from some forty products with random steps and with what they lead to.

    A block Krylov space with orthonormal columns V begins with products of Gaussian steps. The operator is known on it;
    what it does to Gaussian probes, less their part in V, gives the rest of the squared norm without bias (P. G.
    Martinsson and J. A. Tropp, Acta Numerica 29, 403 (2020), sections 4 and 15); see `error_of_trace`. `top` is a Ritz
    value, and the residual of its vector times the condition of the eigenvalue, 1 for symmetric operators, says how
    near an eigenvalue is. Its error is ten times that: a larger eigenvalue is further away if all columns at the
    start have less than a tenth as much of its vector, which happens once in a thousand times.
    """
    H = np.zeros((COLUMNS * (BLOCKS + 2), COLUMNS * (BLOCKS + 1)))
    start = _images(products, rng.standard_normal((products.size, COLUMNS)))
    scale, known = float(np.linalg.norm(start)), 0
    V = _orthonormal(start, scale)
    while known < min(V.shape[1], COLUMNS * BLOCKS):
        there, images = V.shape[1], _images(products, V[:, known:])
        for _ in range(2):  # the second time takes what rounding has left
            part = V.T @ images
            images -= V @ part
            H[:there, known:there] += part
        new = _orthonormal(images, scale)
        H[there : there + new.shape[1], known:there] = new.T @ images
        V, known = np.hstack([V, new]), there
    H = H[: V.shape[1], :known]
    outside = np.empty((PROBES // COLUMNS, COLUMNS))
    for squares_outside in outside:
        probes = rng.standard_normal((COLUMNS, products.size)).T
        probes -= V[:, :known] @ (V[:, :known].T @ probes)
        squares_outside[:] = (_images(products, probes) ** 2).sum(axis=0)
    squares, (top, off) = float((H * H).sum() + outside.mean()), _top(H)
    norm = math.sqrt(squares)
    return Estimate(norm, math.sqrt(squares + float(error_of_trace(outside.ravel()))) - norm, top, 10.0 * off)


def _images(products: Products, steps: FloatArray) -> FloatArray:
    return products.apply(steps.T).T


def _orthonormal(columns: FloatArray, scale: float) -> FloatArray:
    """Orthonormal columns that span others, but for those which are rounding on a scale."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-12 * scale])


def _top(H: FloatArray) -> tuple[float, float]:
    """Largest real part of a Ritz value, and its error, from images of some columns by these and by further ones."""
    known = H.shape[1]
    if not known:
        return 0.0, 0.0
    solved: Any = scipy.linalg.eig(H[:known], left=True, right=True)
    values, lefts, rights = solved
    place = int(np.argmax(values.real))
    left, right = lefts[:, place], rights[:, place]
    residual = float(np.linalg.norm(H[known:] @ right))
    return max(float(values[place].real), 0.0), residual / max(float(abs(np.vdot(left, right))), 1e-300)
