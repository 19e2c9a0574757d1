"""Memory of a step of contrastive SGD."""

from __future__ import annotations

from meanfield.ensembles.memory import BYTES_PER_NUMBER
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.steppers import DRAWN_AT_ONCE
from meanfield.problems.problem_keys import with_value


def working_set(problem: Problem, method: str) -> int:
    """Bytes that one worker needs to advance one block."""
    N, d1, m = problem.particles.dimension, len(problem.features), problem.model.batch_size
    several = problem.model.channels > 1
    d2 = problem.model.channels
    # what is drawn, and what is made of it
    samples = m * (8 * d1 + 15 * d2 if several else 5 * d1 + 10) * BYTES_PER_NUMBER
    if method == "chain":
        return samples
    start = (3 * d1 + (6 * d2 if several else 3)) * N * BYTES_PER_NUMBER  # features and weights made orthogonal
    if method == "projected":
        return samples + max(start, (d1 + 5 * d2) * N * BYTES_PER_NUMBER)
    views = (2 if several or problem.noise_covariance.any() else 1) * m
    hidden = 2 * max(DRAWN_AT_ONCE, m * d1) * BYTES_PER_NUMBER
    return samples + hidden + max(start, (d1 + 3 * d2 + views) * N * BYTES_PER_NUMBER)


def largest_key(problem: Problem, method: str) -> str:
    """Key that most of the memory of a step comes from."""
    small = with_value(problem, "model.batch_size", min(problem.model.batch_size, 2))
    most_of_it = 2 * working_set(small, method) < working_set(problem, method)
    return "model.batch_size" if most_of_it else "particles.dimension"
