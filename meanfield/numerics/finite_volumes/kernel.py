"""The hot kernel: one implicit midpoint step of Scharfetter-Gummel finite volumes for many u-nodes at once.

For one node u the semi-discrete equation is dP_i/dt = -(F_i - F_{i-1})/h with the flux through the face between
cells i and i+1

    F_i = (D/h) [B(-z_i) P_i - B(z_i) P_{i+1}],    B(z) = z/(e^z - 1),    D = Lambda/2,

where z_i = -(V_{i+1} - V_i)/D is a difference of the potential V' = -Gamma, and no flux at the ends. Since u enters the
drift only through -u.g, z_i(u) = a_i + b_u: the kernel gets a (one number per face) and b (one per node), and
exp(-z/2) is a product of their exponentials.

With k = D dt/(2 h^2), f = k B(-z) and g = k B(z), the half step is the system

    -f_{i-1} M_{i-1} + (1 + f_i + g_{i-1}) M_i - g_i M_{i+1} = P_i.

Its elimination needs no pivoting, because the matrix is an M-matrix, and no subtraction: pivots are s_i + f_i with
s_0 = 1 and s_{i+1} = 1 + s_i g_i/(s_i + f_i). Fluxes are kept as fractions f = n/d, g = n x/d with x = exp(-z), so that
one division per cell is enough: g/(s + f) = n x q with q = 1/(n + s d).

The systems of several nodes are solved side by side, in the lanes of `meanfield.numerics.compiled.vectors`; arrays are
laid out as [block of nodes][cell][node in block].
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.numerics.compiled.exponential import exp_between
from meanfield.numerics.compiled.vectors import NARROW_LANES, WIDE_LANES, lanes_for, load, spread, store, where_less
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

SERIES_BOUND = 0.25
"""Value of |z| below which fluxes come from a series; beyond it 1 - exp(-z) has lost at most two bits."""

# sinh(z/2)/(z/2) in powers of z^2; what follows is below 2e-17 for |z| <= SERIES_BOUND.
S1, S2, S3, S4 = (1.0 / (4.0**j * math.factorial(2 * j + 1)) for j in range(1, 5))

LARGEST_EXPONENT = 600.0
"""Value of |z| at which exp(-|z|) is cut, where B(|z|)/B(-|z|) = 3e-261, so that nothing overflows."""


@numba.njit(inline="always")
def flux_fractions(z, root, k):  # type: ignore[no-untyped-def]
    """Lanes of n, d and x with k B(-z) = n/d and k B(z) = n x/d, given root = exp(-z/2)."""
    x = root * root
    y = z * z
    series = (((S4 * y + S3) * y + S2) * y + S1) * y + 1.0
    n = where_less(y, SERIES_BOUND * SERIES_BOUND, k, k * z)
    d = where_less(y, SERIES_BOUND * SERIES_BOUND, root * series, 1.0 - x)
    return n, d, x


@numba.njit(inline="always")
def steep_root(z):  # type: ignore[no-untyped-def]
    """Lanes of exp(-z/2), cut at |z| = LARGEST_EXPONENT."""
    upper = where_less(z, LARGEST_EXPONENT, z, LARGEST_EXPONENT)
    return exp_between(-0.5 * where_less(upper, -LARGEST_EXPONENT, -LARGEST_EXPONENT, upper))


@numba.njit(inline="always", error_model="numpy")
def _midpoint_step(P, result, scratch, a, b, k, cells, blocks, lanes):  # type: ignore[no-untyped-def]
    """Midpoint step as in `midpoint_step`, where `lanes` is a constant."""
    one = numba.uint64(1)
    width = numba.uint64(lanes)
    roots = cells * width
    for i in range(cells - one):
        scratch[roots + i] = exp_between(-0.5 * min(max(a[i], -LARGEST_EXPONENT), LARGEST_EXPONENT))
    for block in range(blocks):
        start = block * cells * width
        tilt = load(b, block * width, lanes)
        tilt_root = steep_root(tilt)
        largest_tilt = 0.0
        for lane in range(width):
            largest_tilt = max(largest_tilt, abs(b[block * width + lane]))
        s = spread(1.0, lanes)
        inflow = spread(0.0, lanes)
        for i in range(cells - one):
            z = a[i] + tilt
            root = scratch[roots + i] * tilt_root if abs(a[i]) + largest_tilt <= LARGEST_EXPONENT else steep_root(z)
            n, d, x = flux_fractions(z, root, k)
            q = 1.0 / (n + s * d)
            v = (load(P, start + i * width, lanes) + inflow) * q
            factor = (n * x) * q
            store(result, start + i * width, v * d)
            store(scratch, i * width, factor)
            inflow = n * v
            s = 1.0 + s * factor
        last = start + (cells - one) * width
        M = (load(P, last, lanes) + inflow) / s
        store(result, last, M + (M - load(P, last, lanes)))
        for j in range(one, cells):
            i = cells - one - j
            M = load(result, start + i * width, lanes) + load(scratch, i * width, lanes) * M
            store(result, start + i * width, M + (M - load(P, start + i * width, lanes)))


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def midpoint_step(P, result, scratch, a, b, k, cells, blocks, lanes):  # type: ignore[no-untyped-def]
    """Take one implicit midpoint step from P to result: solve for the half step M, then result = 2 M - P.

    Parameters
    ----------
    P, result : ndarray, shape (blocks * cells * lanes,)
        Densities in packed layout.
    scratch : ndarray, shape (cells * (lanes + 1),)
        Elimination factors of a block, and exp(-a/2).
    a : ndarray, shape (cells - 1,)
        Part of z that depends on the face.
    b : ndarray, shape (blocks * lanes,)
        Part of z that depends on the node.
    k : float
        D dt / (2 h^2).
    cells, blocks, lanes : uint64
        Sizes; `lanes` is `NARROW_LANES` or `WIDE_LANES`.
    """
    if lanes == NARROW_LANES:
        _midpoint_step(P, result, scratch, a, b, k, cells, blocks, NARROW_LANES)
    else:
        _midpoint_step(P, result, scratch, a, b, k, cells, blocks, WIDE_LANES)


def pack(P: FloatArray) -> FloatArray:
    """Packed layout of an array: (nodes, cells) -> (blocks, cells, lanes), filled up with copies of the last node."""
    nodes, cells = P.shape
    lanes = lanes_for(nodes)
    blocks = -(-nodes // lanes)
    padded = np.concatenate([P, np.repeat(P[-1:], blocks * lanes - nodes, axis=0)])
    return np.ascontiguousarray(padded.reshape(blocks, lanes, cells).transpose(0, 2, 1))


def unpack(packed: FloatArray, nodes: int) -> FloatArray:
    """Inverse of `pack`: (blocks, cells, lanes) -> (nodes, cells)."""
    blocks, cells, lanes = packed.shape
    return np.ascontiguousarray(packed.transpose(0, 2, 1).reshape(blocks * lanes, cells)[:nodes])
