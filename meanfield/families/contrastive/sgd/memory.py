"""Memory of a step of contrastive SGD."""

from __future__ import annotations

from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.steppers import DRAWN_AT_ONCE

BYTES_PER_NUMBER = 8
"""Number of bytes of a double."""


def working_set(problem: Problem, method: str) -> int:
    """Bytes that one worker needs to advance one block."""
    N, d1, m = problem.particles.dimension, len(problem.features), problem.model.batch_size
    samples = m * (5 * d1 + 10) * BYTES_PER_NUMBER  # what is drawn, and what is made of it
    if method == "chain":
        return samples
    start = (3 * d1 + 3) * N * BYTES_PER_NUMBER  # features before, while and after they are made orthogonal
    if method == "projected":
        return samples + max(start, (d1 + 5) * N * BYTES_PER_NUMBER)
    views = (2 if problem.noise_covariance.any() else 1) * m
    hidden = 2 * max(DRAWN_AT_ONCE, m * d1) * BYTES_PER_NUMBER
    return samples + hidden + max(start, (d1 + 3 + views) * N * BYTES_PER_NUMBER)
