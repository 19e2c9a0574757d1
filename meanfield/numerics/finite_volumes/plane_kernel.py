"""The hot kernel in the plane: one implicit midpoint step along all lattice lines of one direction, for many nodes.

Cells are the squares of side h of a square grid, seen by several u-nodes at once. A line goes from cell x to x + e,
x + 2e, ... with an integer vector e. Neighbours on it exchange mass as in one dimension (`kernel`), so that with

    z = alpha . (x + x')/2 + beta_u + sum_k c_k (F_k(x') + s_k F_k(x))

each line is a tridiagonal system by itself, an M-matrix, that conserves mass. F_k is a potential with s_k = -1, whose
difference over the length of the step is the mean force on it, or, where the coordinate of the potential hardly changes
along e, the force itself with s_k = 1. Lattice lines are those of Selling's decomposition of the diffusion matrix: D is
a sum of at most three terms rho e e^T with weights rho >= 0 and integer vectors e, so that fluxes have one sign
(several_channels.md, section 5). Nodes are in lanes; arrays are laid out as [block of nodes][i][j][node in
block].
"""

from __future__ import annotations

import numpy as np

from meanfield.numerics.compiled.scalar_functions import call_loop
from meanfield.numerics.compiled.vectors import NARROW_LANES, WIDE_LANES, load, spread, store
from meanfield.numerics.finite_volumes.kernel import flux_fractions, steep_root
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

SUMS = 12
"""Averages of a node: P, P x (2), P x x (3), P f (2) and P f x (4)."""


