"""Kinks of a prior, with the jumps of its force and of its slope there."""

from __future__ import annotations

import numpy as np

from meanfield.ingredients.priors import PriorSettings
from meanfield.typing import FloatArray


def kinks_of(prior: PriorSettings) -> FloatArray:
    """Kinks of the prior and the jumps there of phi and of its slope, shape (3, kinks)."""
    rows = []
    for kink in prior.functions.kinks:
        near, step = 1e-7 * (1 + abs(kink)), 1e-5 * (1 + abs(kink))
        points = kink + np.array([-2 * near, -near, near, 2 * near, -2 * step, -step, step, 2 * step])
        f = prior.force(points)
        jump = (2 * f[2] - f[3]) - (2 * f[1] - f[0])
        bend = (f[7] - f[6]) / step - (f[5] - f[4]) / step
        size = 1e-6 * max(prior.strength, float(np.abs(f).max()))
        rows.append((kink, jump if abs(jump) > size else 0.0, bend if abs(bend) > 1e2 * size else 0.0))
    return np.array(rows, dtype=float).reshape(-1, 3).T.copy()
