"""Averages over a batch for two channels, the penalty |C| and views without noise, by one Fourier integral.

Given the product p = y_1 y_2 of the outputs of a sample, the covariance C = (p + sum' p)/m of its batch has a random
sign, whose average is

    <sign(C) | p> = (2/pi) int_0^inf (domega/omega) Im{ chi(omega)^(m-1) exp(i omega p) }

with chi(omega) = <exp(i omega p)>, and sign(C)^2 = 1, so that Lambda needs no more.
Source: several_channels.md, section 3.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.families.contrastive.channels.averages import add_averages
from meanfield.families.contrastive.channels.one_sample import centre_outputs, fill_nodes, fill_outputs
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fourier_averages(batch, strength, rule, q, M):  # type: ignore[no-untyped-def]
    """P, D and Lambda / tau^2 in one vector; see `exact_averages` for what is not described here.

    Parameters
    ----------
    strength : float
        lambda.
    """
    d1, d2 = q.shape
    weight, theta, x = call(fill_nodes, batch.sample, rule, q, M)
    y, s = fill_outputs(batch.activation, theta)
    if batch.centred:
        centre_outputs(weight, y)
    sign = _mean_signs(weight, y[0] * y[1], batch.size - 1.0)
    values = np.empty((5, weight.size))
    for n in range(weight.size):
        a, b, c = y[0, n], y[1, n], strength * sign[n]
        values[0, n] = a - c * b
        values[1, n] = b - c * a
        values[2, n] = a * a - 2.0 * c * a * b + strength * strength * b * b
        values[3, n] = a * b * (1.0 + strength * strength) - c * (a * a + b * b)
        values[4, n] = b * b - 2.0 * c * a * b + strength * strength * a * a
    result = np.zeros(d1 * d2 + 2 * d2 * d2)
    add_averages(weight, theta, x, s, values, batch.factors, np.int64(0), weight.size, d1, d2, result)
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _mean_signs(weight, p, others):  # type: ignore[no-untyped-def]
    """<sign(C) | p> at all nodes, NaN if chi^(m-1) does not vanish.

    The integrand is even and analytic. At frequencies (i + 1/2) h the midpoint rule is the Fourier series of a square
    wave, which is the sign of every sum of size below 2 pi/h: nothing but the end of the series is an error.
    """
    signs = np.zeros(p.size)
    if others == 0.0:
        for n in range(p.size):
            signs[n] = 1.0 if p[n] > 0.0 else -1.0 if p[n] < 0.0 else 0.0
        return signs
    mean, square, farthest = 0.0, 0.0, 0.0
    for n in range(p.size):
        mean += weight[n] * p[n]
        square += weight[n] * p[n] * p[n]
        if weight[n] > 1e-14:  # lighter nodes do not count for the range of the sum
            farthest = max(farthest, abs(p[n]))
    m = others + 1.0
    # The sum of the products over a batch stays within nine standard deviations, besides its largest term.
    spread = abs(mean) * m + 9.0 * math.sqrt(max(square - mean * mean, 0.0) * m) + 2.0 * farthest
    step = 2.0 * math.pi / max(min(spread, m * farthest * 1.01), 1e-300)
    real, imaginary = np.cos(0.5 * step * p), np.sin(0.5 * step * p)
    turn_real, turn_imaginary = np.cos(step * p), np.sin(step * p)
    for i in range(3000):
        power = complex(_weighted_sum(weight, real), _weighted_sum(weight, imaginary)) ** others
        size = abs(power)
        if size < 1e-11:
            return signs
        share = 4.0 / math.pi / (2 * i + 1)
        a, b = share * power.real, share * power.imag
        for n in range(p.size):
            x, y = real[n], imaginary[n]
            signs[n] += a * y + b * x
            real[n] = x * turn_real[n] - y * turn_imaginary[n]
            imaginary[n] = x * turn_imaginary[n] + y * turn_real[n]
    if size > 1e-8:  # where more is left there is no number
        signs[:] = np.nan
    return signs


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _weighted_sum(weight, values):  # type: ignore[no-untyped-def]
    """Sum of products; the order of its additions is the compiler's choice."""
    total = 0.0
    for n in range(weight.size):
        total += weight[n] * values[n]
    return total