@numba.njit(inline="always", error_model="numpy")
def _sweep(P, first, second, signs, beta, alpha, c, k, direction, axis, scratch, blocks, lanes):  # type: ignore[no-untyped-def]
    """Step as in `sweep`, where `lanes` is a constant."""
    n = axis.size
    a, b = direction[0], direction[1]
    width = numba.uint64(lanes)
    stride = numba.uint64((a * n + b) * lanes)
    half1, half2 = 0.5 * a * (axis[1] - axis[0]), 0.5 * b * (axis[1] - axis[0])
    for block in range(blocks):
        tilt = load(beta, numba.uint64(block) * width, lanes)
        for i in range(n):
            for j in range(n):
                if a <= i < n and 0 <= j - b < n:
                    continue  # not the first cell of its line
                count = n if a == 0 else (n - 1 - i) // a + 1
                if b > 0:
                    count = min(count, (n - 1 - j) // b + 1)
                elif b < 0:
                    count = min(count, j // -b + 1)
                if count < 2:
                    continue
                place = numba.uint64(((block * n + i) * n + j) * lanes)
                fixed = alpha[0] * (axis[i] + half1) + alpha[1] * (axis[j] + half2)
                along = 2.0 * (alpha[0] * half1 + alpha[1] * half2)
                s = spread(1.0, lanes)
                inflow = spread(0.0, lanes)
                here1, here2 = load(first, place, lanes), load(second, place, lanes)
                for step in range(count - 1):
                    there1, there2 = load(first, place + stride, lanes), load(second, place + stride, lanes)
                    z = tilt + (fixed + along * step)
                    z = z + c[0] * (there1 + signs[0] * here1) + c[1] * (there2 + signs[1] * here2)
                    part, d, x = flux_fractions(z, steep_root(z), k)
                    q = 1.0 / (part + s * d)
                    v = (load(P, place, lanes) + inflow) * q
                    factor = (part * x) * q
                    base = numba.uint64(2 * step) * width
                    store(scratch, base, v * d)
                    store(scratch, base + width, factor)
                    inflow = part * v
                    s = 1.0 + s * factor
                    here1, here2 = there1, there2
                    place += stride
                old = load(P, place, lanes)
                M = (old + inflow) / s
                store(P, place, M + (M - old))
                for back in range(count - 1):
                    step = count - 2 - back
                    place -= stride
                    base = numba.uint64(2 * step) * width
                    M = load(scratch, base, lanes) + load(scratch, base + width, lanes) * M
                    store(P, place, M + (M - load(P, place, lanes)))


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def sweep(P, first, second, signs, beta, alpha, c, k, direction, axis, scratch, blocks, lanes):  # type: ignore[no-untyped-def]
    """Take one implicit midpoint step of P along all lines of a direction, in place.

    Parameters
    ----------
    P : ndarray, shape (blocks * n * n * lanes,)
        Densities in packed layout.
    first, second : ndarray, same shape
        F_1 and F_2.
    signs : ndarray, shape (2,)
        s_k: -1 where F_k is a potential, 1 where it is a force.
    beta : ndarray, shape (blocks * lanes,)
        Part of z that depends on the node.
    alpha, c : ndarray, shape (2,)
        Coefficients of position and of F_k in z.
    k : float
        rho dt / (2 h^2) with the weight rho of the direction.
    direction : ndarray of int, shape (2,)
        e; its first number that is not 0 is positive.
    axis : ndarray, shape (n,)
        Cell centres along both axes.
    scratch : ndarray, shape (2 * n * lanes,)
        Elimination factors of a line.
    blocks, lanes : int
        Sizes; `lanes` is `NARROW_LANES` or `WIDE_LANES`.
    """
    if lanes == NARROW_LANES:
        _sweep(P, first, second, signs, beta, alpha, c, k, direction, axis, scratch, blocks, NARROW_LANES)
    else:
        _sweep(P, first, second, signs, beta, alpha, c, k, direction, axis, scratch, blocks, WIDE_LANES)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def fill_function(address, mean, row, axis, out, blocks, lanes):  # type: ignore[no-untyped-def]
    """Values of a function of the coordinate mean + row . x at all cells, by the loop at `address`.

    Parameters
    ----------
    address : int
        Of `meanfield.numerics.compiled.scalar_functions.compile_loop`.
    mean : ndarray, shape (blocks * lanes,)
        Mean of the coordinate at each node.
    row : ndarray, shape (2,)
        Its gradient in x.
    axis : ndarray, shape (n,)
    out : ndarray, shape (blocks * n * n * lanes,)
    blocks, lanes : int
    """
    n = axis.size
    points = np.empty(n * lanes)
    for block in range(blocks):
        for i in range(n):
            for j in range(n):
                at = row[0] * axis[i] + row[1] * axis[j]
                for lane in range(lanes):
                    points[j * lanes + lane] = at + mean[block * lanes + lane]
            start = (block * n + i) * n * lanes
            call_loop(address, points, out[start : start + n * lanes])


@numba.njit(inline="always")
def _slope(F, place, jump, lanes):  # type: ignore[no-untyped-def]
    """Derivative of F in units of two cells, by the central difference of order four.

    It cancels the error of order two where F has a kink, too: that of E[w F'] is proportional to the square of the
    distance over which the difference is taken.
    """
    near = load(F, place + jump, lanes) - load(F, place - jump, lanes)
    far = load(F, place + jump + jump, lanes) - load(F, place - jump - jump, lanes)
    return (8.0 / 6.0) * near - (1.0 / 6.0) * far


@numba.njit(inline="always", error_model="numpy")
def _sums(P, first, second, strides, inverse, axis, sums, blocks, lanes):  # type: ignore[no-untyped-def]
    n = axis.size
    width = numba.uint64(lanes)
    jump1, jump2 = numba.uint64(strides[0] * lanes), numba.uint64(strides[1] * lanes)
    for block in range(blocks):
        zero = spread(0.0, lanes)
        m, x1, x2, x11, x12, x22 = zero, zero, zero, zero, zero, zero
        f1, f2, f11, f12, f21, f22 = zero, zero, zero, zero, zero, zero
        for i in range(n):
            r0, r1, r2, g1, g2, g12, g22 = zero, zero, zero, zero, zero, zero, zero
            for j in range(n):
                place = numba.uint64(((block * n + i) * n + j) * lanes)
                p = load(P, place, lanes)
                x = axis[j]
                px = p * x
                r0 = r0 + p
                r1 = r1 + px
                r2 = r2 + px * x
                if 1 < i < n - 2 and 1 < j < n - 2:
                    a = p * _slope(first, place, jump1, lanes)
                    b = p * _slope(second, place, jump2, lanes)
                    g1 = g1 + a
                    g2 = g2 + b
                    g12 = g12 + a * x
                    g22 = g22 + b * x
            y = axis[i]
            m = m + r0
            x1 = x1 + r0 * y
            x2 = x2 + r1
            x11 = x11 + r0 * (y * y)
            x12 = x12 + r1 * y
            x22 = x22 + r2
            f1 = f1 + g1
            f2 = f2 + g2
            f11 = f11 + g1 * y
            f12 = f12 + g12
            f21 = f21 + g2 * y
            f22 = f22 + g22
        start = numba.uint64(block * SUMS) * width
        store(sums, start, m)
        store(sums, start + width, x1)
        store(sums, start + numba.uint64(2) * width, x2)
        store(sums, start + numba.uint64(3) * width, x11)
        store(sums, start + numba.uint64(4) * width, x12)
        store(sums, start + numba.uint64(5) * width, x22)
        store(sums, start + numba.uint64(6) * width, f1 * inverse[0])
        store(sums, start + numba.uint64(7) * width, f2 * inverse[1])
        store(sums, start + numba.uint64(8) * width, f11 * inverse[0])
        store(sums, start + numba.uint64(9) * width, f12 * inverse[0])
        store(sums, start + numba.uint64(10) * width, f21 * inverse[1])
        store(sums, start + numba.uint64(11) * width, f22 * inverse[1])


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def sum_up(P, first, second, strides, inverse, axis, sums, blocks, lanes):  # type: ignore[no-untyped-def]
    """Sums over the cells of each node of P, P x, P x x, P f_k and P f_k x; f_k is a central difference of F_k.

    Parameters
    ----------
    P, first, second : ndarray, shape (blocks * n * n * lanes,)
        Densities, and potentials F_1 and F_2.
    strides : ndarray of int, shape (2,)
        Cells from one to the next along the axis of each difference: n or 1.
    inverse : ndarray, shape (2,)
        One over twice the change of the coordinate of F_k from one cell to the next.
    axis : ndarray, shape (n,)
    sums : ndarray, shape (blocks * SUMS * lanes,)
        Result, laid out as [block][sum][node in block].
    blocks, lanes : int
    """
    if lanes == NARROW_LANES:
        _sums(P, first, second, strides, inverse, axis, sums, blocks, NARROW_LANES)
    else:
        _sums(P, first, second, strides, inverse, axis, sums, blocks, WIDE_LANES)


def selling(D: FloatArray) -> tuple[FloatArray, IntArray]:
    """Weights and directions with D = sum_s rho_s e_s e_s^T.

    Parameters
    ----------
    D : ndarray, shape (2, 2)
        Symmetric and positive definite.

    Returns
    -------
    rho : ndarray, shape (3,)
        Weights, none of them negative.
    directions : ndarray of int, shape (3, 2)
        Vectors e_s without a common factor, whose first number that is not 0 is positive.

    Raises
    ------
    ValueError
        If D is not positive definite, or so nearly singular that the reduction does not end.
    """
    if not (D[0, 0] > 0 and D[0, 0] * D[1, 1] - D[0, 1] * D[1, 0] > 0):
        raise ValueError("the matrix is not positive definite")
    basis = np.array([[-1, -1], [1, 0], [0, 1]])
    for _ in range(1000):  # steps, whose number grows like the square root of the anisotropy
        products = np.array([basis[(s + 1) % 3] @ D @ basis[(s + 2) % 3] for s in range(3)])
        worst = int(np.argmax(products))
        if products[worst] <= 0:
            # Each direction is orthogonal to the vector of the superbase that its weight leaves out.
            directions = basis[:, ::-1] * [1, -1]
            sign = np.where((directions[:, 0] < 0) | ((directions[:, 0] == 0) & (directions[:, 1] < 0)), -1, 1)
            return -products, directions * sign[:, None]
        first, second = basis[(worst + 1) % 3], basis[(worst + 2) % 3]
        basis = np.array([-first, second, first - second])
    raise ValueError("the matrix is too nearly singular")
