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

NODES = 512
"""Number of nodes whose numbers are held at once: they stay in the cache."""


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
    chi, size = _powers(weight, p, step, others)
    if size > 1e-8:  # where more is left there is no number
        signs[:] = np.nan
        return signs
    for start in range(0, p.size, NODES):
        block = p[start : start + NODES]
        _add_series(chi, np.cos(0.5 * step * block), np.sin(0.5 * step * block), step * block, signs[start:])
    return signs


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _powers(weight, p, step, others):  # type: ignore[no-untyped-def]
    """chi^(m-1) until it vanishes, at an even number of frequencies, and its size at the last one that was looked at.

    Frequencies are taken some at a time for nodes whose numbers stay in the cache.
    """
    real, imaginary = np.cos(0.5 * step * p), np.sin(0.5 * step * p)
    turn_real, turn_imaginary = np.cos(step * p), np.sin(step * p)
    powers = np.empty(3000, dtype=np.complex128)
    size = 1.0
    for first in range(0, powers.size, 50):
        chi = powers[first : first + 50]
        chi[:] = 0.0
        for start in range(0, p.size, NODES):
            nodes = slice(start, start + NODES)
            _add_chi(weight[nodes], real[nodes], imaginary[nodes], turn_real[nodes], turn_imaginary[nodes], chi)
        for i in range(chi.size):
            chi[i] = chi[i] ** others
            size = abs(chi[i])
            if size < 1e-11:
                chi[i:] = 0.0
                return powers[: first + i + i % 2], size
    return powers, size


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _add_chi(weight, real, imaginary, turn_real, turn_imaginary, chi):  # type: ignore[no-untyped-def]
    """Add weights times (real + i imaginary) of some nodes to chi, which turn from frequency to frequency.

    Two frequencies at once take half the loads. The order of the additions is the compiler's choice.
    """
    for i in range(0, chi.size, 2):
        cosine, sine, next_cosine, next_sine = 0.0, 0.0, 0.0, 0.0
        for n in range(weight.size):
            x, y, u, v = real[n], imaginary[n], turn_real[n], turn_imaginary[n]
            cosine += weight[n] * x
            sine += weight[n] * y
            x, y = x * u - y * v, x * v + y * u
            next_cosine += weight[n] * x
            next_sine += weight[n] * y
            real[n], imaginary[n] = x * u - y * v, x * v + y * u
        chi[i] += complex(cosine, sine)
        chi[i + 1] += complex(next_cosine, next_sine)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _add_series(powers, real, imaginary, turn, signs):  # type: ignore[no-untyped-def]
    """Add the Fourier series to the signs of some nodes; two terms at once, as above."""
    turn_real, turn_imaginary = np.cos(turn), np.sin(turn)
    for i in range(0, powers.size, 2):
        first = 4.0 / math.pi / (2 * i + 1) * powers[i]
        second = 4.0 / math.pi / (2 * i + 3) * powers[i + 1]
        for n in range(turn.size):
            x, y, u, v = real[n], imaginary[n], turn_real[n], turn_imaginary[n]
            total = first.real * y + first.imag * x
            x, y = x * u - y * v, x * v + y * u
            signs[n] += total + second.real * y + second.imag * x
            real[n], imaginary[n] = x * u - y * v, x * v + y * u
