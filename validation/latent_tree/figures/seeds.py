"""Trees and initial weights of the paper's trials, which the public code draws from a seed.

Its ten trials are those with the seeds 1 to 10: with these, and with random signs, means and standard deviations before
training are those of print. Polarities come from Python's generator with the seed, those below a latent after all that
are farther down; weights come from PyTorch's with the seed plus two, whose numbers NumPy's Mersenne twister has too.
"""

from __future__ import annotations

import random

import numpy as np

from meanfield.typing import FloatArray

TRIALS = range(1, 11)
"""Seeds of the paper's trials."""

WEIGHT_SEED_OFFSET = 2
"""Number that is added to the seed for the weights."""


def polarities(seed: int, depth: int, low: float, random_sign: bool) -> list[list[float]]:
    """Polarities from U[low, 1] below the root and farther down, those of a level from left to right.

    Parameters
    ----------
    seed, depth : int
    low : float
    random_sign : bool
        Whether signs, which are drawn in any case, are used.
    """
    generator = random.Random(seed)
    found: list[list[float]] = [[0.0] * 2 ** (below + 1) for below in range(depth)]

    def fill(below: int, place: int) -> None:
        if below == depth:
            return
        for child in (2 * place, 2 * place + 1):
            fill(below + 1, child)
        for child in (2 * place, 2 * place + 1):
            size = generator.random() * (1.0 - low) + low
            negative = generator.randint(0, 1) == 1
            found[below][child] = -size if negative and random_sign else size

    fill(0, 0)
    return found


def initial_weights(seed: int, depth: int, nodes: int) -> tuple[list[FloatArray], list[FloatArray]]:
    """Weights, shape (latents, nodes, inputs), and biases, shape (latents, nodes), by level from 1 on."""
    generator, W, b = np.random.RandomState(seed + WEIGHT_SEED_OFFSET), [], []
    for level in range(1, depth + 1):
        inputs, latents = (2 if level == 1 else 2 * nodes), 2 ** (depth - level)
        parts = [(_uniform(generator, nodes, inputs), _uniform(generator, nodes, 1, inputs)) for _ in range(latents)]
        W.append(np.array([weights for weights, _ in parts]))
        b.append(np.array([biases[:, 0] for _, biases in parts]))
    return W, b


def _uniform(generator: np.random.RandomState, rows: int, columns: int, inputs: int | None = None) -> FloatArray:
    """Numbers in single precision within 1/sqrt(inputs), from the last 24 of 32 random bits each."""
    bits = generator.randint(0, 2**32, size=(rows, columns), dtype=np.uint32) & np.uint32(2**24 - 1)
    bound = np.float32((inputs or columns) ** -0.5)
    return np.asarray(bits.astype(np.float32) * np.float32(2.0**-24) * (2 * bound) - bound)
