"""SGD with its vectors, step by step as in update_rules.md, eq-rule-step.

A step passes over the vectors twice. The first pass draws an input, in blocks that stay in the caches, and computes its
fields; the second one moves the students, and computes their products with each other and the features, from which the
constraint follows. That is a matrix with which students are multiplied when they are read the next time.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.ensembles.streams import VECTOR, fill_normals, fill_uniforms
from meanfield.families.update_rule.particles.constraints import constrain
from meanfield.families.update_rule.particles.means import write_means
from meanfield.families.update_rule.particles.steps import (
    add_values,
    draw_numbers,
    draw_rows,
    first_field,
    masks_of,
    room_for,
    row_of,
    scale_of,
    sources_of,
    vector_of,
    write_constants,
)
from meanfield.numerics.compiled.array_operations import add, copy, dot, scale
from meanfield.numerics.compiled.row_functions import call_rows
from meanfield.numerics.compiled.scalar_functions import call_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba

MASKS = 5
"""Purpose of the random numbers of masks, besides those of `meanfield.ensembles.streams`."""

BLOCK = 512
"""Coordinates that are worked on together: those of some vectors fit into the first-level cache. Even, as pairs are."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def plain_steps(steps, key, replica, first, count, U, W, back, overlaps, side):  # type: ignore[no-untyped-def]
    """Take steps `first`, `first` + 1, ... of a replica, changing its state in place.

    Parameters
    ----------
    steps : Steps
    key, replica
        Address of the random streams.
    first, count : int
    U : ndarray, shape (features, N)
    W : ndarray, shape (students, N)
        Students before the constraint of the last step.
    back : ndarray, shape (students, students)
        That constraint: students are `back` W.
    overlaps : ndarray, shape (students, features + students)
        R and Q side by side.
    side : ndarray, shape (side variables,)

    Returns
    -------
    int
        The step after which everything was still finite: the last one unless it blew up.
    """
    K, N = W.shape
    vectors = overlaps.shape[1]
    room = room_for(steps, 0, 0)
    L = steps.draws.loading.shape[1]
    x = np.empty((L, N + N % 2))
    several = steps.inputs > 1
    added = np.zeros((K, N)) if several else x
    gains = np.eye(K) if several else np.empty((K, 1))
    work = (
        np.empty((L, vectors)),
        np.empty((L, vectors)),
        np.empty(BLOCK),
        np.empty((K, BLOCK)),
        np.empty((K, vectors)),
        np.empty((K, K)),
        np.empty((K, K)),
    )
    at_once, end = count if steps.means.outputs.size == 0 else 1, first + count
    for step in range(first, end, at_once):
        if steps.means.outputs.size > 0:  # whose arrays are not made in the loop over steps
            write_constants(steps, step, side, overlaps, room[5])
            call(write_means, steps.means, overlaps, room[5])
        last = min(step + at_once, end)
        reached = call(_steps, steps, key, replica, step, last, U, W, back, overlaps, side, room, x, added, gains, work)
        if reached < last:
            return reached
    return end


@without_reference_counts()
def _steps(  # type: ignore[no-untyped-def]
    steps, key, replica, first, end, U, W, back, overlaps, side, room, x, added, gains, work
):
    """Steps `first` to `end` - 1, and the step after which everything was still finite."""
    sizes, normals, uniforms, rows, values, constants, chosen, c, A = room
    projections, shifts, numbers, fresh, along, Q, other = work
    some, draws, several = sizes[0], steps.draws, steps.inputs > 1
    K, N = W.shape
    M = U.shape[0]
    drawn = first
    for step in range(first, end):
        if step >= drawn:
            draw_numbers(key, replica, step, min(some, end - step), sizes, normals, uniforms)
            drawn = step + some
        place = step + some - drawn
        write_constants(steps, step, side, overlaps, constants)
        normal, uniform = normals[place * sizes[1] :], uniforms[place * sizes[2] :]
        draw_rows(steps, key, replica, step, normal, uniform, chosen, c, rows)
        source = step * sources_of(steps)
        mask = step * masks_of(steps)
        for d in range(draws.inputs.size):
            m, L = draws.batch_size[d], draws.inputs[d]
            for b in range(d * steps.samples, d * steps.samples + m):
                place = (key, replica, source, mask)
                _draw_inputs(steps, d, place, U, W, back, rows[b], projections, shifts, numbers, x)
                source += draws.sources[d + 1] - draws.sources[d]
                mask += draws.samples_masks[d]
                call_rows(draws.update[d], rows[b : b + 1], constants, values[b : b + 1])
                for k in range(K):
                    for j in range(L):
                        gain = values[b, j * K + k] / (m * math.sqrt(N))
                        if not several:
                            gains[k, 0] = gain
                        elif gain != 0.0:
                            add(added[k], gain, x[j])
        add_values(steps, step, values, side, A)
        _follow(A, back, along)
        pull = steps.numbers[row_of(steps, step), steps.numbers.shape[1] - 1] / N
        _move(steps.force, pull, along, gains, added, back, U, W, fresh, numbers, overlaps)
        if several:
            for k in range(K):
                scale(added[k], 0.0, added[k])
        for k in range(K):
            for j in range(K):
                Q[k, j] = overlaps[k, M + j]
        constrain(steps.constraints, steps.groups, steps.lengths, Q, other, back)
        if not _taken_back(back, overlaps, along, side):
            return step
    return end


