"""Batch lasso in closed form: the state evolution of Donoho, Maleki and Montanari for samples of independent normals.

D. L. Donoho, A. Maleki and A. Montanari, *The noise-sensitivity phase transition in compressed sensing*, IEEE
Transactions on Information Theory 57, 6920 (2011); M. Bayati and A. Montanari, *The LASSO risk for Gaussian matrices*,
ibid. 58, 1997 (2012). For labels y = x.u/sqrt(N) + sigma eps of t N samples the minimum of |y - Xw/sqrt(N)|^2/(2 t N)
+ (strength/(t N)) |w|_1 has weights with the law of soft(u + tau Z; theta), Z standard normal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from meanfield.ingredients.laws.coordinate import ThreePointCoordinate
from meanfield.typing import FloatArray
from validation.update_rule.sparse.cases import SPARSE


class Lasso(NamedTuple):
    """Limit of batch lasso."""

    mean_square_error: float
    true_positive_rate: float
    false_positive_rate: float
    strength: float


def soft(u: FloatArray, tau: float, theta: float) -> tuple[FloatArray, FloatArray]:
    """Mean square error of soft(u + tau Z; theta), and the probability that it is not 0."""
    a, b = (theta - u) / tau, (-theta - u) / tau
    density = [np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi) for x in (a, b)]
    up = tau**2 * (a * density[0] + ndtr(-a)) - 2.0 * tau * theta * density[0] + theta**2 * ndtr(-a)
    down = tau**2 * (ndtr(b) - b * density[1]) - 2.0 * tau * theta * density[1] + theta**2 * ndtr(b)
    return u**2 * (ndtr(a) - ndtr(b)) + up + down, ndtr(-a) + ndtr(b)


def batch_lasso(factor: float, samples: float, u: FloatArray, probability: FloatArray, sigma: float) -> Lasso:
    """Limit of lasso with the threshold theta = factor tau, at a ratio t of samples and coordinates.

    Raises
    ------
    ValueError
        If there is no such strength: fewer samples than lasso needs to have one minimum.
    """

    def excess(tau: float) -> float:
        return float(sigma**2 + probability @ soft(u, tau, factor * tau)[0] - samples * tau**2)

    tau = brentq(excess, 1e-6, 1e3)
    square, found = soft(u, tau, factor * tau)
    strength = factor * tau * (samples - probability @ found)
    support = u != 0
    rates = [float(probability[each] @ found[each] / probability[each].sum()) for each in (support, ~support)]
    return Lasso(float(probability @ square), *rates, float(strength))


def best_lasso(samples: float, sigma: float) -> tuple[float, float]:
    """Least mean square error over strengths, and largest difference of true and false positive rate."""
    u, probability = ThreePointCoordinate(**SPARSE).quadrature(3)
    limits = [batch_lasso(factor, samples, u, probability, sigma) for factor in np.linspace(0.5, 4.0, 100)]
    limits = [each for each in limits if each.strength > 0.0]
    return (
        min(each.mean_square_error for each in limits),
        max(each.true_positive_rate - each.false_positive_rate for each in limits),
    )
