"""A network of two layers on tokens, as the paper trains it: settings, data, start, and what is measured.

What the paper's text leaves out, or says otherwise, is taken from the command that its public code was run with:
learning rate 0.02, temperature 0.1, 50 outputs, each with length 1, and batch normalisation behind the activation with
the statistics of each view (alpha_contrastive.md, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Array = np.ndarray

PLACES, MARKED, GENERATORS, OUTPUTS = 10, 5, 40, 50
BATCH, MOMENTUM, TEMPERATURE = 128, 0.9, 0.1

Normalisation = Literal["none", "frozen", "variance", "mean", "both"]
NORMALISATIONS = "none", "frozen", "variance", "mean", "both"
"""No batch normalisation, or one through whose mean and variance gradients pass or not."""

ACTIVATIONS = "relu", "linear", "leaky_relu", "quadratic", "sigmoid"
"""leaky_relu has the slope 0.05."""


@dataclass(frozen=True)
class Setting:
    """One trained network.

    Parameters
    ----------
    patterns : int
        P, tokens that generators use at a place.
    beta : int
        Filters of a place for each of them.
    activation, loss, normalisation : str
    zeta : float
        Half the tokens have vectors of length zeta, the others 1/zeta.
    tokens : int
        d.
    rate : float
        Learning rate.
    decay : float
        Weight decay.
    scale : float
        What weights of filters are multiplied with at the start.
    batches : int
    seed : int
    """

    patterns: int = 5
    beta: int = 5
    activation: str = "relu"
    loss: Literal["infonce", "quadratic"] = "infonce"
    normalisation: Normalisation = "mean"
    zeta: float = 1.0
    tokens: int = 20
    rate: float = 0.02
    decay: float = 5e-3
    scale: float = 1.0
    batches: int = 5000
    seed: int = 1

    @property
    def filters(self) -> int:
        """M, filters of each place."""
        return self.beta * self.patterns

    @property
    def lengths(self) -> Array:
        """Lengths of the vectors of tokens."""
        return np.where(np.arange(self.tokens) < self.tokens // 2, 1.0 / self.zeta, self.zeta)


def draw_generators(setting: Setting, rng: np.random.Generator) -> tuple[Array, Array]:
    """Tokens that generators may use at each place, and generators, shape (G, places), with -1 for any token."""
    allowed = np.array([rng.permutation(setting.tokens)[: setting.patterns] for _ in range(PLACES)])
    generators = np.full((GENERATORS, PLACES), -1)
    for row in generators:
        marked = rng.permutation(PLACES)[:MARKED]
        row[marked] = allowed[marked, rng.integers(setting.patterns, size=MARKED)]
    return allowed, generators


def draw_weights(setting: Setting, rng: np.random.Generator) -> tuple[Array, Array]:
    """Filters, shape (places, tokens, filters), and top weights, shape (places, filters, outputs), at the start."""
    M = setting.filters
    bound, top = 1.0 / np.sqrt(setting.tokens), 1.0 / np.sqrt(PLACES * M)
    w = setting.scale * rng.uniform(-bound, bound, (PLACES, setting.tokens, M))
    return w, rng.uniform(-top, top, (PLACES, M, OUTPUTS))


def matches(w: Array, generators: Array, signed: bool) -> tuple[float, float]:
    """chi+ and chi-: of tokens that some generator uses at a place, and of the others, the best match of a filter.

    Parameters
    ----------
    w : ndarray, shape (places, tokens, filters)
    generators : ndarray, shape (G, places)
    signed : bool
        Whether a filter that is minus the token is no match; of linear filters it is one.
    """
    used = np.array([[token in column for token in range(w.shape[1])] for column in generators.T])
    length = np.linalg.norm(w, axis=1, keepdims=True)
    cosine = w / (length + length.max(axis=2, keepdims=True) / 1000.0)
    best = (cosine if signed else np.abs(cosine)).max(axis=2)
    plus = [row[mask].mean() for row, mask in zip(best, used, strict=True) if mask.any()]
    minus = [row[~mask].mean() for row, mask in zip(best, used, strict=True) if not mask.all()]
    return float(np.mean(plus)), float(np.mean(minus))


def effective_rank(matrix: Array) -> float:
    """Participation ratio of squared singular values."""
    square = np.linalg.svd(matrix, compute_uv=False) ** 2
    return float(square.sum() ** 2 / np.sum(square**2))
