"""Averages of rows that are polynomials in B, from moments of the hidden variables: no quadrature, and no product law.

Where sigma is a polynomial, so is the average of every product over the noise, f(B) = sum_n f_n B^n, and with

    B = c.q + s e,  s^2 = 1 - q.q:    <B^n>/n! = sum over j_1 + .. + j_d + 2h = n of
                                                  E[prod_k c_k^j_k] prod_k q_k^j_k/j_k! (s^2/2)^h/h!

the sums of d independent variables are products of d short power series, where a quadrature over the product of their
laws takes its time to the power of d. <c_k B^n> has the moments of c_k one order higher.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import comb, factorial
from typing import NamedTuple

import numpy as np
from numpy.polynomial import polynomial as series

from meanfield.families.contrastive.closures.mixture import Mixture
from meanfield.families.contrastive.closures.polynomial_means import moments_of
from meanfield.families.contrastive.closures.views import DIFFUSION_ROWS, DRIFT_ROWS, WITHOUT_CENTRING, exponents
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


class RowMoments(NamedTuple):
    """Rows of a closure that are polynomials in B, and what is averaged over, for compiled code.

    Parameters
    ----------
    coefficients : ndarray, shape (rows, 1 + degree)
        Of B^n/n! in the rows of `bracket_table`; none if sigma is no polynomial.
    drift : int
        Number of rows whose averages with c_k are asked for, the first ones.
    probability : ndarray, shape (components,)
        Of the components of the law of c: one where hidden variables are independent.
    moments : ndarray, shape (components, d1, 1 + degree)
        E[c_k^n] in each component.
    """

    coefficients: FloatArray
    drift: int
    probability: FloatArray
    moments: FloatArray


def no_moments() -> RowMoments:
    """Placeholder for compiled code: the rows are no polynomials, or there is one feature, which has a table."""
    return RowMoments(np.empty((0, 0)), 0, np.empty(0), np.empty((0, 0, 0)))


def row_moments(
    polynomial: tuple[float, ...], noise: tuple[float, float, float], centred: bool, law: Mixture, independent: bool
) -> RowMoments:
    """Rows of a closure by moments, if there are hidden variables of several features and a polynomial.

    Parameters
    ----------
    polynomial : tuple of float
        Coefficients of sigma in ascending powers; none if it is not a polynomial.
    noise : tuple of float
        v11, v12, v22.
    centred : bool
        See `bracket_table`.
    law : Mixture
        The law of the hidden variables.
    independent : bool
        Whether they are.
    """
    if len(polynomial) < 2 or len(law.half_width) < 2:
        return no_moments()
    coefficients = _coefficients_in_B(polynomial, noise, centred)
    drift, degree = len(DRIFT_ROWS) if centred else 1, coefficients.shape[1] - 1
    probability, moments = law.probability, moments_of(law, degree)
    if independent:
        probability, moments = np.ones(1), np.einsum("a,akn->kn", probability, moments)[None]
    return RowMoments(coefficients.copy(), drift, probability, np.ascontiguousarray(moments))


@lru_cache(maxsize=64)
def _coefficients_in_B(polynomial: tuple[float, ...], noise: tuple[float, float, float], centred: bool) -> FloatArray:
    """Coefficients of rows, see `RowMoments`; branches ask for them at every value of a key that they do not know."""
    names = (*DRIFT_ROWS, *DIFFUSION_ROWS) if centred else WITHOUT_CENTRING
    first, *others = (_averaged(polynomial, noise, powers) for powers in exponents(*names[0].split(" + "), *names[1:]))
    rows = [series.polyadd(first, others[0]), *others[1:]]
    drift = len(DRIFT_ROWS) if centred else 1
    rows[drift:drift] = [series.polyder(row) for row in rows[:drift]]
    degree = max(map(len, rows)) - 1
    coefficients: FloatArray = np.array([np.pad(row, (0, degree + 1 - len(row))) for row in rows])
    coefficients *= np.array([factorial(n) for n in range(degree + 1)], dtype=float)
    return coefficients


def _averaged(polynomial: tuple[float, ...], noise: tuple[float, float, float], powers: FloatArray) -> FloatArray:
    """Coefficients in B of the average of a product s1^a p1^b s2^c p2^d over the noise."""
    sigma, slope = np.array(polynomial), series.polyder(polynomial)
    views = [series.polymul(series.polypow(sigma, a), series.polypow(slope, b)) for a, b in (powers[:2], powers[2:])]
    ahead = [[series.polyder(view, i) / factorial(i) for i in range(len(view))] for view in views]
    total = np.zeros(1)
    for (i, one), (j, other) in product(*(enumerate(each) for each in ahead)):
        total = series.polyadd(total, _noise_moment(i, j, *noise) * series.polymul(one, other))
    return np.asarray(total)


def _noise_moment(i: int, j: int, v11: float, v12: float, v22: float) -> float:
    """E[z1^i z2^j] of the noise, by the pairs that are within a view and between both."""
    if (i + j) % 2:
        return 0.0
    total = 0.0
    for between in range(i % 2, min(i, j) + 1, 2):
        within = [_double_factorial(n - between - 1) * v ** ((n - between) / 2) for n, v in ((i, v11), (j, v22))]
        total += comb(i, between) * comb(j, between) * factorial(between) * v12**between * within[0] * within[1]
    return total


def _double_factorial(n: int) -> int:
    return 1 if n < 1 else n * _double_factorial(n - 2)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def rows_by_moments(rows, q):  # type: ignore[no-untyped-def]
    """Averages of rows at overlaps q, as `averages` returns them, but with <c_k f> for <m_k f>, and 0 for <v_k f>."""
    coefficients, d1 = rows.coefficients, q.size
    result = np.zeros((coefficients.shape[0], 1 + 2 * d1))
    whole, shifted = np.empty(coefficients.shape[1]), np.empty(coefficients.shape[1])
    for a in range(rows.probability.size):
        _sum_series(rows.moments[a], q, -1, whole)
        for r in range(coefficients.shape[0]):
            for n in range(whole.size):
                result[r, 0] += rows.probability[a] * coefficients[r, n] * whole[n]
        for k in range(d1):
            _sum_series(rows.moments[a], q, k, shifted)
            for r in range(rows.drift):
                for n in range(shifted.size - 1):
                    result[r, 1 + k] += rows.probability[a] * coefficients[r, n] * shifted[n]
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_series(moments, q, times, out):  # type: ignore[no-untyped-def]
    """Fill in E[B^n]/n! in one component, or E[c_k B^n]/n! for k = `times`; the last entry is then without meaning."""
    rest = 1.0
    for k in range(q.size):
        rest -= q[k] * q[k]
    out[:] = 0.0
    out[0] = 1.0
    for n in range(2, out.size, 2):
        out[n] = out[n - 2] * rest / n
    one = np.zeros(out.size)
    for k in range(q.size):
        power = 1.0
        shift = 1 if k == times else 0
        for n in range(out.size - shift):
            one[n] = moments[k, n + shift] * power
            power *= q[k] / (n + 1)
        if shift:
            one[out.size - 1] = 0.0
        for n in range(out.size - 1, -1, -1):
            total = 0.0
            for j in range(n + 1):
                total += one[j] * out[n - j]
            out[n] = total
