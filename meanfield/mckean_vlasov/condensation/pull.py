"""Pull of a prior once its l2 part is removed, which the multiplier of the norm undoes, and coarsening under it.

With phi(w) = kappa w + phi0(w) the drift of a weight is G0 w - u.g - c phi0(w), where c = tau strength and
G0 = G - c kappa. Weights beyond the critical one, c phi0(w_c) = G0 w_c, run away. Coarsening, without noise and without
tilt, says which share of the weights is left after a time, before any run.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from meanfield.ingredients.priors import Prior
from meanfield.typing import FloatArray

FAR_WEIGHT = 2.0**500
"""Weight at which the l2 part is read off: phi0 = |w|^0.9 still adds 1e-15 of it, and squares do not overflow."""

SMALLEST, LARGEST = 1e-12, 1e12
"""Range of critical weights."""


@lru_cache(maxsize=256)
def stiffness(prior: Prior) -> float:
    """The l2 part kappa = lim phi(w)/w; infinite where phi grows faster than w, or no limit can be told."""
    ends = np.array([-FAR_WEIGHT, FAR_WEIGHT])
    with np.errstate(all="ignore"):
        slope, before = (float(np.min(prior.forces(w) / w)) for w in (ends, ends / 2.0**250))
    return slope if math.isfinite(slope) and abs(slope) - abs(before) <= 0.5 * abs(before) else math.inf  # it grows on


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


class Coarsening(NamedTuple):
    """Weights that run away, as functions of s = tau strength t.

    Parameters
    ----------
    elapsed : ndarray, shape (steps,)
        s.
    share : ndarray, shape (steps,)
        P(|w| > w_c).
    critical_weight : ndarray, shape (steps,)
        w_c.
    """

    elapsed: FloatArray
    share: FloatArray
    critical_weight: FloatArray

    def share_at(self, elapsed: float) -> float:
        """P(|w| > w_c); the last one known where the flow ended before."""
        return float(np.exp(np.interp(elapsed, self.elapsed, np.log(self.share))))

    def elapsed_at(self, share: float) -> float:
        """Time s at which the share has fallen to a value, infinite where it does not fall that far."""
        fallen = np.flatnonzero(self.share <= share)
        return float(self.elapsed[fallen[0]]) if len(fallen) else np.inf


@lru_cache(maxsize=16)
def coarsening(prior: Prior, elapsed: float) -> Coarsening:
    """Flow of weights that start as N(0, 1).

    Parameters
    ----------
    prior : Prior
        Prior under which the norm condenses without noise.
    elapsed : float
        s = tau strength t up to which it is followed, or until hardly a weight is left.

    Notes
    -----
    For l1 P(|w| > w_c) goes to 2/(e s)^2 up to slow corrections, for cauchy to 1/(e (1 + 2 s)). Source: theory.md,
    section 6.
    """
    # Until one in 1e15 weights is left; with 851 points, their shares have an error of a percent.
    xi = np.linspace(0.0, 8.5, 851)
    mass = np.exp(-0.5 * xi**2)
    mass[0] *= 0.5
    mass /= mass.sum()
    w = xi / np.sqrt(mass @ xi**2)
    s = 0.0
    times, ratios, maps = [], [], []
    while True:
        pull = bounded_pull(prior, w)
        ratio = float(mass @ (w * pull))
        times.append(s)
        ratios.append(ratio)
        maps.append(w)
        if s >= elapsed or 2.0 * ndtr(-xi[w > 0.0][0]) < 1e-14:  # the flow ends when no weight is left
            break
        # Steps of a hundredth of 1/gamma leave an error of a percent more.
        step = min(1e-2 / float(mass @ (w * np.abs(pull))), elapsed - s)
        moved = np.maximum(w - step * pull, 0.0)
        w = moved / np.sqrt(mass @ moved**2)
        s += step
    found = critical_weight(prior, np.array(ratios))
    beyond = [np.interp(critical, row, xi) for critical, row in zip(found, maps, strict=True)]
    return Coarsening(np.array(times), 2.0 * ndtr(-np.array(beyond)), found)
