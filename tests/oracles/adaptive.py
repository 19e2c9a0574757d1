"""A third evaluation of g and Lambda, to test the oracle: adaptive quadrature over c, e and the noise, one by one.

It is slow and simple. Common noise is moved to e: with v12 >= 0 the views are independent given c.q + (common part),
otherwise the noises must be opposite. <(d1 + d2) h> = <n h>/s with n the common Gaussian variable and s its factor.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
from scipy.integrate import quad_vec

from tests.oracles.activations import sigma
from tests.oracles.laws import Hidden, normal_density

ENDS = 9.5


def _integral(f, low, high, points):
    inner = sorted({p for p in points if low < p < high})
    total, left = 0.0, low
    for right in [*inner, high]:
        total += quad_vec(f, left, right, epsabs=1e-12, epsrel=1e-12, quadrature="gk21")[0]  # a tenth of what is tested
        left = right
    return total


def over_everything(table, activation, q, v):
    """<f> for all products f that are needed, with n and c: one feature.

    Returns
    -------
    dict
        <s1>, <s2>, then for each of 1, n/s and c the averages of p1, p2, s1 p2 + s2 p1, and the products in Lambda.
    """
    function = sigma(activation)
    kinks = list(function.kinks)
    hidden = Hidden([table], function.growth)
    common = max(v[0, 1], 0.0)
    s = np.sqrt(1 - q * q + common)
    own = np.sqrt(np.diag(v) - common) if common else np.sqrt(np.diag(v))

    def products(theta1, theta2):
        s1, s2 = function.value(theta1), function.value(theta2)
        p1, p2 = function.slope(theta1), function.slope(theta2)
        return np.array([s1, s2, p1, p2, s1 * p2 + s2 * p1, (s1 * p2) ** 2, (s2 * p1) ** 2, s1 * s2 * p1 * p2])

    def one_view(b, deviation):
        """s, p, s^2, s p, p^2 averaged over the noise of one view."""

        def f(x):
            value, slope = function.value(b + deviation * x), function.slope(b + deviation * x)
            return np.array([value, slope, value**2, value * slope, slope**2])

        if deviation == 0:
            return f(0.0)
        return _integral(lambda x: normal_density(x) * f(x), -ENDS, ENDS, [0, *((k - b) / deviation for k in kinks)])

    def given(b):
        if v[0, 1] < 0:  # opposite
            a1, a2 = own[0], -own[1]
            points = [0, *((k - b) / a for k in kinks for a in (a1, a2))]
            return _integral(lambda x: normal_density(x) * products(b + a1 * x, b + a2 * x), -ENDS, ENDS, points)
        s1, p1, ss1, sp1, pp1 = one_view(b, own[0])
        s2, p2, ss2, sp2, pp2 = one_view(b, own[1])
        return np.array([s1, s2, p1, p2, s1 * p2 + s2 * p1, ss1 * pp2, ss2 * pp1, sp1 * sp2])

    def over_n(c):
        def f(n):
            return normal_density(n) * np.multiply.outer([1.0, n / s, c], given(c * q + s * n))

        return _integral(f, -ENDS, ENDS, [0, *((k - c * q) / s for k in kinks)])

    if hidden.density is not None:
        law = hidden.density
        reach = min(law.reach, 100.0)
        return _integral(lambda c: float(law.p(np.array(c))) * over_n(c), -reach, reach, [0.0, *law.breaks])
    assert not hidden.variance.any()
    return sum(p * over_n(c[0]) for p, c in zip(hidden.probability, hidden.mean, strict=True))


def without_centring(table, activation, q, v, tau, m):
    """g and Lambda without centring, one feature."""
    mean = over_everything(table, activation, q, v)
    g = tau * (q * mean[1, 4] - mean[2, 4])
    factors = np.array([1 + v[1, 1], 1 + v[0, 0], 2 * (1 + v[0, 1])])
    return g, tau**2 / m * factors @ mean[0, 5:]


def with_population_centring(table, activation, q, tau, m):
    """g and Lambda without noise, by mpmath's own functions to 20 digits; the law has values only."""
    value, slope = MPMATH[activation]
    hidden = Hidden([table])
    kinks = list(sigma(activation).kinks)
    with mp.workdps(25):
        q = mp.mpf(q)
        s = mp.sqrt(1 - q**2)

        def mean(f):
            total = mp.mpf(0)
            for p, (c,) in zip(hidden.probability, hidden.mean, strict=True):
                points = sorted(
                    {-14, -7, -3, 0, 3, 7, 14, *((k - c * q) / s for k in kinks if abs(k - c * q) < 14 * s)}
                )
                total += p * mp.quad(lambda e, c=c: f(c * q + s * e, c, e) * mp.npdf(e), points)
            return total

        y = mean(lambda x, c, e: value(x))
        g = 2 * tau * mean(lambda x, c, e: (q * e / s - c) * (value(x) - y) * slope(x))
        Lambda = 4 * mp.mpf(tau) ** 2 / m * mean(lambda x, c, e: ((value(x) - y) * slope(x)) ** 2)
        return float(g), float(Lambda)


def _logistic(x):
    return 1 / (1 + mp.exp(-x))


MPMATH = {
    "quadratic": (lambda x: x**2, lambda x: 2 * x),
    "relu": (lambda x: max(x, mp.mpf(0)), lambda x: mp.mpf(x > 0)),
    "hard_tanh": (lambda x: min(max(x, mp.mpf(-1)), mp.mpf(1)), lambda x: mp.mpf(abs(x) < 1)),
    "erf": (mp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-(x**2))),
    "tanh": (mp.tanh, lambda x: mp.sech(x) ** 2),
    "sigmoid": (_logistic, lambda x: _logistic(x) * _logistic(-x)),
    "softplus": (lambda x: mp.log(1 + mp.exp(x)), _logistic),
    "gelu": (lambda x: x * mp.ncdf(x), lambda x: mp.ncdf(x) + x * mp.npdf(x)),
    "silu": (lambda x: x * _logistic(x), lambda x: _logistic(x) + x * _logistic(x) * _logistic(-x)),
    "sin": (mp.sin, mp.cos),
}
"""Activations sigma and sigma' in mpmath."""