@without_reference_counts()
def _draw_inputs(steps, d, place, U, W, back, row, projections, shifts, numbers, x):  # type: ignore[no-untyped-def]
    """Draw the inputs of a sample of a draw to x, and write their fields to the last columns of its row.

    `place` has the address of the random streams, and how many vectors of noise and masks there were before.
    """
    key, replica, source, _ = place
    K, N = W.shape
    M, L = U.shape[0], steps.draws.inputs[d]
    first, last, inner = steps.draws.sources[d], steps.draws.sources[d + 1], False
    size_of_noise = scale_of(steps.draws.scales_noise[d], row)
    for j in range(L):
        for i in range(M + K):
            projections[j, i] = shifts[j, i] = 0.0
    for start in range(0, N, BLOCK):
        size = min(BLOCK, x.shape[1] - start)
        for i in range(first, last):
            alone = L == 1 and i == first  # its noise needs no room of its own
            noise = x[0, start : start + size] if alone else numbers[:size]
            call(fill_normals, key, replica, VECTOR, (source + i - first) * x.shape[1] + start, noise)
            deviation = steps.draws.loading[i, 0] * size_of_noise
            if alone and deviation != 1.0:
                scale(noise, deviation, noise)
            for n in range(min(size, steps.deviations.size - start)):  # none where all variances are 1
                noise[n] *= steps.deviations[start + n]
            for j in range(L):
                loading = steps.draws.loading[i, j] * size_of_noise
                if not alone:
                    _load(i == first, loading, noise, x[j, start : start + size])
                if steps.draws.projected[i]:
                    inner = True
                    for n in range(M):
                        shifts[j, n] += (1.0 if alone else loading) * dot(U[n, start : start + BLOCK], noise) / N
        if not inner:
            _show(steps, d, place, start, size, U, W, back, row, numbers, x, shifts, projections)
    if inner:
        for start in range(0, N, BLOCK):
            size = min(BLOCK, x.shape[1] - start)
            _show(steps, d, place, start, size, U, W, back, row, numbers, x, shifts, projections)
    for j in range(L):
        fields = row[first_field(steps, d) + j * (M + K) :]
        for i in range(M):
            fields[i] = projections[j, i] / math.sqrt(N)
        for k in range(K):
            fields[M + k] = 0.0
            for i in range(K):
                fields[M + k] += back[k, i] * projections[j, M + i] / math.sqrt(N)


@without_reference_counts()
def _load(first, loading, noise, out):  # type: ignore[no-untyped-def]
    """Write or add a source of noise to an input."""
    if first:
        scale(noise, loading, out)
    elif loading != 0.0:
        add(out, loading, noise)


