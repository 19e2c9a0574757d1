"""Points between two wells that weights leave for each other.

Noise that takes weights across the barrier between two wells moves the quantile at which X jumps, so that no points
gathered around a quantile stay with the jump. Points that stay where they are in w do: where they are dense between the
wells, X is smooth along them. A barrier that noise does not cross empties beyond what quantiles can tell apart, and
keeps its jump where it is (`jumps`).
"""

from __future__ import annotations

import numpy as np

from meanfield.mckean_vlasov.closures import called_values
from meanfield.mckean_vlasov.density.lagrangian.grading import CONDENSED_REACH, Grading
from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.quantile_frame.frame import LOGARITHMIC
from meanfield.typing import FloatArray

CROSSED = 16.0
"""Height of a barrier in units of the noise D = Lambda/2 below which it is crossed. Beyond some 30 units quantiles next
to the top cannot be told apart; from 20 on wells are so narrow that points between them cost more than a jump does."""

AMPLITUDE, WIDTH = 2.0, 0.3
"""Points per factor e of the distance from the middle of the barrier, and the distance within which they are equally
spaced, in units of half the distance of the wells."""

POTENTIAL_POINTS = 4001
"""Number of weights at which the potential is looked at."""


def between_wells(limit: Limit, level: Level) -> Grading | None:
    """Grading between two wells of the drift without tilt at the end of a level; None if no barrier is crossed."""
    reach = float(np.nanmax(np.abs(level.X[-1])))
    w = np.linspace(-reach, reach, POTENTIAL_POINTS)
    potential, noise = _potential(limit, level.moments[-1], w)
    left, right = np.minimum.accumulate(potential), np.minimum.accumulate(potential[::-1])[::-1]
    top = int(np.argmax(potential - np.maximum(left, right)))
    height = float((potential - np.maximum(left, right))[top])
    if not 0.0 < height < CROSSED * noise:
        return None
    low, high = w[np.argmin(potential[:top])], w[top + np.argmin(potential[top:])]
    term = [[AMPLITUDE], [w[top]], [2.0 / (WIDTH * (high - low))], [LOGARITHMIC]]
    return Grading(np.array(term), CONDENSED_REACH)


def _potential(limit: Limit, moments: FloatArray, w: FloatArray) -> tuple[FloatArray, float]:
    """Potential of the drift without tilt at increasing w, and the noise D."""
    q, r, square = moments[:-3], moments[-3], moments[-2]
    values = called_values(limit.closure, q)
    noise = 0.5 * float(values[-1])
    growth = (q @ values[:-1] + limit.learning_rate * r - noise) / square
    steps = limit.learning_rate * limit.prior.potential_steps(w)
    return np.concatenate([[0.0], np.cumsum(steps)]) - 0.5 * growth * w * w, noise
