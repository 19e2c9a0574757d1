"""Density of the filters at the start."""

from __future__ import annotations

import numpy as np

from meanfield.families.alpha_contrastive.filters import FourierStart
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.typing import FloatArray


def masses(problem: Problem, edges: FloatArray) -> FloatArray:
    """Masses between angles, shape (edges - 1,)."""
    start = problem.filters.start
    if isinstance(start, FourierStart):
        return np.maximum(np.diff(start.distribution(edges)), 0.0)
    return np.asarray(np.diff(edges) / (2.0 * np.pi))
