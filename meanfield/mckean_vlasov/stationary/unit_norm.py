"""The multiplier G at which a density has E[w^2] = 1, at fixed coefficients.

E[w^2] grows with G up to the G from which on no density can be normalised. On the way it may pass through many powers
of ten, and through steps where rare weights far out take over. Often it is about a power of the distance from that
limit: Lambda/(2 |G|) for a Gaussian. So Newton's method is applied to log E[w^2] as a function of the logarithm of the
distance, inside a bracket that is halved on this scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

UNIT_NORM = 1e-13
"""Largest deviation of E[w^2] from 1 at the multiplier G of a state."""

LONGEST_STEP = 3.0
"""Largest step on the scale: steps of E[w^2] make derivatives poor guides further away."""


class Norm(NamedTuple):
    """Averages of a density: E[w^2], infinite where the density cannot be normalised, and its derivative by G."""

    value: float
    slope: float
    moments: Any


@dataclass(frozen=True)
class Scale:
    """Scale on which G is searched for.

    Parameters
    ----------
    highest : float
        The G from which on no density can be normalised; infinite if there is none.
    diffusion : float
        Lambda.
    """

    highest: float
    diffusion: float

    @property
    def last(self) -> float:
        """The largest G that is tried."""
        # A Gaussian so close to the limit of G would have a width of 7e4.
        return self.highest - max(1e-10 * self.diffusion, 1e-15 * abs(self.highest))

    def at(self, G: float) -> float:
        """Position of G on the scale: minus the logarithm of its distance from the limit, if there is one."""
        return math.asinh(G / self.diffusion) if math.isinf(self.highest) else -math.log(self.highest - G)

    def rate(self, G: float) -> float:
        """Derivative of G by its position."""
        return math.hypot(G, self.diffusion) if math.isinf(self.highest) else self.highest - G

    def moved(self, G: float, step: float) -> float:
        """G after a step on the scale, to all digits however short the step is."""
        if math.isinf(self.highest):
            return G + 2.0 * G * math.sinh(0.5 * step) ** 2 + self.rate(G) * math.sinh(step)
        return min(G - (self.highest - G) * math.expm1(-step), self.last)

    def extrapolated(self, G: float, change: float) -> float:
        """G after a change that a derivative foretells, which stays below the limit."""
        G = min(G, self.last)
        return self.moved(G, min(max(change / self.rate(G), -LONGEST_STEP), LONGEST_STEP))


def multiplier(
    norm_at: Callable[[float], Norm], guess: float, scale: Scale, accuracy: float = UNIT_NORM
) -> tuple[float, Any] | None:
    """G at which E[w^2] = 1, and the averages there.

    Parameters
    ----------
    norm_at : callable
        G -> averages of the density.
    accuracy : float
        Largest deviation of E[w^2] from 1.

    Returns
    -------
    tuple or None
        None where E[w^2] stays below 1 up to the limit of G.
    """
    low, high = -math.inf, math.inf
    G = min(guess, scale.last)
    for _ in range(200):  # values of G
        norm = norm_at(G)
        if abs(norm.value - 1.0) <= accuracy:
            return G, norm.moments
        low, high = (G, high) if norm.value < 1.0 else (low, G)
        if low == scale.last:
            return None
        trial = _newton(norm, G, scale)
        if math.isfinite(norm.value):
            # Rounding leaves 1e-10 by the sum, and 1e-15 of G times the derivative, which is arbitrarily large at a
            # jump.
            rounded = min(1e-10 + 1e-15 * abs(G) * norm.slope, 1e-6)
            if abs(trial - G) <= 4e-16 * abs(G) and abs(norm.value - 1.0) <= rounded:
                return G, norm.moments
        if not low < trial < high:
            trial = _halfway(low, high, scale)
            if not low < trial < high:
                return None  # E[w^2] jumps past 1 within rounding
        G = trial
    return None


def _newton(norm: Norm, G: float, scale: Scale) -> float:
    """Newton's step for log E[w^2] on the scale; NaN where there is none."""
    if not (math.isfinite(norm.value) and norm.value > 0.0 and norm.slope > 0.0):
        return math.nan
    step = -math.log(norm.value) * norm.value / (norm.slope * scale.rate(G))
    return scale.moved(G, min(max(step, -LONGEST_STEP), LONGEST_STEP))


def _halfway(low: float, high: float, scale: Scale) -> float:
    """The middle of a bracket on the scale, or a step beyond its only end."""
    if math.isinf(low):
        return scale.moved(high, -LONGEST_STEP)
    if math.isinf(high):
        return scale.moved(low, LONGEST_STEP)
    return scale.moved(low, 0.5 * (scale.at(high) - scale.at(low)))
