"""SGD of a network of two layers on images whose quarters are its four places, with ReLU and batch normalisation.

The same protocol as on tokens (`two_layers`), in plain NumPy: small batches of dense inputs.
"""

from __future__ import annotations

import numpy as np

from validation.alpha_contrastive.figures.token_sgd import EPSILON
from validation.alpha_contrastive.figures.two_layers import MOMENTUM, OUTPUTS, TEMPERATURE, Array

FIELDS = 4


def quarters(images: Array) -> Array:
    """Upper left, upper right, lower left and lower right of square images, shape (images, 4, pixels)."""
    half = images.shape[1] // 2
    parts = images.reshape(len(images), 2, half, 2, half).transpose(0, 1, 3, 2, 4)
    return np.ascontiguousarray(parts.reshape(len(images), FIELDS, half * half))


def random_crops(images: Array, rng: np.random.Generator) -> Array:
    """Each image cropped at random to 0.5 to 1 of its area, sides 0.5 to 1.5 to each other, and resized bilinearly."""
    size = images.shape[1]
    scale, log_ratio = rng.uniform(0.5, 1.0, len(images)), rng.uniform(np.log(0.5), np.log(1.5), len(images))
    height = np.minimum(size * np.sqrt(scale / np.exp(log_ratio)), size)
    width = np.minimum(size * np.sqrt(scale * np.exp(log_ratio)), size)
    rows = _places(rng.uniform(0.0, size - height), height, size)
    columns = _places(rng.uniform(0.0, size - width), width, size)
    return np.einsum("nij,njk,nlk->nil", rows, images, columns)


def _places(start: Array, length: Array, size: int) -> Array:
    """Weights of pixels of an image in those of its crop, along one side, shape (images, size, size)."""
    centre = start[:, None] + (np.arange(size) + 0.5) / size * length[:, None] - 0.5
    centre = np.clip(centre, 0.0, size - 1.0)
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(centre[:, :, None] - np.arange(size))))


def train_on_images(
    first: Array, second: Array, filters: int, batch: int, batches: int, rate: float, decay: float, seed: int
) -> Array:
    """Filters of each quarter after training with InfoNCE, shape (4, pixels, filters).

    Parameters
    ----------
    first, second : ndarray, shape (images, versions, 4, pixels)
        Versions of each image, of which each view of a sample is one at random.
    filters : int
        Filters of each quarter.
    batch, batches : int
    rate, decay : float
        Learning rate and weight decay.
    seed : int
    """
    rng, pixels = np.random.default_rng(seed), first.shape[-1]
    w = rng.uniform(-1.0, 1.0, (FIELDS, pixels, filters)) / np.sqrt(pixels)
    V = rng.uniform(-1.0, 1.0, (FIELDS * filters, OUTPUTS)) / np.sqrt(FIELDS * filters)
    speed_w, speed_V = np.zeros_like(w), np.zeros_like(V)
    for _ in range(batches):
        chosen = rng.integers(len(first), size=batch)
        one, other = rng.integers(first.shape[1], size=(2, batch))
        x = np.stack([first[chosen, one], second[chosen, other]])
        to_w, to_V = gradient(x, w, V)[1:]
        speed_w = MOMENTUM * speed_w + to_w + decay * w
        speed_V = MOMENTUM * speed_V + to_V + decay * V
        w, V = w - rate * speed_w, V - rate * speed_V
    return w


def gradient(x: Array, w: Array, V: Array) -> tuple[float, Array, Array]:
    """Loss of a batch, shape (2, N, 4, pixels), and gradients; those by batch statistics pass through means alone."""
    N = x.shape[1]
    z = np.matmul(x.transpose(0, 2, 1, 3), w)  # views, quarters, samples, filters
    h = np.maximum(z, 0.0)
    centred = h - h.mean(axis=2, keepdims=True)
    deviation = np.sqrt(np.mean(centred**2, axis=2, keepdims=True) + EPSILON)
    out = (centred / deviation).transpose(0, 2, 1, 3).reshape(2, N, -1)
    y = out @ V
    norm = np.sqrt(np.sum(y * y, axis=2, keepdims=True)) + 1e-12
    y = y / norm
    S = y[0] @ y[0].T
    own = np.arange(N)
    S[own, own] = np.sum(y[0] * y[1], axis=1)
    share = np.exp((S - 1.0) / TEMPERATURE)
    total = share.sum(axis=1, keepdims=True)
    loss = float(np.mean(np.log(total[:, 0]) - (S[own, own] - 1.0) / TEMPERATURE))
    G = share / total
    G[own, own] -= 1.0
    G /= N * TEMPERATURE
    pull = G[own, own][:, None].copy()
    G[own, own] = 0.0
    force = np.stack([(G + G.T) @ y[0] + pull * y[1], pull * y[0]])
    force = (force - np.sum(force * y, axis=2, keepdims=True) * y) / norm
    to_V = np.tensordot(out, force, axes=((0, 1), (0, 1)))
    to_out = (force @ V.T).reshape(2, N, FIELDS, -1).transpose(0, 2, 1, 3)
    to_h = (to_out - to_out.mean(axis=2, keepdims=True)) / deviation * (z > 0.0)
    return loss, np.einsum("vnkp,vknm->kpm", x, to_h), to_V
