"""SGD as a Markov chain of overlaps, for linear priors and inputs without mask: any N at the cost of a few numbers.

In a basis of the features and K more directions, all of length sqrt(N), students have the coordinates X = (R, L), and
an input has the coordinates xi/sqrt(N), so that fields are y = xi_U and s = X xi. What samples add orthogonally to all
vectors has products of the law of Wishart in N - n dimensions, by Bartlett's decomposition. The chain of (X, v) has the
law of plain SGD at every N (update_rules.md, section 6). No inverse of G occurs, so that students may be equal, or lie
in the span of features.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.ensembles.gamma_variables import chi_squared
from meanfield.families.update_rule.particles.constraints import constrain
from meanfield.families.update_rule.particles.means import write_means
from meanfield.families.update_rule.particles.steps import (
    add_values,
    draw_numbers,
    draw_rows,
    first_field,
    first_slot,
    room_for,
    scale_of,
    sources_of,
    vector_of,
    write_constants,
)
from meanfield.numerics.compiled.array_operations import add, dot
from meanfield.numerics.compiled.row_functions import call_rows
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.triangular import factorise, factorise_products
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba


@numba.njit(cache=True, nogil=True, error_model="numpy")
def chain_steps(steps, key, first_replica, first, count, X, side, reached):  # type: ignore[no-untyped-def]
    """Take steps `first`, `first` + 1, ... of several replicas, changing their states in place.

    Parameters
    ----------
    steps : Steps
    key : ndarray, shape (2,)
        Of the random streams.
    first_replica, first, count : int
    X : ndarray, shape (replicas, students, features + students)
    side : ndarray, shape (replicas, side variables)
    reached : ndarray of int, shape (replicas,)
        Receives the step after which the state was still finite: the last one unless it blew up, now or earlier.
    """
    replicas, K, vectors = X.shape
    noise = vectors * sources_of(steps)
    room = room_for(steps, noise + K * (K + 1) // 2, K)
    work = (
        np.empty((steps.inputs, vectors)),
        np.empty((K, vectors)),
        np.empty((K, vectors)),
        np.empty((K, 2 * K)),
        np.empty((K, K)),
        np.empty((K, K)),
        np.empty((K, K)),
    )
    sizes, normals, uniforms = room[:3]
    some, end = sizes[0], first + count
    for i in range(replicas):
        for chunk in range(first, end, some):
            if reached[i] < chunk:
                break
            last = min(chunk + some, end)
            if steps.means.outputs.size > 0:  # a chunk is a step, as these arrays are not made in the loop over steps
                _overlaps(X[i], work[1])
                write_constants(steps, chunk, side[i], work[1], room[5])
                call(write_means, steps.means, work[1], room[5])
            draw_numbers(key, first_replica + i, chunk, last - chunk, sizes, normals, uniforms)
            reached[i] = call(_steps, steps, key, first_replica + i, chunk, last, X[i], side[i], room, work)


@without_reference_counts()
def _steps(steps, key, replica, first, end, X, side, room, work):  # type: ignore[no-untyped-def]
    """Steps `first` to `end` - 1 of a replica, and the step after which it was still finite."""
    sizes, normals, uniforms, rows, values, constants, chosen, c, A = room
    xi, overlaps, moved, beyond, Q, factor, back = work
    draws, D, vectors = steps.draws, steps.draws.inputs.size, X.shape[1]
    for step in range(first, end):
        normal, uniform = normals[(step - first) * sizes[1] :], uniforms[(step - first) * sizes[2] :]
        _overlaps(X, overlaps)
        write_constants(steps, step, side, overlaps, constants)
        draw_rows(steps, key, replica, step, normal, uniform, chosen, c, rows)
        own = normal[steps.samples * (steps.hidden.normals[-1] + draws.normals[-1]) :]
        _write_fields(steps, own, X, xi, rows)
        if D == 1:
            call_rows(draws.update[0], rows, constants, values)
        else:  # rows of different draws have different widths
            for d in range(D):
                for b in range(d * steps.samples, d * steps.samples + draws.batch_size[d]):
                    call_rows(draws.update[d], rows[b : b + 1], constants, values[b : b + 1])
        add_values(steps, step, values, side, A)
        _move(steps, A, values, xi, X, moved)
        own_uniform = uniform[steps.samples * (steps.hidden.uniforms[-1] + draws.coins.size) :]
        beside = own[vectors * sources_of(steps) :]
        _add_beyond(steps, key, replica, step, beside, own_uniform, rows, values, Q, factor, back, moved, beyond)
        factorise_products(beyond, factor)
        if not _constrained(steps, moved, factor, overlaps, Q, back, X, side):
            return step
    return end


@without_reference_counts(inline="always")
def _overlaps(X, overlaps):  # type: ignore[no-untyped-def]
    """Write R and Q of students with coordinates X = (R, L)."""
    K, vectors = X.shape
    M = vectors - K
    for k in range(K):
        for j in range(M):
            overlaps[k, j] = X[k, j]
        for j in range(k + 1):
            overlaps[k, M + j] = overlaps[j, M + k] = dot(X[k], X[j])


@without_reference_counts()
def _write_fields(steps, normals, X, xi, rows):  # type: ignore[no-untyped-def]
    """Write coordinates of all inputs to `xi`, and their fields to the last columns of rows."""
    draws, number, place = steps.draws, 0, 0
    for d in range(draws.inputs.size):
        for b in range(d * steps.samples, d * steps.samples + draws.batch_size[d]):
            for j in range(draws.inputs[d]):
                _write_input(steps, d, j, rows[b], normals[place:], X, xi[number])
                number += 1
            place += X.shape[1] * (draws.sources[d + 1] - draws.sources[d])


@without_reference_counts()
def _write_input(steps, d, number, row, normals, X, xi):  # type: ignore[no-untyped-def]
    """Write coordinates and fields of one input of a sample."""
    K, vectors = X.shape
    draws, M = steps.draws, vectors - K
    noise, signal = scale_of(draws.scales_noise[d], row), scale_of(draws.scales_signal[d], row)
    for j in range(vectors):
        xi[j] = 0.0
        for i in range(draws.sources[d], draws.sources[d + 1]):
            if j >= M or not draws.projected[i]:
                xi[j] += draws.loading[i, number] * noise * normals[(i - draws.sources[d]) * vectors + j]
    for variable in range(draws.variables[d + 1] - draws.variables[d]):
        vector = vector_of(steps, d, variable, number)
        if 0 <= vector < M:
            xi[vector] += signal * row[variable]
        elif vector >= M:
            add(xi, signal * row[variable], X[vector - M])
    fields = row[first_field(steps, d) + number * vectors :]
    for j in range(M):
        fields[j] = xi[j]
    for k in range(K):
        fields[M + k] = dot(X[k], xi)


@without_reference_counts()
def _move(steps, A, values, xi, X, moved):  # type: ignore[no-untyped-def]
    """Write coordinates of students after a step, along what was there before it."""
    K, vectors = X.shape
    M, draws = vectors - K, steps.draws
    for k in range(K):
        for j in range(vectors):
            moved[k, j] = A[k, j] if j < M else 0.0
        for j in range(K):
            add(moved[k], A[k, M + j], X[j])
        number = 0
        for d in range(draws.inputs.size):
            m = draws.batch_size[d]
            for b in range(d * steps.samples, d * steps.samples + m):
                for j in range(draws.inputs[d]):
                    add(moved[k], values[b, j * K + k] / (m * steps.dimension), xi[number])
                    number += 1


@without_reference_counts()
def _add_beyond(  # type: ignore[no-untyped-def]
    steps, key, replica, step, normals, uniforms, rows, values, Q, factor, triangle, moved, beyond
):
    """Write coordinates beyond the features: those of before, and what samples add orthogonally to all vectors.

    That has products of the law of Wishart: a root of its covariance, times a triangular matrix of normals with a
    chi-distributed diagonal.
    """
    K, draws = steps.students, steps.draws
    scale = steps.deviation / (draws.batch_size[0] * steps.dimension)
    for k in range(K):
        for j in range(k + 1):
            total = 0.0
            for d in range(draws.inputs.size):
                L, C = draws.inputs[d], draws.covariance[d]
                for b in range(d * steps.samples, d * steps.samples + draws.batch_size[d]):
                    square = scale_of(draws.scales_noise[d], rows[b]) ** 2
                    for n in range(L * L):
                        total += C[n // L, n % L] * (values[b, n // L * K + k] * values[b, n % L * K + j]) * square
            Q[k, j] = Q[j, k] = total
    factorise(Q, factor)
    free, slot = steps.dimension - moved.shape[1], first_slot(steps, step + 1) - K
    for k in range(K):
        place = k * (k + 1) // 2
        for j in range(k):
            triangle[k, j] = normals[place + j]
        triangle[k, k] = math.sqrt(chi_squared(free - k, normals[place + k], uniforms[k], key, replica, slot + k))
    for k in range(K):
        for j in range(K):
            beyond[k, j] = moved[k, moved.shape[1] - K + j]
            total = 0.0
            for i in range(j, k + 1):
                total += factor[k, i] * triangle[i, j]
            beyond[k, K + j] = scale * total


@without_reference_counts()
def _constrained(steps, moved, factor, overlaps, Q, back, X, side):  # type: ignore[no-untyped-def]
    """Write coordinates after the constraint to X; false if they, or side variables, are not finite."""
    K, vectors = X.shape
    M = vectors - K
    for k in range(K):
        for j in range(K):
            moved[k, M + j] = factor[k, j] if j <= k else 0.0
    _overlaps(moved, overlaps)
    for k in range(K):
        for j in range(K):
            Q[k, j] = overlaps[k, M + j]
    constrain(steps.constraints, steps.groups, steps.lengths, Q, factor, back)
    total = 0.0
    for k in range(K):
        for j in range(vectors):
            X[k, j] = 0.0
        for j in range(K):
            add(X[k], back[k, j], moved[j])
        total += dot(X[k], X[k])
    for j in range(side.size):
        total += abs(side[j])
    return math.isfinite(total)
