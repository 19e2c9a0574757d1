"""Averages over a density in packed layout: sums over cells, then over nodes in one order on any number of threads."""

from __future__ import annotations

from meanfield.numerics.compiled.vectors import NARROW_LANES, WIDE_LANES, load, spread, store
from meanfield.process import own_numba as numba


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def moments_from(sums, field, result):  # type: ignore[no-untyped-def]
    """q, r, E[w^2] and the mass from the sums of all blocks."""
    linear, overlaps, lanes = field.u.shape[1], result.size - 3, field.lanes
    result[:] = 0.0
    for block in range(sums.shape[0]):
        for lane in range(lanes):
            n = block * lanes + lane
            for k in range(linear):
                result[k] += field.u_weight[n] * field.u[n, k] * sums[block, lane]
            for k in range(linear, overlaps):
                result[k] += field.u_weight[n] * field.rho[block] * sums[block, 2 * lanes + lane]
            for j in range(3):
                result[overlaps + j] += field.u_weight[n] * sums[block, (j + 1) * lanes + lane]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def moments_of(P, field, sums, result):  # type: ignore[no-untyped-def]
    """Moments of a density in packed layout; `sums` is room for those of the nodes, shape (blocks, 4 * lanes)."""
    for block in range(sums.shape[0]):
        sums_of_block(P, numba.uint64(block), field.rows, sums[block], field.lanes)
    moments_from(sums, field, result)


@numba.njit(error_model="numpy", cache=True, nogil=True, fastmath={"contract"})
def sums_of_block(P, block, rows, sums, lanes):  # type: ignore[no-untyped-def]
    """Sums over cells, weighted with each row, for all lanes of a block."""
    if lanes == NARROW_LANES:
        _weighted_sums(P, block, rows, sums, NARROW_LANES)
    else:
        _weighted_sums(P, block, rows, sums, WIDE_LANES)


@numba.njit(inline="always", error_model="numpy")
def _weighted_sums(P, block, rows, sums, lanes):  # type: ignore[no-untyped-def]
    """Sums over cells as in `sums_of_block`, where `lanes` is a constant."""
    width, cells = numba.uint64(lanes), numba.uint64(rows.shape[1])
    nothing = spread(0.0, lanes)
    first, force, second, mass = nothing, nothing, nothing, nothing
    for i in range(cells):
        p = load(P, (block * cells + i) * width, lanes)
        first = first + rows[0, i] * p
        force = force + rows[1, i] * p
        second = second + rows[2, i] * p
        mass = mass + rows[3, i] * p
    store(sums, numba.uint64(0), first)
    store(sums, width, force)
    store(sums, numba.uint64(2) * width, second)
    store(sums, numba.uint64(3) * width, mass)
