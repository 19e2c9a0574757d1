"""Recognition of condensation in a density, with its warning: the weights beyond the critical one, and their norm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from meanfield.mckean_vlasov.cells import edges_of
from meanfield.mckean_vlasov.condensation.pull import critical_weight, stiffness
from meanfield.mckean_vlasov.condensation.threshold import critical_diffusion, held_norm
from meanfield.mckean_vlasov.limit import Limit
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class Condensate:
    """Weights that run away, at all output times; NaN where none do, or that were not reached.

    Parameters
    ----------
    critical_weight : ndarray, shape (outputs,)
        w_c, beyond which weights run away.
    weights : ndarray, shape (outputs,)
        P(|w| > w_c).
    norm : ndarray, shape (outputs,)
        The part of E[w^2] beyond w_c.
    onset, last : int
        The first output from which on weights run away until the last one that was reached, and this last one.
    """

    critical_weight: FloatArray
    weights: FloatArray
    norm: FloatArray
    onset: int
    last: int

    def arrays(self) -> dict[str, FloatArray]:
        """The variables of the Dataset."""
        return {
            "critical_weight": self.critical_weight,
            "runaway_weights": self.weights,
            "runaway_norm": self.norm,
        }


def condensate(limit: Limit, arrays: Mapping[str, FloatArray]) -> Condensate | None:
    """Weights that run away, from the variables of a density; None where none do at the end.

    They do where Lambda is below Lambda_c, so that no stationary density without tilt has the norm, and the multiplier
    of the norm, less the prior's l2 part, is positive.

    Parameters
    ----------
    limit : Limit
        Limit that was solved.
    arrays : mapping of str to ndarray
        `q`, `g`, `Lambda`, `r`, `norm`, `P`, `u_weight` and `w_bnds` of the result; NaN where it was not reached.

    Notes
    -----
    The tilt u.g of single weights is left out of w_c. Source: theory.md, section 6.
    """
    rates, diffusion = limit.learning_rates, arrays["Lambda"]
    reached = np.flatnonzero(np.isfinite(arrays["r"]))
    if not len(reached) or rates[reached[-1]] == 0.0:
        return None
    last = int(reached[-1])
    norm = limit.initial_norm
    if held_norm(limit.phase_at(limit.times[last]).prior, float(rates[last]), float(diffusion[last])) >= norm:
        return None
    G = (np.sum(arrays["q"] * arrays["g"], axis=1) + rates * arrays["r"] - 0.5 * diffusion) / norm

    def critical_in(phase: Limit, at: slice) -> FloatArray:
        prior = phase.prior
        below = diffusion[at] < np.array([critical_diffusion(prior, rate, norm) for rate in rates[at].tolist()])
        if not below.any():
            return np.full(below.shape, np.nan)
        pull = np.where(rates[at] > 0.0, rates[at], np.nan) * prior.strength
        critical = critical_weight(prior.functions, G[at] / pull - stiffness(prior.functions))
        return np.where(below & np.isfinite(critical), critical, np.nan)

    critical = limit.along(critical_in)
    if np.isnan(critical[last]):
        return None
    onset = max(np.flatnonzero(np.isnan(critical[:last])), default=-1) + 1
    edges = edges_of(arrays)
    inside = np.array(
        [
            _inside(edges, arrays["u_weight"] @ P, w) if np.isfinite(w) else (np.nan, np.nan)
            for P, w in zip(arrays["P"], critical, strict=True)
        ]
    )
    weights, norm = np.clip(np.stack([1.0 - inside[:, 0], arrays["norm"] - inside[:, 1]]), 0.0, None)
    return Condensate(critical, weights, norm, int(onset), last)


def _inside(edges: FloatArray, density: FloatArray, critical: float) -> tuple[float, float]:
    """Probability and second moment of |w| < critical, with a constant density in each cell."""
    cut = np.clip(edges, -critical, critical)
    return float(density @ np.diff(cut)), float(density @ np.diff(cut**3)) / 3.0


LEAST_WEIGHTS = 100.0
"""Number of weights beyond w_c from which on SGD follows the limit: the multiplier is then off by some 3 %."""

NOTABLE = 0.1
"""Share of the weights beyond w_c below which the norm counts as condensed; at the start it is some 0.2."""

SMALLEST_SHARE = 1e-300
"""Share that stands for none, whose logarithm is taken."""


def with_condensate(limit: Limit, arrays: dict[str, FloatArray], dimension: int) -> tuple[dict[str, FloatArray], str]:
    """Variables of a density, with those of its condensate and a warning where the norm goes to ever fewer weights.

    Parameters
    ----------
    limit : Limit
        Limit that was solved.
    arrays : dict of str to ndarray
        Variables of the density, see `condensate`.
    dimension : int
        N of the problem's SGD.

    Returns
    -------
    arrays : dict of str to ndarray
        With `critical_weight`, `runaway_weights` and `runaway_norm` where the norm condenses.
    warning : str
        Empty where it does not, or hardly has yet.
    """
    found = condensate(limit, arrays)
    if found is None or not found.weights[found.last] < NOTABLE:
        return arrays, ""
    return arrays | found.arrays(), _in_words(limit, arrays["Lambda"], found, dimension)


def _in_words(limit: Limit, diffusion: FloatArray, found: Condensate, dimension: int) -> str:
    last, prior = found.last, limit.phase_at(limit.times[found.last]).prior
    critical = critical_diffusion(prior, float(limit.learning_rates[last]), limit.initial_norm)
    share = percent(found.norm[last] / limit.initial_norm)
    return (
        f"condensation: from t = {limit.times[found.onset]:.4g} on the prior outweighs the noise (Lambda = "
        f"{diffusion[last]:.3g}, below Lambda_c = {critical:.3g}), and the norm goes to ever fewer, ever larger "
        f"weights; at t = {limit.times[last]:.4g} weights beyond |w| = {found.critical_weight[last]:.3g} run away: "
        f"{percent(found.weights[last])} of the weights with {share} of the norm; "
        f"{_of_sgd(limit.times, found, dimension)}"
    )


def _of_sgd(times: FloatArray, found: Condensate, dimension: int) -> str:
    """How long SGD follows, and the N that follows to the end."""
    share = float(found.weights[found.last])
    left = dimension * share
    if left >= LEAST_WEIGHTS:
        return f"SGD with N = {dimension:,} has {left:.3g} of these, enough to follow this limit"
    return (
        f"SGD with N = {dimension:,} follows this limit until about t = {following_time(times, found, dimension):.3g}, "
        f"when {LEAST_WEIGHTS:.0f} of them are left; N = {enough_weights(share)} would follow to the end"
    )


def following_time(times: FloatArray, found: Condensate, dimension: int) -> float:
    """Time from which on SGD has fewer than LEAST_WEIGHTS weights beyond w_c, by interpolation between outputs.

    Parameters
    ----------
    times : ndarray, shape (outputs,)
    dimension : int
        N.

    Returns
    -------
    float
        The last time that was reached if SGD has more weights until then.
    """
    t = times[found.onset : found.last + 1]
    share = np.maximum(found.weights[found.onset : found.last + 1], SMALLEST_SHARE)
    few = np.flatnonzero(dimension * share < LEAST_WEIGHTS)
    if not len(few):
        return float(t[-1])
    k = int(few[0])
    if k == 0:
        return float(t[0])
    high, low = np.log(share[k - 1 : k + 1])
    return float(np.interp(np.log(dimension / LEAST_WEIGHTS), [-high, -low], t[k - 1 : k + 1]))


def percent(share: float) -> str:
    """Share in two digits."""
    return f"{100.0 * share:.2g} %"


def enough_weights(share: float) -> str:
    """The N that leaves LEAST_WEIGHTS of a share of the weights, rounded up to one digit."""
    needed = LEAST_WEIGHTS / max(share, SMALLEST_SHARE)
    digit = 10.0 ** math.floor(math.log10(needed))
    # From 1e13 on, powers of ten are easier to read than zeros.
    return f"{math.ceil(needed / digit) * digit:,.0f}" if needed < 1e13 else f"{needed:.0e}"
