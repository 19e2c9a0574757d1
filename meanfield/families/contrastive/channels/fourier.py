"""Averages over a batch for two channels, the penalty |C| and views without noise, by one Fourier integral.

Given the product p = y_1 y_2 of the outputs of a sample, the covariance C = (p + sum' p)/m of its batch has a random
sign, whose average is

    <sign(C) | p> = (2/pi) int_0^inf (domega/omega) Im{ chi(omega)^(m-1) exp(i omega p) }

with chi(omega) = <exp(i omega p)>, and sign(C)^2 = 1, so that Lambda needs no more.
Source: theory-multi-channel.md, section 3.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from meanfield.families.contrastive.channels.averages import add_averages
from meanfield.families.contrastive.channels.one_sample import centre_outputs, fill_nodes, fill_outputs

VANISHED = 1e-12
"""Size of chi^(m-1) below which the integral ends."""

PANEL = 0.5
"""Width of a panel of the integral, in units of 1/sd of the sum of the products over a batch."""

MOST_PANELS = 400
"""Largest number of panels: beyond them chi decays too slowly, and the rest is left out."""

PANEL_NODES, PANEL_WEIGHTS = np.polynomial.legendre.leggauss(8)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fourier_averages(law, rule, activation, strength, centred, others, factors, q, M):  # type: ignore[no-untyped-def]
    """P, D and Lambda / tau^2 in one vector; see `exact_averages` for what is not described here.

    Parameters
    ----------
    strength : float
        lambda.
    """
    d1, d2 = q.shape
    weight, theta, x = fill_nodes(law, rule, q, M)
    y, s = fill_outputs(activation, theta)
    if centred:
        centre_outputs(weight, y)
    sign = _mean_signs(weight, y[0] * y[1], others)
    values = np.empty((5, weight.size))
    for n in range(weight.size):
        a, b, c = y[0, n], y[1, n], strength * sign[n]
        values[0, n] = a - c * b
        values[1, n] = b - c * a
        values[2, n] = a * a - 2.0 * c * a * b + strength * strength * b * b
        values[3, n] = a * b * (1.0 + strength * strength) - c * (a * a + b * b)
        values[4, n] = b * b - 2.0 * c * a * b + strength * strength * a * a
    result = np.zeros(d1 * d2 + 2 * d2 * d2)
    add_averages(weight, theta, x, s, values, factors, 0, weight.size, d1, d2, result)
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _mean_signs(weight, p, others):  # type: ignore[no-untyped-def]
    """<sign(C) | p> at all nodes."""
    mean, square = 0.0, 0.0
    for n in range(p.size):
        mean += weight[n] * p[n]
        square += weight[n] * p[n] * p[n]
    deviation = math.sqrt(max(square - mean * mean, 1e-300))
    half = 0.5 * PANEL / (deviation * math.sqrt(others + 1.0))
    signs = np.zeros(p.size)
    cosine, sine = np.empty(p.size), np.empty(p.size)
    largest = 1.0
    for panel in range(MOST_PANELS):
        if largest < VANISHED:
            break
        largest = 0.0
        for i in range(PANEL_NODES.size):
            omega = (2.0 * panel + 1.0 + PANEL_NODES[i]) * half
            chi = 0.0j
            for n in range(p.size):
                cosine[n], sine[n] = math.cos(omega * p[n]), math.sin(omega * p[n])
                chi += weight[n] * complex(cosine[n], sine[n])
            power = chi**others
            largest = max(largest, abs(power))
            share = 2.0 / math.pi * half * PANEL_WEIGHTS[i] / omega
            for n in range(p.size):
                signs[n] += share * (power.real * sine[n] + power.imag * cosine[n])
    return signs
