"""Order parameters of a moving average w' of the weights, which follows them and changes nothing.

With dw'/dt = a (w - w') and the equation of w under a linear phi, whose force the norm undoes,

    d E[u w']/dt = a (q - E[u w']),
    d E[w w']/dt = (q.g - Lambda/2) E[w w'] - g.E[u w'] + a (1 - E[w w']),
    d E[w'^2]/dt = 2 a (E[w w'] - E[w'^2]),

from w' = w. Noise of w enters by Lambda alone, since w' has none. Under other priors E[w' phi(w)] would enter, which is
no function of these. Source: update_rules.md, section 8.
"""

from __future__ import annotations

import numpy as np

from meanfield.families.contrastive.variables import AVERAGES
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.order_parameters import TOLERANCE, Coefficients, stretches_along
from meanfield.numerics.ode import Path, Rate, Solution, solve_in_stretches
from meanfield.typing import FloatArray


def averages_along(limit: Limit, solution: Solution, path: Path, a: float) -> dict[str, FloatArray]:
    """`q_average`, `overlap_average` and `norm_average` at the output times; NaN at those that were not reached.

    Parameters
    ----------
    limit : Limit
        With a prior with linear phi.
    solution : Solution
        Its overlaps at the output times.
    path : callable
        The same at all times.
    a : float
        Rate of the average.
    """
    d1 = len(limit.initial_overlap)
    reached = np.isfinite(solution.values).all(axis=1)
    values = np.full((len(solution.values), d1 + 2), np.nan)

    def rate_of(coefficients: Coefficients) -> Rate:
        def rate(t: float, y: FloatArray) -> FloatArray:
            q = path(t)
            g, diffusion = coefficients(t, q)
            average, overlap, square = y[:d1], y[d1], y[d1 + 1]
            turned = overlap * (q @ g - 0.5 * diffusion) - average @ g
            return np.array([*a * (q - average), turned + a * (1.0 - overlap), 2.0 * a * (overlap - square)])

        return rate

    times, start = solution.times[reached], np.append(limit.initial_overlap, [1.0, 1.0])
    if len(times) > 1:
        stretches = stretches_along(limit, times, rate_of)
        values[reached] = solve_in_stretches(stretches, start, times, TOLERANCE, label="averages").values
    return dict(zip(AVERAGES, (values[:, :d1], values[:, d1], values[:, d1 + 1]), strict=True))
