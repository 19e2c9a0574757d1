"""Mean outputs of polynomial activations in closed form: polynomials in q and in the variance of what is Gaussian.

With s^2 = 1 - q.q + v_ll, the part of Theta_l = c.q + s e that features do not explain, and (2h - 1)!! = E[e^2h],

    <Theta_l^n> = sum over |a| + 2h = n of n!/(prod_f a_f! (2h)!) (2h - 1)!! E[prod_f c_f^a_f] prod_f q_f^a_f s^2h

so that a mean takes a few products, where a quadrature takes microseconds: population centring asks in every step.
"""

from __future__ import annotations

from itertools import product
from math import comb, factorial, prod
from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.closures.mixture import Mixture
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray


class PolynomialMeans(NamedTuple):
    """Terms of <sigma(Theta_l)>, for compiled code; none if sigma is not a polynomial.

    Parameters
    ----------
    coefficient : ndarray, shape (terms,)
    powers : ndarray of int, shape (terms, 1 + d1)
        Of s^2, then of the overlaps q.
    noise : ndarray, shape (2,)
        Variances v_ll of the noise of the views.
    """

    coefficient: FloatArray
    powers: IntArray
    noise: FloatArray


def no_polynomial(features: int) -> PolynomialMeans:
    """No terms: the activation is not a polynomial, or its mean is not asked for."""
    return PolynomialMeans(np.empty(0), np.empty((0, 1 + features), np.int64), np.zeros(2))


def polynomial_means(polynomial: tuple[float, ...], law: Mixture, noise: tuple[float, float]) -> PolynomialMeans:
    """Terms of the mean outputs.

    Parameters
    ----------
    polynomial : tuple of float
        Coefficients of sigma in ascending powers; none if it is not a polynomial.
    law : Mixture
        The law of the hidden variables.
    noise : tuple of float
        Variances v11 and v22 of the noise.
    """
    d1, degree = len(law.half_width), len(polynomial) - 1
    if degree < 0:
        return no_polynomial(d1)
    moments = moments_of(law, degree)
    terms: dict[tuple[int, ...], float] = {}
    for powers in product(range(degree // 2 + 1), *(range(degree + 1) for _ in range(d1))):
        h, own = powers[0], powers[1:]
        n = 2 * h + sum(own)
        if n <= degree:
            ways = factorial(n) / (2**h * factorial(h) * prod(factorial(a) for a in own))
            hidden = law.probability @ prod(moments[:, f, a] for f, a in enumerate(own))
            terms[powers] = polynomial[n] * ways * float(hidden)
    kept = {powers: value for powers, value in terms.items() if value != 0.0 or not any(powers)}  # one at least
    return PolynomialMeans(np.array(list(kept.values())), np.array(list(kept), np.int64), np.array(noise))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def mean_of_polynomial(means, q, noise):  # type: ignore[no-untyped-def]
    """<sigma(Theta_l)> at overlaps q of a view with noise of this variance; there must be terms."""
    rest = 1.0 + noise
    for f in range(q.size):
        rest -= q[f] * q[f]
    total = 0.0
    for term in range(means.coefficient.size):
        value = means.coefficient[term]
        for _ in range(means.powers[term, 0]):
            value *= rest
        for f in range(q.size):
            for _ in range(means.powers[term, 1 + f]):
                value *= q[f]
        total += value
    return total


def moments_of(law: Mixture, degree: int) -> FloatArray:
    """Moments of order 0 .. degree of each hidden variable in each component, shape (components, d1, 1 + degree)."""
    orders = np.arange(degree + 1)
    of_gaussian = np.array([0 if n % 2 else factorial(n) // (2 ** (n // 2) * factorial(n // 2)) for n in orders])
    variances = law.scale_variance[..., None] ** (orders / 2) * of_gaussian
    random = np.einsum("kv,kvn->kn", law.scale_probability, variances)
    random[:, 0] = 1.0  # also where no variance is random
    box = law.half_width[:, None] ** orders * np.where(orders % 2, 0.0, 1.0 / (1 + orders))
    parts = [law.mean[..., None] ** orders, law.variance[..., None] ** (orders / 2) * of_gaussian, random, box]
    total: FloatArray = parts[0]
    for part in parts[1:]:
        total = np.stack(
            [sum(comb(n, j) * total[..., j] * part[..., n - j] for j in range(n + 1)) for n in orders], axis=-1
        )
    return total
