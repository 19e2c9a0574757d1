"""Where X jumps from one well of the drift to another, found by trial runs.

Two wells, as a quartic prior with little noise has them, tear the weights of a node apart at a quantile that hardly
moves; the slope there grows exponentially. A map zeta -> zeta + amplitude asinh((zeta - centre)/width) of the points
resolves it. The position must be known to the width of the jump: each trial narrows it down by a factor of ten or so.
"""

from __future__ import annotations

import numpy as np

from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.typing import FloatArray

AMPLITUDE = 0.6
"""Points per factor e of the distance from a jump."""

ROUGH = 0.35
"""Rise of asinh(X) between neighbours, weighted with the square root of the density relative to its largest value,
above which points are too far apart."""

NARROWEST = 1e-8
"""Least width of a jump that is resolved."""

STEEPER = 1.7
"""Factor by which a slope must have grown for another trial run to pay."""


def jumps_of(level: Level, rough: float = ROUGH) -> tuple[FloatArray, ...]:
    """For every node the term of the steepest jump that is rough, or the one that the level has, or none."""
    rises = np.diff(np.arcsinh(level.X), axis=2)
    middle = 0.5 * (level.xi[:, :, 1:] + level.xi[:, :, :-1])
    rise = np.where(np.isfinite(rises), rises * np.exp(-0.25 * middle**2), 0.0)
    found = []
    for k in range(rise.shape[1]):
        output, i = np.unravel_index(np.argmax(rise[:, k]), rise[:, k].shape)
        if rise[output, k, i] <= rough:
            found.append(level.frames.jumps[k])
            continue
        slope = rises[output, k, i] / (level.xi[output, k, i + 1] - level.xi[output, k, i])
        width = max(0.5 / slope, NARROWEST)
        found.append(np.array([[AMPLITUDE], [middle[output, k, i]], [1 / width]]))
    return tuple(found)


def pays(before: tuple[FloatArray, ...], after: tuple[FloatArray, ...]) -> bool:
    """Whether a slope of any node has grown so much that another trial run is worth its time."""
    return any(
        new.size > 0 and (old.size == 0 or new[2, 0] > STEEPER * old[2, 0])
        for old, new in zip(before, after, strict=True)
    )
