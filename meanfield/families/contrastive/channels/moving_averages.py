"""Order parameters of a moving average w' of the weights of several channels, which follows them and changes nothing.

With dw'_k/dt = a (w_k - w'_k) and the weights' equation, whose force a linear phi leaves to the norm,

    d E[u w'_k]/dt = a (q_k - E[u w'_k]),
    d E[w_k w'_l]/dt = a_k.E[u w'_l] + tau sum_j H_kj E[w_j w'_l] - n_k E[w_k w'_l] + a (M_kl - E[w_k w'_l]),
    d E[w'_k w'_l]/dt = a (E[w_k w'_l] + E[w_l w'_k] - 2 E[w'_k w'_l]),

from w' = w, with a_k, H and n_k of `channels.limit.WeightEquation`. Source: update_rules.md, section 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meanfield.families.contrastive.channels.in_time import ChannelsInTime, ChannelStretch
from meanfield.families.contrastive.channels.limit import coefficients
from meanfield.numerics.ode import Rate, solve_in_stretches
from meanfield.typing import FloatArray

Overlaps = Callable[[float], tuple[FloatArray, FloatArray]]
"""From a time to q, shape (d1, d2), and M, shape (d2, d2)."""


def moving_averages_along(
    closure: ChannelsInTime, overlaps: Overlaps, reached: int, a: float, **options: Any
) -> FloatArray:
    """E[u w'], E[w w'] and E[w' w'] at the output times, below each other; NaN at those that were not reached.

    Parameters
    ----------
    closure : ChannelsInTime
        Of a problem with linear priors.
    overlaps : callable
    reached : int
        Number of output times that they reach.
    a : float
        Rate of the average.
    **options
        Tolerance and integrator, those of the overlaps.

    Returns
    -------
    ndarray, shape (times, d1 + 2 d2, d2)
    """
    problem = closure.problem
    q, M, times = problem.initial_overlap, problem.initial_channel_overlap, problem.time.outputs_at
    d1, d2 = q.shape
    start = np.concatenate([q, M, M])
    values = np.full((len(times), start.size), np.nan)

    def rate_in(stretch: ChannelStretch) -> Rate:
        def rate(t: float, y: FloatArray) -> FloatArray:
            q, M = overlaps(t)
            now = stretch.at(t)
            found = coefficients(now(q, M), q, M, now.problem.model.rate)
            of_u, of_w, square = np.split(y.reshape(-1, d2), [d1, d1 + d2])
            moved = found.of_features @ of_u + found.of_weights @ of_w - found.multiplier[:, None] * of_w
            changes = a * (q - of_u), moved + a * (M - of_w), a * (of_w + of_w.T - 2.0 * square)
            return np.concatenate(changes).ravel()

        return rate

    if reached > 1:
        inside, last = times[:reached], times[reached - 1]
        stretches = [
            (np.unique(np.minimum(stretch.outputs(inside), last)), rate_in(stretch))
            for stretch in closure.stretches
            if stretch.problem.start < last
        ]
        values[:reached] = solve_in_stretches(stretches, start.ravel(), inside, label="averages", **options).values
    return values.reshape(len(times), -1, d2)
