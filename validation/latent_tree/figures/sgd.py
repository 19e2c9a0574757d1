"""Plain SGD of a deep network on a tree with two children for each latent, fast enough for hundreds of trees.

An epoch of 64000 samples at depth 5 takes 0.08 s of processor time with 10 nodes and 0.03 s with 2, where particles of
the library, in double precision, for any tree and loss, take 0.85 and 0.5: the studies would need two hours and not ten
minutes. It shares no code with the library, and is held against it step by step: single precision, all samples of a
batch side by side, and chances in units of 2^-16. Networks have biases and normalised outputs. The loss is InfoNCE with
one negative, or that of the public code.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.random import SFC64

from meanfield.typing import FloatArray

VIEWS = 3
"""Views of a step for each anchor: the anchor, a positive and a negative."""

AT_ONCE = 20
"""Number of steps whose random numbers are drawn at once, for the sake of caches."""


class Training(NamedTuple):
    """Loss and step of SGD.

    Parameters
    ----------
    batch_ratio : bool
        The loss of the public code, else InfoNCE.
    temperature, epsilon, rate : float
    batch : int
        Anchors per step.
    """

    batch_ratio: bool
    temperature: float
    epsilon: float
    rate: float
    batch: int


class Net(NamedTuple):
    """Weights and biases by level from 1 on, which SGD changes in place.

    Parameters
    ----------
    W : tuple of ndarray of float32, shape (latents, nodes, inputs)
    b : tuple of ndarray of float32, shape (latents, nodes)
    """

    W: tuple[FloatArray, ...]
    b: tuple[FloatArray, ...]


def moves_of(polarities: tuple[FloatArray, ...]) -> FloatArray:
    """Chances, in units of 2^-16, that latents differ from their parents, from the children of the root down.

    Parameters
    ----------
    polarities : tuple of ndarray
        By level from the leaves up, as those of a problem.
    """
    chances = 0.5 * (1.0 - np.concatenate(polarities[::-1]))
    return np.minimum(np.round(chances * 2**16), 2**16 - 1).astype(np.uint16)


def advance(net: Net, moves: FloatArray, training: Training, seed: tuple[int, ...], steps: int) -> None:
    """Take steps with fresh samples."""
    random, samples = SFC64(seed), VIEWS * training.batch
    numbers = len(moves) + 1
    layers = _layers(net, samples)
    values = np.empty((numbers, samples), np.uint8)
    for first in range(0, steps, AT_ONCE):
        count = min(AT_ONCE, steps - first)
        bits = random.random_raw(-(-count * numbers * samples // 4)).view(np.uint16)[: count * numbers * samples]
        _advance(net, layers, moves, bits.reshape(count, numbers, samples), values, training)


def _layers(net: Net, samples: int) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    """Room for activations, leaves first, and for the derivatives by them."""
    inputs = net.W[0].shape[0] * net.W[0].shape[2]
    sizes = [inputs, *(b.size for b in net.b)]
    x, g = ([np.zeros((size, samples), np.float32) for size in sizes] for _ in range(2))
    return tuple(x), tuple(g)


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _advance(net, layers, moves, bits, values, training):  # type: ignore[no-untyped-def]
    """Steps of SGD, one for each of the leading dim of `bits`."""
    for step in range(bits.shape[0]):
        draw(moves, bits[step], values, layers[0][0])
        gradient_step(net, layers, training)


@numba.njit(cache=True, error_model="numpy")
def draw(moves, bits, values, leaves):  # type: ignore[no-untyped-def]
    """Leaves of a batch: anchors, positives with the same roots, and negatives with roots of their own.

    Parameters
    ----------
    moves : ndarray of uint16, shape (edges,)
    bits : ndarray of uint16, shape (edges + 1, samples)
    values : ndarray of uint8, shape (edges + 1, samples)
        Room for the values of latents, the root first.
    leaves : ndarray of float32, shape (leaves, samples)
    """
    edges, samples = len(moves), bits.shape[1]
    batch = samples // VIEWS
    for s in range(samples):
        values[0, s] = bits[edges, s % batch if s < 2 * batch else s] & 1
    for edge in range(edges):
        above, value, bit, move = values[edge // 2], values[edge + 1], bits[edge], moves[edge]
        for s in range(samples):
            value[s] = above[s] ^ np.uint8(bit[s] < move)
    first = edges + 1 - len(leaves)
    for leaf in range(len(leaves)):
        value, x = values[first + leaf], leaves[leaf]
        for s in range(samples):
            x[s] = np.float32(value[s])


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def gradient_step(net, layers, training):  # type: ignore[no-untyped-def]
    """One step with the batch whose leaves are in the first layer."""
    x, g = layers
    W, b = net
    depth, rate = len(W), np.float32(training.rate)
    for level in range(depth):
        _forward(W[level], b[level], x[level], x[level + 1], level < depth - 1)
    _slopes(x[depth], g[depth], training)
    for level in range(depth - 1, -1, -1):
        _backward(W[level], b[level], x[level], g[level], g[level + 1], rate, level > 0)


@numba.njit(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _forward(W, b, x, f, active):  # type: ignore[no-untyped-def]
    """Activations of a level; without ReLU at the root."""
    latents, nodes, inputs = W.shape
    samples = x.shape[1]
    for m in range(latents):
        out = f[m * nodes : (m + 1) * nodes]
        np.dot(W[m], x[m * inputs : (m + 1) * inputs], out)
        for j in range(nodes):
            row, bias = out[j], b[m, j]
            for s in range(samples):
                row[s] += bias
                if active:
                    row[s] = max(row[s], np.float32(0.0))


@numba.njit(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _backward(W, b, x, by_x, by_f, rate, deeper):  # type: ignore[no-untyped-def]
    """Step of the weights of a level, and derivatives by its inputs before their ReLU."""
    latents, nodes, inputs = W.shape
    samples = x.shape[1]
    for m in range(latents):
        g, below = by_f[m * nodes : (m + 1) * nodes], x[m * inputs : (m + 1) * inputs]
        if deeper:
            out = by_x[m * inputs : (m + 1) * inputs]
            np.dot(W[m].T, g, out)
            for k in range(inputs):
                row, value = out[k], below[k]
                for s in range(samples):
                    row[s] = row[s] if value[s] > 0 else np.float32(0.0)
        W[m] -= rate * np.dot(g, below.T)
        for j in range(nodes):
            total = np.float32(0.0)
            for s in range(samples):
                total += g[j, s]
            b[m, j] -= rate * total


@numba.njit(error_model="numpy")
def _slopes(f, g, training):  # type: ignore[no-untyped-def]
    """Derivatives of the mean loss of a batch by the last layer f, which becomes y = f/(|f| + epsilon)."""
    nodes, batch = f.shape[0], training.batch
    length, gain = np.zeros(VIEWS * batch), np.zeros(VIEWS * batch)
    for s in range(VIEWS * batch):
        square = 0.0
        for i in range(nodes):
            square += f[i, s] ** 2
        length[s] = math.sqrt(square)
        gain[s] = 1.0 / (length[s] + training.epsilon) if square > 0.0 else 0.0
        for i in range(nodes):
            f[i, s] *= gain[s]
    weight = _weights(f, training)
    for a in range(batch):
        p, n = batch + a, 2 * batch + a
        for i in range(nodes):
            g[i, a] = weight[a] * (f[i, n] - f[i, p])
            g[i, p] = weight[a] * (f[i, p] - f[i, a])
            g[i, n] = weight[a] * (f[i, a] - f[i, n])
    for s in range(VIEWS * batch):
        along = 0.0
        for i in range(nodes):
            along += g[i, s] * f[i, s]
        if gain[s] > 0.0 and length[s] > 0.0:
            along /= gain[s] * length[s]
        for i in range(nodes):
            g[i, s] = gain[s] * (g[i, s] - along * f[i, s])


@numba.njit(error_model="numpy")
def _weights(y, training):  # type: ignore[no-untyped-def]
    """Derivatives of the mean loss by the positive distances r = |y - y'|^2/2; minus those by the negative ones."""
    batch, tau = training.batch, training.temperature
    weight, excess = np.empty(batch), 0.0
    for a in range(batch):
        r = 0.0
        for i in range(y.shape[0]):
            r += 0.5 * ((y[i, a] - y[i, batch + a]) ** 2 - (y[i, a] - y[i, 2 * batch + a]) ** 2)
        excess += r / batch
        weight[a] = 1.0 / (1.0 + math.exp(-r / tau)) / (tau * batch)
    if training.batch_ratio:
        scale = 2.0 / (y.shape[0] * tau)
        share = 1.0 / (1.0 + math.exp(scale * excess))
        weight[:] = scale * share * (1.0 - share) / batch
    return weight
