"""Warning in words about a density whose norm goes to ever fewer weights."""

from __future__ import annotations

import math

import numpy as np

from meanfield.mckean_vlasov.condensation.recognition import Condensate, condensate
from meanfield.mckean_vlasov.condensation.threshold import critical_diffusion
from meanfield.mckean_vlasov.limit import Limit
from meanfield.typing import FloatArray

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
    critical, last = critical_diffusion(limit.prior, limit.learning_rate), found.last
    return (
        f"condensation: from t = {limit.times[found.onset]:.4g} on the prior outweighs the noise (Lambda = "
        f"{diffusion[last]:.3g}, below Lambda_c = {critical:.3g}), and the norm goes to ever fewer, ever larger "
        f"weights; at t = {limit.times[last]:.4g} weights beyond |w| = {found.critical_weight[last]:.3g} run away: "
        f"{percent(found.weights[last])} of the weights with {percent(found.norm[last])} of the norm; "
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
    found : Condensate
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
