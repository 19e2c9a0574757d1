"""Pull of a prior once its l2 part is removed, which the multiplier of the norm undoes.

With phi(w) = kappa w + phi0(w) the drift of a weight is G0 w - u.g - c phi0(w), where c = tau strength and
G0 = G - c kappa. Weights beyond the critical one, c phi0(w_c) = G0 w_c, run away.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from meanfield.ingredients.priors import Prior
from meanfield.typing import FloatArray

FAR = 2.0**500
"""Weight at which the l2 part is read off: phi0 = |w|^0.9 still adds 1e-15 of it, and squares do not overflow."""

NEARER, GROWS = 2.0**250, 0.5
"""Factor between two weights at which phi(w)/w is compared, and the relative growth that shows that it has no limit."""

SMALLEST, LARGEST = 1e-12, 1e12
"""Range of critical weights."""


@lru_cache(maxsize=256)
def stiffness(prior: Prior) -> float:
    """The l2 part kappa = lim phi(w)/w; infinite where phi grows faster than w, or no limit can be told."""
    ends = np.array([-FAR, FAR])
    with np.errstate(all="ignore"):
        slope, before = (float(np.min(prior.forces(w) / w)) for w in (ends, ends / NEARER))
    return slope if math.isfinite(slope) and abs(slope) - abs(before) <= GROWS * abs(before) else math.inf


@lru_cache(maxsize=256)
def is_held(prior: Prior) -> bool:
    """Whether the prior, like l2 or w^4, holds every weight: it grows like w or faster, and has no other pull."""
    kappa, w = stiffness(prior), np.concatenate([-np.geomspace(1e-3, 1e3, 31), np.geomspace(1e-3, 1e3, 31)])
    if prior.linear or math.isinf(kappa):
        return True
    force = prior.forces(w)
    return bool(np.all(np.abs(force - kappa * w) <= 1e-9 * np.abs(force)))  # such a prior is linear, to rounding


def bounded_pull(prior: Prior, w: FloatArray) -> FloatArray:
    """phi0(w) = phi(w) - kappa w at positive weights, averaged over both signs if phi is not odd."""
    return 0.5 * (prior.forces(w) - prior.forces(-w)) - stiffness(prior) * w


def critical_weight(prior: Prior, ratio: FloatArray) -> FloatArray:
    """Weight beyond which weights run away: phi0(w_c) = ratio w_c.

    Parameters
    ----------
    prior : Prior
        Prior that does not hold every weight.
    ratio : ndarray
        G0/c, the multiplier of the norm less its l2 part, in units of tau strength.

    Returns
    -------
    ndarray
        The outermost one; 0 where all weights run away, and infinite where G0 <= 0 and none does.
    """
    ratio = np.asarray(ratio, dtype=float)
    low = np.full(ratio.shape, math.log(SMALLEST))
    high = np.full(ratio.shape, math.log(LARGEST))
    for _ in range(60):  # halvings leave a relative error of 5e-17
        middle = 0.5 * (low + high)
        w = np.exp(middle)
        runs_away = ratio * w > bounded_pull(prior, w)
        high = np.where(runs_away, middle, high)
        low = np.where(runs_away, low, middle)
    found = np.exp(high)
    found = np.where(found <= 2.0 * SMALLEST, 0.0, np.where(found >= 0.5 * LARGEST, math.inf, found))
    return np.where(np.isnan(ratio), math.nan, np.where(ratio > 0.0, found, math.inf))
