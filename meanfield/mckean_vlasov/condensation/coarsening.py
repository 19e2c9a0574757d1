"""Coarsening without noise and without tilt: which share of the weights is left after a time, before any run.

dw/ds = gamma w - phi0(w) with s = tau strength t, and gamma = E[w phi0(w)] such that E[w^2] = 1. The flow keeps the
order of weights, so that the density is the image of N(0, 1) under an increasing map X(xi). A step moves all points by
-phi0, lets those that reach 0 stay there, and restores the norm, as SGD does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from meanfield.ingredients.priors import Prior
from meanfield.mckean_vlasov.condensation.pull import bounded_pull, critical_weight
from meanfield.typing import FloatArray


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
    s, times, ratios, maps = 0.0, [], [], []
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
