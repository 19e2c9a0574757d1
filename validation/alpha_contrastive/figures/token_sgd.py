"""SGD of a network of two layers on tokens, compiled.

A place holds one of few tokens, so that a batch enters through the number of times that each token is there: filters,
their normalisation and their products with the top are worked out once for each token of a place and not for each
sample, which takes a twelfth of the work. Independent of the library, which it judges.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from validation.alpha_contrastive.figures.two_layers import (
    ACTIVATIONS,
    BATCH,
    MOMENTUM,
    NORMALISATIONS,
    TEMPERATURE,
    Array,
    Setting,
    draw_generators,
    draw_weights,
)

LEAK, EPSILON = 0.05, 1e-5
"""Slope of leaky_relu, and what batch normalisation adds to a variance."""


@njit(cache=True, fastmath=True)
def product(a, b):
    """Scalar product; a library's takes longer to call than to work out."""
    total = a[0] * b[0]
    for o in range(1, len(a)):
        total += a[o] * b[o]
    return total


@njit(cache=True, fastmath=True)
def activate(kind, z, h, slope):
    """Outputs and slopes of the activation with a number, at tokens of one place."""
    for a in range(z.shape[0]):
        for m in range(z.shape[1]):
            x = z[a, m]
            if kind == 0:
                h[a, m], slope[a, m] = max(x, 0.0), 1.0 if x > 0.0 else 0.0
            elif kind == 1:
                h[a, m], slope[a, m] = x, 1.0
            elif kind == 2:
                h[a, m], slope[a, m] = (x, 1.0) if x > 0.0 else (LEAK * x, LEAK)
            elif kind == 3:
                h[a, m], slope[a, m] = x * x, 2.0 * x
            else:
                s = 1.0 / (1.0 + math.exp(-x))
                h[a, m], slope[a, m] = s, s * (1.0 - s)


@njit(cache=True, fastmath=True)
def normalise(kind, h, share, out, deviation):
    """Outputs of filters at tokens of one place, batch-normalised by the shares of the tokens in a view."""
    for m in range(h.shape[1]):
        mean, square = 0.0, 0.0
        for a in range(h.shape[0]):
            mean += share[a] * h[a, m]
        for a in range(h.shape[0]):
            square += share[a] * (h[a, m] - mean) ** 2
        deviation[m] = math.sqrt(square + EPSILON)
        if kind == 0:
            mean, deviation[m] = 0.0, 1.0
        for a in range(h.shape[0]):
            out[a, m] = (h[a, m] - mean) / deviation[m]


@njit(cache=True, fastmath=True)
def normalise_back(kind, force, out, share, deviation, slope, lengths, gradient):
    """Adds the gradient by filters to `gradient`, from that by normalised outputs, summed over samples of a token."""
    through_mean, through_variance = kind >= 3, kind == 2 or kind == 4
    for m in range(force.shape[1]):
        mean, along = 0.0, 0.0
        for a in range(force.shape[0]):
            mean += force[a, m]
            along += force[a, m] * out[a, m]
        for a in range(force.shape[0]):
            pull = force[a, m]
            if through_mean:
                pull -= share[a] * mean
            if through_variance:
                pull -= share[a] * out[a, m] * along
            gradient[a, m] += pull / deviation[m] * slope[a, m] * lengths[a]


@njit(cache=True, fastmath=True)
def pair_loss(quadratic, z, view, to_z, to_view):
    """Loss of unit outputs of both views, and its gradients."""
    N = z.shape[0]
    similarity = np.dot(z, z.T)
    loss = 0.0
    for i in range(N):
        similarity[i, i] = product(z[i], view[i])
        if quadratic:
            for j in range(N):
                loss += similarity[i, j] / N**2
                similarity[i, j] = 1.0 / N**2
            loss -= (1.0 + 1.0 / N) * product(z[i], view[i]) / N
            similarity[i, i] -= (1.0 + 1.0 / N) / N
        else:
            total = 0.0
            positive = similarity[i, i]
            for j in range(N):
                similarity[i, j] = math.exp((similarity[i, j] - 1.0) / TEMPERATURE)
                total += similarity[i, j]
            loss += (math.log(total) - (positive - 1.0) / TEMPERATURE) / N
            for j in range(N):
                similarity[i, j] /= total * N * TEMPERATURE
            similarity[i, i] -= 1.0 / (N * TEMPERATURE)
    own = np.diag(similarity).copy()
    for i in range(N):
        similarity[i, i] = 0.0
    to_z[:] = np.dot(similarity + similarity.T, z)
    for i in range(N):
        for o in range(z.shape[1]):
            to_z[i, o] += own[i] * view[i, o]
            to_view[i, o] = own[i] * z[i, o]
    return loss


