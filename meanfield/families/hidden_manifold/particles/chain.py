"""SGD as a Markov chain of Gram matrices, for Gaussian covariates: any N at the cost of a few numbers per eigenvalue.

Inputs x = (b/s) U + sqrt(c*) z, with a normal vector z and U = F^T C/sqrt(D), are Gaussian given the component. In an
eigenspace of F F^T/N, of n dimensions, a step depends on the products of the student's vectors with each other, the
teacher's and those of the means alone: on a Gram matrix. What a sample has orthogonally to all of these enters by its
length, a chi-squared variable of n - columns degrees of freedom. The input dimensions that F does not reach are one
more such space, without teacher. What several samples of a step add up to orthogonally has products of the law of
Wishart. The chain of all Gram matrices and v has the law of plain SGD with such inputs at every N (hidden_manifold.md,
section 7).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.ensembles.gamma_variables import chi_squared
from meanfield.ensembles.streams import NORMALS, UNIFORMS, VECTOR, fill_normals, fill_uniforms
from meanfield.families.hidden_manifold.particles.latents import component
from meanfield.families.hidden_manifold.particles.networks import LABELS, add_sample, is_in_place, row_of
from meanfield.numerics.compiled.array_operations import copy, dot, scale
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.triangular import factorise
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


class Covariates(NamedTuple):
    """Law of Gaussian covariates in all spaces, for compiled code.

    Parameters
    ----------
    cumulated : ndarray, shape (components,)
        As in `Mixture`.
    scale : ndarray, shape (components,)
        s.
    mean : ndarray, shape (components, columns)
        Coefficients of E[C] on the columns of the Gram matrices; 0 for students.
    along : ndarray, shape (components, spaces)
        (b/s) sqrt(rho/delta), the factor of latents in the inputs.
    noise : ndarray, shape (components, spaces)
        sqrt(c*), or 0 in latent dimensions that no input has.
    free : ndarray of int, shape (spaces,)
        Dimensions of each space less the number of columns, at least 1.
    latents, inputs : float
        D and N.
    """

    cumulated: FloatArray
    scale: FloatArray
    mean: FloatArray
    along: FloatArray
    noise: FloatArray
    free: FloatArray
    latents: float
    inputs: float


@numba.njit(cache=True, nogil=True, error_model="numpy")
def chain_steps(networks, covariates, key, first_replica, first, start, stop, gram, v, reached):  # type: ignore[no-untyped-def]
    """Take steps `first`, `first` + 1, ..., until samples are used up, changing states of several replicas in place.

    Parameters
    ----------
    networks : Networks
    covariates : Covariates
    key : ndarray, shape (2,)
        Of the random streams.
    first_replica, first : int
    start, stop : int
        Number of the first of the samples, counted from the first one of the run, and of the first after them.
    gram : ndarray, shape (replicas, spaces, columns, columns)
        Products of students, teachers and directions of means.
    v : ndarray, shape (replicas, students)
    reached : ndarray of int, shape (replicas,)
        Receives the step after which the state was still finite: the last one unless it blew up, now or earlier.
    """
    replicas, spaces, columns, _ = gram.shape
    students, teachers = v.shape[1], networks.teacher_weights.size
    needed = spaces * (2 * columns + 1), spaces + 1
    normals_each, uniforms_each = needed[0] + needed[0] % 2, needed[1] + needed[1] % 2
    # Normals drawn at once: enough to vectorise, few enough for the first-level cache.
    some = max(1, 1024 // normals_each)
    normals, uniforms = np.empty((some, normals_each)), np.empty((some, uniforms_each))
    labels = np.zeros(2 * some)
    drawn = normals, uniforms, labels
    factor = np.empty((spaces, columns, columns))
    latent, inputs = np.empty(columns), np.empty((spaces, columns))
    products, lengths = np.empty((spaces, columns)), np.empty(spaces)
    own, others, gains = np.empty(students), np.empty(teachers), np.empty(students)
    fields = latent, inputs, products, lengths, own, others, gains
    new_v = np.empty_like(v)
    clock = np.empty(2, dtype=np.int64)
    squares = spaces * students**2
    sums = (
        np.zeros((spaces, students, columns)),
        np.zeros((spaces, students, students)),
        np.empty((students, students)),
        np.empty((students, students)),
        np.empty(squares + squares % 2),
        np.empty(spaces * students + spaces * students % 2),
    )
    for i in range(replicas):
        replica = first_replica + i
        clock[0], clock[1] = first - 1, start
        for chunk in range(start, stop, some):
            if reached[i] < first:
                break
            last = min(chunk + some, stop)
            call(fill_normals, key, replica, NORMALS, chunk * normals_each, normals.ravel())
            call(fill_uniforms, key, replica, UNIFORMS, chunk * uniforms_each, uniforms.ravel())
            if networks.noisy:
                call(fill_normals, key, replica, LABELS, 2 * chunk, labels)
            if not call(
                _samples, networks, covariates, key, replica, chunk, last, drawn, gram[i], v[i], new_v[i], factor,
                fields, sums, clock,
            ):  # fmt: skip
                reached[i] = clock[0]
                break
            reached[i] = clock[0] + 1


@without_reference_counts()
def _samples(  # type: ignore[no-untyped-def]
    networks, covariates, key, replica, first, last, drawn, gram, v, new_v, factor, fields, sums, clock
):
    """Take samples `first` to `last` - 1 of a replica, with random numbers in rows; false if training blew up before.

    `clock` has the number of the step, which samples before may have begun, and that of the first sample after it.
    """
    spaces, columns, _ = gram.shape
    normals, uniforms, labels = drawn
    latent, inputs, products, lengths, own, others, gains = fields
    students, teachers = v.size, others.size
    row = row_of(networks, clock[0])
    in_place = is_in_place(networks.steps, row)
    for sample in range(first, last):
        normal, uniform = normals[sample - first], uniforms[sample - first]
        if sample == clock[1]:
            clock[0] += 1
            row = row_of(networks, clock[0])
            clock[1] += int(networks.steps[row, 5])
            in_place = is_in_place(networks.steps, row)
            if not in_place:
                scale(v, networks.steps[row, 3], new_v)
                _clear(sums)
        q = component(covariates.cumulated, uniform[spaces])
        for k in range(students):
            own[k] = 0.0
        for m in range(teachers):
            others[m] = 0.0
        for j in range(spaces):
            slot, place = sample * spaces + j, j * (2 * columns + 1)
            along, noise = covariates.along[q, j], covariates.noise[q, j]
            spread = (along * covariates.scale[q]) ** 2 + noise * noise
            lengths[j] = spread
            if in_place:
                chi2 = chi_squared(covariates.free[j], normal[place + 2 * columns], uniform[j], key, replica, slot)
                lengths[j] = spread * chi2
            factorise(gram[j], factor[j])
            for b in range(columns):
                mean = 0.0
                for a in range(max(b, students), columns):
                    mean += covariates.mean[q, a] * factor[j, a, b]
                latent[b] = mean / math.sqrt(covariates.latents) + covariates.scale[q] * normal[place + b]
                inputs[j, b] = along * latent[b] + noise * normal[place + columns + b]
                if in_place:
                    lengths[j] += inputs[j, b] * inputs[j, b]
            for a in range(columns):
                products[j, a] = _row_product(factor[j], a, inputs[j])
            for k in range(students):
                own[k] += products[j, k] / math.sqrt(covariates.inputs)
            for m in range(teachers):
                others[m] += _row_product(factor[j], students + m, latent) / math.sqrt(covariates.latents)
        noise = labels[2 * (sample - first)]
        new = v if in_place else new_v
        if not add_sample(networks, row, covariates.inputs, own, others, noise, v, new, gains):
            return False
        for j in range(spaces):
            if in_place:
                _update(gram[j], gains, products[j], lengths[j])
            else:
                _add_up(gains, inputs[j], lengths[j], sums[0][j], sums[1][j])
        if sample == clock[1] - 1 and not in_place:
            copy(new_v, v)
            _finish(networks.steps[row, 2], covariates.free, key, replica, clock[0], factor, sums, gram)
    return True


@without_reference_counts(inline="always")
def _clear(sums):  # type: ignore[no-untyped-def]
    """Set the sums of a step to 0."""
    moved, apart = sums[0], sums[1]
    for j in range(moved.shape[0]):
        for k in range(moved.shape[1]):
            for b in range(moved.shape[2]):
                moved[j, k, b] = 0.0
            for a in range(apart.shape[2]):
                apart[j, k, a] = 0.0


@without_reference_counts(inline="always")
def _add_up(gains, inputs, spread, moved, apart):  # type: ignore[no-untyped-def]
    """Add what a sample moves students by: along all vectors, and the covariance of what is orthogonal to them."""
    for k in range(gains.size):
        for b in range(inputs.size):
            moved[k, b] += gains[k] * inputs[b]
        for a in range(gains.size):
            apart[k, a] += gains[k] * gains[a] * spread


@without_reference_counts()
def _finish(kept, free, key, replica, step, factor, sums, gram):  # type: ignore[no-untyped-def]
    """Products after the students have decayed to `kept` times themselves and moved by the sums of a step.

    Orthogonally to all vectors, in n dimensions, what moves K students has products of the law of Wishart: a root of
    its covariance times a triangular matrix of normals with a chi-distributed diagonal has them (Bartlett).
    """
    moved, apart, root, triangle, normals, uniforms = sums
    spaces, students, columns = moved.shape
    start = step * (normals.size + uniforms.size)
    call(fill_normals, key, replica, VECTOR, start, normals)
    call(fill_uniforms, key, replica, VECTOR, start + normals.size, uniforms)
    for j in range(spaces):
        factorise(apart[j], root)
        for k in range(students):
            place = j * students + k
            for a in range(k):
                triangle[k, a] = normals[place * students + a]
            slot, diagonal = step * spaces * students + place, normals[place * students + k]
            chi2 = chi_squared(free[j] - k, diagonal, uniforms[place], key, replica, slot)
            triangle[k, k] = math.sqrt(chi2)
        for k in range(students):
            for a in range(k + 1):
                total = 0.0
                for c in range(a, k + 1):
                    total += root[k, c] * triangle[c, a]
                root[k, a] = total
                moved[j, k, a] += kept * factor[j, k, a]
        for k in range(students):
            for a in range(k + 1):
                gram[j, k, a] = gram[j, a, k] = dot(moved[j, k], moved[j, a]) + _row_product(root, a, root[k])
            for a in range(students, columns):
                gram[j, k, a] = gram[j, a, k] = _row_product(factor[j], a, moved[j, k])


@without_reference_counts(inline="always")
def _row_product(factor, a, numbers):  # type: ignore[no-untyped-def]
    """Product of row a of a lower triangular matrix and a vector."""
    total = 0.0
    for b in range(a + 1):
        total += factor[a, b] * numbers[b]
    return total


@without_reference_counts(inline="always")
def _update(gram, gains, products, length):  # type: ignore[no-untyped-def]
    """Products after each student k has moved by gains[k] x, where x has the given products and squared length."""
    students = gains.size
    for k in range(students):
        for a in range(k, gram.shape[0]):
            gram[k, a] += gains[k] * products[a]
            if a < students:
                gram[k, a] += gains[a] * products[k] + gains[k] * gains[a] * length
            gram[a, k] = gram[k, a]
