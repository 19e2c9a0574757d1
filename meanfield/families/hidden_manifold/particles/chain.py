"""SGD as a Markov chain of Gram matrices, for Gaussian covariates: any N at the cost of a few numbers per eigenvalue.

Inputs x = (b/s) U + sqrt(c*) z, with a normal vector z and U = F^T C/sqrt(D), are Gaussian given the component. In an
eigenspace of F F^T/N, of n dimensions, a step depends on the products of the student's vectors with each other, the
teacher's and those of the means alone: on a Gram matrix. What a sample has orthogonally to all of these enters by its
length, a chi-squared variable of n - columns degrees of freedom. The input dimensions that F does not reach are one
more such space, without teacher. The chain of all Gram matrices and v has the law of plain SGD with such inputs at
every N (hidden_manifold.md, section 7).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.ensembles.gamma_variables import chi_squared
from meanfield.ensembles.streams import NORMALS, UNIFORMS, fill_normals, fill_uniforms
from meanfield.families.hidden_manifold.particles.latents import component
from meanfield.families.hidden_manifold.particles.networks import take_step
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
def chain_steps(networks, covariates, key, first_replica, first, steps, gram, v, reached):  # type: ignore[no-untyped-def]
    """Take steps `first`, `first` + 1, ... of several replicas, changing their states in place.

    Parameters
    ----------
    networks : Networks
    covariates : Covariates
    key : ndarray, shape (2,)
        Of the random streams.
    first_replica, first, steps : int
    gram : ndarray, shape (replicas, spaces, columns, columns)
        Products of students, teachers and directions of means.
    v : ndarray, shape (replicas, students)
    reached : ndarray of int, shape (replicas,)
        Receives the step after which the state was still finite: first + steps unless it blew up, now or earlier.
    """
    replicas, spaces, columns, _ = gram.shape
    students, teachers = v.shape[1], networks.teacher_weights.size
    needed = spaces * (2 * columns + 1), spaces + 1
    normals_each, uniforms_each = needed[0] + needed[0] % 2, needed[1] + needed[1] % 2
    # Normals drawn at once: enough to vectorise, few enough for the first-level cache.
    some = max(1, 1024 // normals_each)
    normals, uniforms = np.empty((some, normals_each)), np.empty((some, uniforms_each))
    factor = np.empty((columns, columns))
    numbers = np.empty((2, columns))
    products, lengths = np.empty((spaces, columns)), np.empty(spaces)
    own, others, gains = np.empty(students), np.empty(teachers), np.empty(students)
    for i in range(replicas):
        for chunk in range(first, first + steps, some):
            if reached[i] < chunk:
                break
            last = min(chunk + some, first + steps)
            call(fill_normals, key, first_replica + i, NORMALS, chunk * normals_each, normals.ravel())
            call(fill_uniforms, key, first_replica + i, UNIFORMS, chunk * uniforms_each, uniforms.ravel())
            reached[i] = call(
                _steps, networks, covariates, key, first_replica + i, chunk, last, normals, uniforms, gram[i], v[i],
                factor, numbers, products, lengths, own, others, gains,
            )  # fmt: skip


@without_reference_counts()
def _steps(  # type: ignore[no-untyped-def]
    networks, covariates, key, replica, first, end, normals, uniforms, gram, v,
    factor, numbers, products, lengths, own, others, gains,
):  # fmt: skip
    """Steps `first` to `end` - 1 of a replica, with the random numbers of each in a row; the step that was reached."""
    spaces, columns, _ = gram.shape
    students, teachers = v.size, others.size
    for step in range(first, end):
        normal, uniform = normals[step - first], uniforms[step - first]
        q = component(covariates.cumulated, uniform[spaces])
        for k in range(students):
            own[k] = 0.0
        for m in range(teachers):
            others[m] = 0.0
        for j in range(spaces):
            slot, place = step * spaces + j, j * (2 * columns + 1)
            along, noise = covariates.along[q, j], covariates.noise[q, j]
            spread = (along * covariates.scale[q]) ** 2 + noise * noise
            chi2 = chi_squared(covariates.free[j], normal[place + 2 * columns], uniform[j], key, replica, slot)
            factorise(gram[j], factor)
            latent, inputs = numbers[0], numbers[1]
            lengths[j] = spread * chi2
            for b in range(columns):
                mean = 0.0
                for a in range(max(b, students), columns):
                    mean += covariates.mean[q, a] * factor[a, b]
                latent[b] = mean / math.sqrt(covariates.latents) + covariates.scale[q] * normal[place + b]
                inputs[b] = along * latent[b] + noise * normal[place + columns + b]
                lengths[j] += inputs[b] * inputs[b]
            for a in range(columns):
                products[j, a] = _row_product(factor, a, inputs)
            for k in range(students):
                own[k] += products[j, k] / math.sqrt(covariates.inputs)
            for m in range(teachers):
                others[m] += _row_product(factor, students + m, latent) / math.sqrt(covariates.latents)
        if not take_step(networks, covariates.inputs, own, others, v, gains):
            return step
        for j in range(spaces):
            _update(gram[j], gains, products[j], lengths[j])
    return end


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