@njit(cache=True, fastmath=True)
def loss_and_gradient(w, V, tokens, lengths, activation, normalisation, quadratic):
    """Loss of a batch of tokens, shape (2, N, places), and its gradients by filters and top."""
    K, d, M = w.shape
    outputs, N = V.shape[2], tokens.shape[1]
    y = np.zeros((2, N, outputs), w.dtype)
    out = np.empty((2, K, d, M), w.dtype)
    slope = np.empty((K, d, M), w.dtype)
    deviation = np.empty((2, K, M), w.dtype)
    share = np.zeros((2, K, d), w.dtype)
    h = np.empty((d, M), w.dtype)
    for v in range(2):
        for i in range(N):
            for k in range(K):
                share[v, k, tokens[v, i, k]] += 1.0 / N
    for k in range(K):
        activate(activation, w[k] * lengths[:, None], h, slope[k])
        for v in range(2):
            normalise(normalisation, h, share[v, k], out[v, k], deviation[v, k])
            top = np.dot(out[v, k], V[k])
            for i in range(N):
                for o in range(outputs):
                    y[v, i, o] += top[tokens[v, i, k], o]
    norm = np.empty((2, N), w.dtype)
    for v in range(2):
        for i in range(N):
            norm[v, i] = math.sqrt(product(y[v, i], y[v, i])) + 1e-12
            for o in range(outputs):
                y[v, i, o] /= norm[v, i]
    force = np.empty((2, N, outputs), w.dtype)
    loss = pair_loss(quadratic, y[0], y[1], force[0], force[1])
    for v in range(2):
        for i in range(N):
            radial = product(force[v, i], y[v, i])
            for o in range(outputs):
                force[v, i, o] = (force[v, i, o] - radial * y[v, i, o]) / norm[v, i]
    to_w, to_V = np.zeros((K, d, M), w.dtype), np.zeros((K, M, outputs), w.dtype)
    for k in range(K):
        for v in range(2):
            to_top = np.zeros((d, outputs), w.dtype)
            for i in range(N):
                for o in range(outputs):
                    to_top[tokens[v, i, k], o] += force[v, i, o]
            to_V[k] += np.dot(out[v, k].T, to_top)
            to_out = np.dot(to_top, V[k].T)
            normalise_back(normalisation, to_out, out[v, k], share[v, k], deviation[v, k], slope[k], lengths, to_w[k])
    return loss, to_w, to_V


@njit(cache=True)
def draw_batch(generators, d, tokens):
    """Two views of each sample: one generator, and any token where it marks no place."""
    for i in range(tokens.shape[1]):
        g = np.random.randint(0, generators.shape[0])  # noqa: NPY002
        for k in range(tokens.shape[2]):
            for v in range(2):
                marked = generators[g, k]
                tokens[v, i, k] = marked if marked >= 0 else np.random.randint(0, d)  # noqa: NPY002


@njit(cache=True, fastmath=True)
def descend(w, V, generators, lengths, activation, normalisation, quadratic, rate, decay, batches, seed):
    """Trains filters and top in place; the mean loss of the last tenth of all batches."""
    np.random.seed(seed)  # noqa: NPY002
    tokens = np.empty((2, BATCH, generators.shape[1]), np.int64)
    speed_w, speed_V = np.zeros_like(w), np.zeros_like(V)
    last, recent = max(1, batches // 10), 0.0
    for step in range(batches):
        draw_batch(generators, w.shape[1], tokens)
        loss, to_w, to_V = loss_and_gradient(w, V, tokens, lengths, activation, normalisation, quadratic)
        speed_w[:] = MOMENTUM * speed_w + to_w + decay * w
        speed_V[:] = MOMENTUM * speed_V + to_V + decay * V
        w -= rate * speed_w
        V -= rate * speed_V
        if step >= batches - last:
            recent += loss / last
    return recent


def train(setting: Setting) -> tuple[Array, Array, Array, float]:
    """Filters, shape (places, tokens, filters), top, generators, and the loss at the end of training."""
    rng = np.random.default_rng([setting.seed, setting.patterns])
    _, generators = draw_generators(setting, rng)
    w, V = (part.astype(np.float32) for part in draw_weights(setting, rng))
    loss = descend(
        w,
        V,
        generators,
        setting.lengths.astype(np.float32),
        ACTIVATIONS.index(setting.activation),
        NORMALISATIONS.index(setting.normalisation),
        setting.loss == "quadratic",
        np.float32(setting.rate),
        np.float32(setting.decay),
        setting.batches,
        setting.seed,
    )
    return w.astype(float), V.astype(float), generators, loss