@without_reference_counts()
def _show(  # type: ignore[no-untyped-def]
    steps, d, place, start, size, U, W, back, row, numbers, x, shifts, projections
):
    """Add to a block of noise, from coordinate `start` on, what hidden variables say of it, mask it, and project it."""
    key, replica, _, mask = place
    M, K, L = U.shape[0], W.shape[0], steps.draws.inputs[d]
    end, draws, drawn = start + size, steps.draws, -1
    root, signal = math.sqrt(W.shape[1]), scale_of(draws.scales_signal[d], row)
    for j in range(L):
        block, observed = x[j, start:end], draws.observed[d, j]
        for variable in range(draws.variables[d + 1] - draws.variables[d]):
            vector = vector_of(steps, d, variable, j)
            c = signal * row[variable] / root
            if 0 <= vector < M:
                column = U[vector, start:end]
                add(block[: column.size], c - shifts[j, vector], column)
            for i in range(K if vector >= M else 0):
                column = W[i, start:end]
                add(block[: column.size], c * back[vector - M, i], column)
        if observed < 1.0:
            if draws.masks[d, j] != drawn:
                drawn = draws.masks[d, j]
                call(fill_uniforms, key, replica, MASKS, (mask + drawn) * x.shape[1] + start, numbers[:size])
            for i in range(size):
                block[i] = block[i] if numbers[i] <= observed else 0.0
        for i in range(M):
            projections[j, i] += dot(U[i, start:end], block)
        for k in range(K):
            projections[j, M + k] += dot(W[k, start:end], block)


@without_reference_counts()
def _follow(A, back, along):  # type: ignore[no-untyped-def]
    """Write the coefficients of a step on features and on students before the last constraint."""
    K, vectors = A.shape
    M = vectors - K
    for k in range(K):
        for j in range(M):
            along[k, j] = A[k, j]
        for j in range(K):
            along[k, M + j] = 0.0
            for i in range(K):
                along[k, M + j] += A[k, M + i] * back[i, j]


@without_reference_counts()
def _move(force, pull, along, gains, added, back, U, W, fresh, numbers, overlaps):  # type: ignore[no-untyped-def]
    """Move students along all vectors and what samples add, and write their overlaps before the constraint."""
    K, N = W.shape
    M = U.shape[0]
    for k in range(K):
        for j in range(M + K):
            overlaps[k, j] = 0.0
    for start in range(0, N, BLOCK):
        end = min(start + BLOCK, N)
        for k in range(K):
            out = fresh[k, : end - start]
            scale(W[0, start:end], along[k, M], out)
            for j in range(1, K):
                add(out, along[k, M + j], W[j, start:end])
            for j in range(M):
                if along[k, j] != 0.0:
                    add(out, along[k, j], U[j, start:end])
            for j in range(gains.shape[1]):
                if gains[k, j] != 0.0:
                    add(out, gains[k, j], added[j, start:end])
            if force != 0:
                _pull(force, pull, back[k], W, start, end, numbers[: end - start], out)
        for k in range(K):
            for j in range(M):
                overlaps[k, j] += dot(fresh[k, : end - start], U[j, start:end])
            for j in range(k + 1):
                overlaps[k, M + j] += dot(fresh[k, : end - start], fresh[j])
        for k in range(K):
            copy(fresh[k], W[k, start:end])
    for k in range(K):
        for j in range(M):
            overlaps[k, j] /= N
        for j in range(k + 1):
            overlaps[k, M + j] /= N
            overlaps[j, M + k] = overlaps[k, M + j]


@without_reference_counts()
def _pull(force, pull, back, W, start, end, numbers, out):  # type: ignore[no-untyped-def]
    """Subtract the force of a prior that is not linear on a block of one student."""
    scale(W[0, start:end], back[0], numbers)
    for j in range(1, W.shape[0]):
        add(numbers, back[j], W[j, start:end])
    call_loop(force, numbers, numbers)
    add(out, -pull, numbers)


@without_reference_counts()
def _taken_back(back, overlaps, before, side):  # type: ignore[no-untyped-def]
    """Overlaps after the constraint; false if they, or side variables, are not finite."""
    K, vectors = overlaps.shape
    M = vectors - K
    total = 0.0
    for k in range(K):
        for j in range(vectors):
            before[k, j] = 0.0
        for j in range(K):
            add(before[k], back[k, j], overlaps[j])
    for k in range(K):
        copy(before[k, :M], overlaps[k, :M])
        for j in range(K):
            overlaps[k, M + j] = dot(before[k, M:], back[j])
            total += abs(overlaps[k, M + j])
    for j in range(side.size):
        total += abs(side[j])
    return math.isfinite(total)
