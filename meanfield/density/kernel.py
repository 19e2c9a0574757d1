"""The hot kernel: one implicit midpoint step of Scharfetter-Gummel finite volumes for many u-nodes at once.

For one node u the semi-discrete equation is dP_i/dt = -(F_i - F_{i-1})/h with the flux through the face between
cells i and i+1

    F_i = (D/h) [B(-z_i) P_i - B(z_i) P_{i+1}],    B(z) = z/(e^z - 1),    D = Lambda/2,

where z_i = -(V_{i+1} - V_i)/D is a difference of the potential V' = -Gamma, and no flux at the ends. With
C(z) = (z/2) coth(z/2), which is even, B(-+z) = C(z) +- z/2. Since u enters the drift only through -u.g,
z_i(u) = a_i + b_u: the kernel gets a (one number per face) and b (one per node).

The tridiagonal systems of `LANES` nodes are solved side by side, so that the innermost loop is over nodes and
vectorises; arrays are laid out as [block of nodes][cell][node in block].
"""

from __future__ import annotations

import numba
import numpy as np

from meanfield.elementary import exp_minus
from meanfield.typing import FloatArray

LANES = 16
"""Nodes that are solved side by side: two AVX-512 or four AVX2 registers of float64."""

SMALL = 2.0
"""Below this |z| the polynomial for C(z) is exact to rounding, and a row of faces needs no exponential."""

# C(z) as a polynomial in z^2: Chebyshev interpolation in 40 digits on |z| <= SMALL, error 7e-18.
C0 = 1.0
C1 = 0.08333333333333294
C2 = -0.0013888888888849836
C3 = 3.3068783053492134e-05
C4 = -8.267195459482287e-07
C5 = 2.087672076039273e-08
C6 = -5.283923158321537e-10
C7 = 1.3369819972385211e-11
C8 = -3.350338287376218e-13
C9 = 7.813567911741728e-15
C10 = -1.270941380639994e-16


@numba.njit(inline="always")
def _coth_polynomial(y):  # type: ignore[no-untyped-def]
    """C(z) for y = z^2 <= SMALL^2."""
    high = (((C10 * y + C9) * y + C8) * y + C7) * y + C6
    return (((((high * y + C5) * y + C4) * y + C3) * y + C2) * y + C1) * y + C0


@numba.njit(inline="always")
def bernoulli_pair(z):  # type: ignore[no-untyped-def]
    """B(-z) and B(z) for any z, to a relative accuracy of 1e-13 (8e-20 |z| absolute for B(|z|) beyond |z| = 44)."""
    s = abs(z)
    x = exp_minus(s)
    larger = s / max(1.0 - x, 1e-300)
    smaller = larger * x
    c = _coth_polynomial(min(z * z, SMALL * SMALL))
    if s <= SMALL:
        larger = c + 0.5 * s
        smaller = c - 0.5 * s
    return (larger, smaller) if z > 0.0 else (smaller, larger)


@numba.njit(
    "void(f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8, u8, u8)",
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath={"contract"},
)
def midpoint_step(P, result, scratch, a, b, k, cells, blocks):  # type: ignore[no-untyped-def]
    """Take one implicit midpoint step from P to result.

    Solves (1 - dt/2 A) P_mid = P by Gaussian elimination, which needs no pivoting because 1 - dt/2 A is an M-matrix;
    then result = 2 P_mid - P. All arrays are flat and all indices unsigned: otherwise LLVM does not vectorise.

    Parameters
    ----------
    P, result : ndarray, shape (blocks * cells * LANES,)
        Densities in packed layout.
    scratch : ndarray, shape ((cells + 1) * 4 * LANES,)
        Rows of elimination factor, right-hand side, k B(-z) and k B(z) of the face above each cell.
    a : ndarray, shape (cells - 1,)
        Part of z that depends on the face.
    b : ndarray, shape (blocks * LANES,)
        Part of z that depends on the node.
    k : float
        D dt / (2 h^2).
    """
    lanes = numba.uint64(LANES)
    one = numba.uint64(1)
    rhs = lanes
    up = lanes + lanes
    down = up + lanes
    width = down + lanes
    for block in range(blocks):
        start = block * cells * lanes
        node = block * lanes
        largest_b = 0.0
        for lane in range(width):
            scratch[lane] = 0.0  # the closed face below the first cell
        for lane in range(lanes):
            largest_b = max(largest_b, abs(b[node + lane]))
        for i in range(cells - one):
            below = i * width
            here = below + width
            row = start + i * lanes
            if abs(a[i]) + largest_b <= SMALL:
                for lane in range(lanes):
                    z = a[i] + b[node + lane]
                    c = k * _coth_polynomial(z * z)
                    forward = c + 0.5 * k * z
                    backward = c - 0.5 * k * z
                    came = scratch[below + up + lane]
                    inverse = 1.0 / (1.0 + forward + scratch[below + down + lane] - came * scratch[below + lane])
                    scratch[here + lane] = backward * inverse
                    scratch[here + rhs + lane] = (P[row + lane] + came * scratch[below + rhs + lane]) * inverse
                    scratch[here + up + lane] = forward
                    scratch[here + down + lane] = backward
            else:
                for lane in range(lanes):
                    z = a[i] + b[node + lane]
                    forward, backward = bernoulli_pair(z)
                    forward *= k
                    backward *= k
                    came = scratch[below + up + lane]
                    inverse = 1.0 / (1.0 + forward + scratch[below + down + lane] - came * scratch[below + lane])
                    scratch[here + lane] = backward * inverse
                    scratch[here + rhs + lane] = (P[row + lane] + came * scratch[below + rhs + lane]) * inverse
                    scratch[here + up + lane] = forward
                    scratch[here + down + lane] = backward
        below = (cells - one) * width
        row = start + (cells - one) * lanes
        for lane in range(lanes):
            came = scratch[below + up + lane]
            inverse = 1.0 / (1.0 + scratch[below + down + lane] - came * scratch[below + lane])
            middle = (P[row + lane] + came * scratch[below + rhs + lane]) * inverse
            scratch[lane] = middle
            result[row + lane] = 2.0 * middle - P[row + lane]
        for j in range(one, cells):
            i = cells - one - j
            here = (i + one) * width
            row = start + i * lanes
            for lane in range(lanes):
                middle = scratch[here + rhs + lane] + scratch[here + lane] * scratch[lane]
                scratch[lane] = middle
                result[row + lane] = 2.0 * middle - P[row + lane]


def pack(P: FloatArray) -> FloatArray:
    """(nodes, cells) -> (blocks, cells, LANES), filled up with copies of the last node."""
    nodes, cells = P.shape
    blocks = -(-nodes // LANES)
    padded = np.concatenate([P, np.repeat(P[-1:], blocks * LANES - nodes, axis=0)])
    return np.ascontiguousarray(padded.reshape(blocks, LANES, cells).transpose(0, 2, 1))


def unpack(packed: FloatArray, nodes: int) -> FloatArray:
    """The inverse of `pack`."""
    blocks, cells, lanes = packed.shape
    return np.ascontiguousarray(packed.transpose(0, 2, 1).reshape(blocks * lanes, cells)[:nodes])
