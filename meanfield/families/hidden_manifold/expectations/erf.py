"""Expectations for the activation erf(x/sqrt 2), in closed form, with field means.

The slope g'(x) is twice the standard normal density. So a factor g'(h_k) of an expectation is an observation: that h_k
plus standard normal noise is 0. Given it, fields are Gaussian again, with a covariance that takes no inverse but that
of 1 + C_kk, so that nothing is singular where the covariance C of the fields is.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.legendre import leggauss

from meanfield.process import own_numba as numba

NODES, WEIGHTS = leggauss(24)
FEW_NODES, FEW_WEIGHTS = leggauss(10)
"""Gauss-Legendre rules on [-1, 1]; they leave errors of 1e-14 in `product_of_two` up to these correlations."""

SMOOTH, VERY_SMOOTH = 0.9, 0.5
"""Correlations up to which a single panel of many or few nodes is enough; beyond them the angle from pi/2 is halved
from panel to panel."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def erf_expectations(K, C, m, u, label_noise, A, H, G, D):  # type: ignore[no-untyped-def]
    """Write the expectations that drive K students, and return the generalisation error.

    Parameters
    ----------
    K : int
        Number of students, whose fields come first.
    C, m : ndarray, shape (fields, fields) and (fields,)
        Covariance and mean of the fields h.
    u : ndarray, shape (fields,)
        Second layer (v, -v_teacher), so that Delta = sum_a u_a g(h_a).
    label_noise : float
        Variance of an independent number with mean 0 that is added to Delta in training.
    A : ndarray, shape (K, fields)
        Where v_k E[d/dh_a (Delta g'(h_k))] goes.
    H : ndarray, shape (K, K)
        Where v_k v_l E[(Delta^2 + label_noise) g'(h_k) g'(h_l)] goes.
    G, D : ndarray, shape (K,)
        Where v_k E[Delta g'(h_k)] and E[Delta g(h_k)] go.
    """
    n = u.size
    once, mean = np.empty((n, n)), np.empty(n)
    twice, mean_twice = np.empty((n, n)), np.empty(n)
    for k in range(K):
        likelihood = _observe(n, k, C, m, once, mean)
        curvature = G[k] = 0.0
        for a in range(n):
            width = 1.0 + once[a, a]
            value = math.erf(mean[a] / math.sqrt(2.0 * width))
            slope = likelihood * _twice_density(mean[a], width)
            A[k, a] = u[k] * u[a] * slope
            G[k] += u[k] * u[a] * likelihood * value
            curvature -= u[a] * (likelihood * mean[k] * value + once[k, a] * slope)  # g''(x) = -x g'(x)
        A[k, k] += u[k] * curvature
        for j in range(k, K):
            both = likelihood * _observe(n, j, once, mean, twice, mean_twice)
            H[k, j] = H[j, k] = u[k] * u[j] * both * (_square(n, u, twice, mean_twice) + label_noise)
        D[k] = 0.0
        for a in range(n):
            D[k] += u[a] * product_of_two(C[k, k], C[a, a], C[k, a], m[k], m[a])
    return 0.5 * _square(n, u, C, m)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _observe(n, k, C, m, after, mean):  # type: ignore[no-untyped-def]
    """Condition on h_k plus noise being 0: write covariance and mean after it, and return E[g'(h_k)]."""
    width = 1.0 + C[k, k]
    for a in range(n):
        gain = C[a, k] / width
        mean[a] = m[a] - gain * m[k]
        for b in range(n):
            after[a, b] = C[a, b] - gain * C[b, k]
    return _twice_density(m[k], width)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _twice_density(x, variance):  # type: ignore[no-untyped-def]
    """Twice the density of N(0, variance) at x."""
    return math.sqrt(2.0 / (math.pi * variance)) * (math.exp(-0.5 * x * x / variance) if x else 1.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _square(n, u, C, m):  # type: ignore[no-untyped-def]
    """E[Delta^2]."""
    total = 0.0
    for a in range(n):
        for b in range(a):
            total += 2.0 * u[a] * u[b] * product_of_two(C[a, a], C[b, b], C[a, b], m[a], m[b])
        total += u[a] * u[a] * product_of_two(C[a, a], C[a, a], C[a, a], m[a], m[a])
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def product_of_two(variance, other_variance, covariance, mean, other_mean):  # type: ignore[no-untyped-def]
    """E[g(x) g(y)] of two Gaussian variables.

    With noises of variance 1 it is that of two signs, of which P(x > 0, y > 0) is an integral over the correlation.
    """
    width, other_width = 1.0 + variance, 1.0 + other_variance
    rest = math.sqrt(width * other_width - covariance * covariance)
    if mean == 0.0 and other_mean == 0.0:
        return 2.0 / math.pi * math.atan2(covariance, rest)
    p, q = mean / math.sqrt(width), other_mean / math.sqrt(other_width)
    apart = math.erf(p * math.sqrt(0.5)) * math.erf(q * math.sqrt(0.5))
    if covariance < 0.0:
        return apart - 2.0 / math.pi * _over_correlations(p, -q, math.atan2(rest, -covariance))
    return apart + 2.0 / math.pi * _over_correlations(p, q, math.atan2(rest, covariance))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _over_correlations(p, q, least):  # type: ignore[no-untyped-def]
    """Integral of exp(-(p^2 + q^2 - 2 p q sin)/(2 cos^2)) over angles, counted from pi/2, from `least` to pi/2."""
    if least > math.acos(VERY_SMOOTH):
        return _panel(p, q, least, 0.5 * math.pi, FEW_NODES, FEW_WEIGHTS)
    high = max(least, math.acos(SMOOTH))
    total = _panel(p, q, high, 0.5 * math.pi, NODES, WEIGHTS)
    while high - least > 1e-14:  # a shorter interval adds nothing to an integral of numbers up to 1
        low = max(least, 0.5 * high)
        total += _panel(p, q, low, high, NODES, WEIGHTS)
        high = low
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _panel(p, q, low, high, nodes, weights):  # type: ignore[no-untyped-def]
    half = 0.5 * (high - low)
    middle = 0.5 * (high + low)
    total = 0.0
    for i in range(nodes.size):
        x = middle + half * nodes[i]
        total += weights[i] * math.exp(-0.5 * ((p - q) / math.sin(x)) ** 2 - p * q / (1.0 + math.cos(x)))
    return half * total
