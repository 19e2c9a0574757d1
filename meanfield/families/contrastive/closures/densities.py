"""Densities of a Gaussian variable plus independent uniform ones ("boxes"), exact whatever their widths.

Let x = N(0, s^2) + h_1 u_1 + ... + h_n u_n with u_k uniform on [-1, 1], and let I_j be the j-fold antiderivative of the
Gaussian density that vanishes at -infinity: I_0 is the density, I_1 the distribution function, and
I_(j+1)(z) = (z I_j(z) + s^2 I_(j-1)(z))/j. Averaging over a box is a difference of antiderivatives, so that

    density of x       = sum_sigma (prod_j sigma_j) I_n(x + sigma.h) / prod_j (2 h_j)
    E[u_k; x], its u_k = (T - h_k S_k) / (h_k prod_j (2 h_j)),
    S_k = sum_sigma (prod_(j != k) sigma_j) I_n(x + sigma.h),  T = sum_sigma (prod_j sigma_j) I_(n+1)(x + sigma.h)

with sums over all signs. The differences cancel where a box is narrow compared with s; there it is a few nodes.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.numerics.compiled.exponential import LAST_EXPONENT, exp_minus
from meanfield.process import own_numba as numba

TAIL = 9.3
"""Standard deviations at which the tail of a Gaussian is cut. E[x^10] of what lies beyond is 2e-13 of the whole."""

PIECE = 3.5
"""Largest width of the range of a Gauss-Legendre rule, in standard deviations: the error is below 1e-16."""

NARROW_BOX = 0.3
"""Half-width of a box, in standard deviations, up to which a few nodes stand for it; beyond, antiderivatives do not
cancel."""

CANCELLATION = 1e4
"""Largest factor by which antiderivatives may exceed their differences: twelve digits remain."""

BOX_NODES, _box_weights = np.polynomial.legendre.leggauss(8)
BOX_WEIGHTS = 0.5 * _box_weights

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def exact_boxes(half_widths, deviation):  # type: ignore[no-untyped-def]
    """Number of boxes, the widest first, for which the formulas of this module hold beside a Gaussian."""
    count = 0
    span, product, factorial = deviation, 1.0, 1.0
    for h in half_widths:
        if h <= NARROW_BOX * deviation:
            break
        span += h
        product *= 2.0 * h
        # T, of size span^n/n!, over the factor h prod (2 h_j), relative to a density of size 1/span
        factorial *= count + 1
        if span ** (count + 2) > CANCELLATION * factorial * product * h:
            break
        count += 1
    return count


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_density(x, weight, centre, deviation, half_widths, out):  # type: ignore[no-untyped-def]
    """Add the weighted density at the points x, and its product with the mean of each u_k there.

    Parameters
    ----------
    x, weight : ndarray, shape (points,)
    centre, deviation : float
        Mean and standard deviation of the Gaussian.
    half_widths : ndarray, shape (n,)
        Half-widths of the boxes, in descending order.
    out : ndarray, shape (1 + n, points)
    """
    narrow = 0
    for h in half_widths:
        narrow += h <= NARROW_BOX * deviation
    wide = half_widths.size - narrow
    if narrow == 0:
        _add_wide(x, weight, centre, deviation, half_widths, out)
        return
    part = np.empty((1 + wide, x.size))
    for combination in range(BOX_NODES.size**narrow):
        shift, share, rest = 0.0, 1.0, combination
        for k in range(wide, half_widths.size):
            node = rest % BOX_NODES.size
            rest //= BOX_NODES.size
            shift += half_widths[k] * BOX_NODES[node]
            share *= BOX_WEIGHTS[node]
        part[:] = 0.0
        _add_wide(x, weight, centre + shift, deviation, half_widths[:wide], part)
        for k in range(1 + wide):
            add_multiple(out[k], share, part[k])
        rest = combination
        for k in range(wide, half_widths.size):
            add_multiple(out[1 + k], share * BOX_NODES[rest % BOX_NODES.size], part[0])
            rest //= BOX_NODES.size


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nnan"})
def _add_gaussian(x, weight, centre, deviation, density):  # type: ignore[no-untyped-def]
    """Add the weighted density of N(centre, deviation^2) at the points x; without NaN this vectorises."""
    scale = 1.0 / deviation
    factor = scale / _ROOT_TWO_PI
    for i in range(x.size):
        y = (x[i] - centre) * scale
        s = 0.5 * y * y
        density[i] += weight[i] * factor * exp_minus(s) if s < LAST_EXPONENT else 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_wide(x, weight, centre, deviation, half_widths, out):  # type: ignore[no-untyped-def]
    """Add the weighted density by the formulas of this module, for boxes that are wide enough."""
    n = half_widths.size
    if n == 0:
        _add_gaussian(x, weight, centre, deviation, out[0])
        return
    scale, variance = 1.0 / deviation, deviation * deviation
    product = 1.0
    for h in half_widths:
        product *= 2.0 * h
    single = np.empty(n)
    for i in range(x.size):
        # from the side of the nearer tail, where the differences do not cancel
        d = -abs(x[i] - centre)
        side = 1.0 if x[i] < centre else -1.0
        total = higher = 0.0
        single[:] = 0.0
        for signs in range(1 << n):
            z, sign = d, 1.0
            for k in range(n):
                if signs >> k & 1:
                    z -= half_widths[k]
                    sign = -sign
                else:
                    z += half_widths[k]
            y = z * scale
            if y < -TAIL:
                continue
            before, now = 0.0, 1.0
            if y < TAIL:
                before = math.exp(-0.5 * y * y) * scale / _ROOT_TWO_PI
                now = 0.5 * math.erfc(-math.sqrt(0.5) * y)
            for j in range(1, n):
                before, now = now, (z * now + variance * before) / j
            total += sign * now
            higher += sign * (z * now + variance * before) / n
            for k in range(n):
                single[k] += -sign * now if signs >> k & 1 else sign * now
        out[0, i] += weight[i] * total / product
        for k in range(n):
            out[1 + k, i] += side * weight[i] * (higher / half_widths[k] - single[k]) / product


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_multiple(out, factor, values):  # type: ignore[no-untyped-def]
    """Add factor * values in place."""
    for i in range(out.size):
        out[i] += factor * values[i]
