"""Stages of a linearly implicit step of the points: solve for an increment, and combine increments.

Tails that retreat keep their ends. Points that keep their w would stay behind such a tail, at quantiles of 20 and more:
no average notices them, but only short steps would keep them in order.
"""

from __future__ import annotations

from meanfield.numerics.compiled.vectors import load, spread, store, where_less
from meanfield.numerics.quantile_frame.frame import LANES, damping
from meanfield.process import own_numba as numba

FREE, FROZEN = 7.0, 9.0
"""Quantiles between which the drift of retreating tails falls to zero: 3e-12 of the probability lie beyond the first,
which no cell of a density that is shown reaches."""


@numba.njit(inline="always")
def retained(drift, xi, graded):  # type: ignore[no-untyped-def]
    """Share of the drift that is left at a quantile, and its derivative by the quantile times the drift.

    All of it is where points are not graded, so that none stays behind.
    """
    xi = xi if graded else 0.0 * xi
    size = where_less(xi, 0.0, -1.0 * xi, xi)
    inwards = where_less(xi, 0.0, drift, -1.0 * drift)
    rate = 1.0 / (FROZEN - FREE)
    left = rate * (FROZEN - size)
    nothing, all_of_it = 0.0 * left, 0.0 * left + 1.0
    bounded = where_less(left, 0.0, nothing, where_less(left, 1.0, left, all_of_it))
    share = where_less(inwards, 0.0, all_of_it, bounded)
    steep = where_less(share, 1.0, where_less(left, 0.0, nothing, rate * inwards), nothing)
    return share, steep


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def solve_stage(X, mesh, frame, own, increments, factors, stage, nodal, learning_rate):  # type: ignore[no-untyped-def]
    """Solve (rate - J) u = f(X) + sum_j factors[j] u_j for fixed coefficients, into `increments[stage]`.

    Parameters
    ----------
    X : ndarray
        Points at which the right-hand side is taken.
    mesh : Mesh
    frame : Frame
        Filled in for X.
    own : Elimination
    increments : ndarray, shape (STAGES, size of X)
    factors : ndarray, shape (STAGES,)
    stage : int
    nodal : Nodal
    learning_rate : float
        tau.
    """
    width, points = numba.uint64(LANES), numba.uint64(mesh.points)
    last, size = numba.uint64(mesh.points - 1), numba.uint64(X.size)
    flat, offset = increments.reshape(-1), numba.uint64(stage) * numba.uint64(X.size)
    nothing = spread(0.0, LANES)
    for block in range(size // (width * points)):
        growth, tilt = load(nodal.growths, block * width, LANES), load(nodal.tilts, block * width, LANES)
        noise = load(nodal.noises, block * width, LANES)
        at = block * points * width
        x, xi = load(X, at, LANES), load(frame.xi, at, LANES)
        x_before = x
        q_before = previous = nothing
        for i in range(points):
            x_after, xi_after, q_after, jump = x, xi, q_before, nothing
            spacing = load(mesh.spacing, at, LANES)
            if i < last:
                x_after, xi_after = load(X, at + width, LANES), load(frame.xi, at + width, LANES)
                q_after = (xi_after - xi) / (x_after - x)
            if i > 0:
                jump = (q_after - q_before) / spacing
            else:
                q_before = q_after
            drift = growth * x - tilt - learning_rate * load(frame.force, at, LANES)
            kept_drift, _ = retained(drift, xi, mesh.grading.size > 0)
            drift = kept_drift * drift
            s = load(frame.share, at, LANES)
            f = s * (drift + 0.5 * noise * xi * (q_after + q_before))
            damped, _, _, _ = damping(drift * (x_after - x_before), noise, s, spacing)
            f = f - (noise + damped) * jump
            earlier = at
            for j in range(stage):
                f = f + factors[j] * load(flat, earlier, LANES)
                earlier = earlier + size
            previous = (f - load(own.lower, at, LANES) * previous) * load(own.pivot, at, LANES)
            store(flat, offset + at, previous)
            x_before, x, xi, q_before = x, x_after, xi_after, q_after
            at = at + width
        for _ in range(last):
            at = at - width
            previous = load(flat, offset + (at - width), LANES) - load(own.upper, at - width, LANES) * previous
            store(flat, offset + (at - width), previous)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def correct(increments, stage, own, points, nodal):  # type: ignore[no-untyped-def]
    """Add to an increment what changes of the coefficients by the displacements themselves bring.

    Parameters
    ----------
    increments : ndarray, shape (STAGES, size of X)
    stage : int
    own : Elimination
    points : int
    nodal : Nodal
        Changes of coefficients.
    """
    width, count = numba.uint64(LANES), numba.uint64(points)
    increment = increments[stage]
    for block in range(numba.uint64(increment.size) // (width * count)):
        growth, tilt = load(nodal.growths, block * width, LANES), load(nodal.tilts, block * width, LANES)
        noise = load(nodal.noises, block * width, LANES)
        at = block * count * width
        for _ in range(count):
            value = load(increment, at, LANES) + growth * load(own.by_growth, at, LANES)
            value = value - tilt * load(own.by_pull, at, LANES) + noise * load(own.by_noise, at, LANES)
            store(increment, at, value)
            at = at + width


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def add_to_stage(increments, stage, x, factor):  # type: ignore[no-untyped-def]
    """Add a multiple of displacements x to an increment."""
    increment = increments[stage]
    for i in range(numba.uint64(x.size) // numba.uint64(LANES)):
        at = numba.uint64(i) * numba.uint64(LANES)
        store(increment, at, load(increment, at, LANES) + factor * load(x, at, LANES))


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def combine(X, increments, factors, result):  # type: ignore[no-untyped-def]
    """Fill in `result` with X + sum_j factors[j] u_j."""
    width, size = numba.uint64(LANES), numba.uint64(X.size)
    flat = increments.reshape(-1)
    count = factors.size
    while count > 0 and factors[count - 1] == 0.0:
        count -= 1
    for i in range(size // width):
        at = i * width
        value = load(X, at, LANES)
        earlier = at
        for j in range(count):
            value = value + factors[j] * load(flat, earlier, LANES)
            earlier = earlier + size
        store(result, at, value)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def squared_length(x, frame, points, lengths):  # type: ignore[no-untyped-def]
    """Mean square displacement of the points of every node, shape (blocks * LANES,)."""
    width, count = numba.uint64(LANES), numba.uint64(points)
    for block in range(numba.uint64(x.size) // (width * count)):
        total = spread(0.0, LANES)
        at = block * count * width
        for _ in range(count):
            value = load(x, at, LANES)
            total = total + load(frame.weight, at, LANES) * value * value
            at = at + width
        store(lengths, block * width, total)
