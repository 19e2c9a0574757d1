"""The student's fields along a mean of the inputs, which move within single steps: a Markov chain at fixed overlaps.

Where all inputs of component q have the mean a_q, the student's fields have the means a_q omega_k, with omega_k =
W_k.(1, 1, ..., 1)/sqrt(N). A step of SGD changes omega_k by the mean over its samples of -eta a_q v_k (Delta - noise of
the label) g'(lambda_k), a number of order 1, and overlaps by O(1/N) (hidden_manifold.md, section 4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.ensembles.streams import fill_normals, fill_uniforms
from meanfield.numerics.compiled.scalar_functions import call_scalar
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

NORMALS, UNIFORMS = 16, 17
"""Purposes of random numbers, which are none of those of SGD."""


class Law(NamedTuple):
    """Law of the fields at fixed overlaps, and what a step does.

    Parameters
    ----------
    functions : ndarray of int, shape (4,)
        Addresses of g and g' of the student, and of the teacher.
    cumulated : ndarray, shape (components,)
        Cumulated weights of the components; the last is above 1.
    constant : ndarray, shape (components,)
        a, the mean of inputs.
    root : ndarray, shape (components, fields, fields)
        Roots of the covariances of the fields.
    mean : ndarray, shape (components, fields)
        Means of the fields besides a omega.
    u : ndarray, shape (fields,)
        Second layer (v, -v_teacher).
    rate : float
        eta.
    batch_size : int
        Samples of a step.
    label_noise : float
        Standard deviation of the noise of labels.
    normals : int
        Number of normal numbers that a sample has, one of them for the noise of labels if there ever is any.
    """

    functions: IntArray
    cumulated: FloatArray
    constant: FloatArray
    root: FloatArray
    mean: FloatArray
    u: FloatArray
    rate: float
    batch_size: int
    label_noise: float
    normals: int


class Sums(NamedTuple):
    """Sums over samples and chains, by component, of what averages are made of.

    Parameters
    ----------
    samples, square : ndarray, shape (components,)
        Number of samples, and Delta^2.
    slopes : ndarray, shape (components, students, fields)
        g'(lambda_k) g'(h_a).
    noise : ndarray, shape (components, students, students)
        Delta^2 g'(lambda_k) g'(lambda_l), where Delta^2 is that with the noise of labels.
    force, moment, output : ndarray, shape (components, students)
        Delta g'(lambda_k), the same times lambda_k less its mean, and Delta g(lambda_k).
    """

    samples: FloatArray
    square: FloatArray
    slopes: FloatArray
    noise: FloatArray
    force: FloatArray
    moment: FloatArray
    output: FloatArray


def no_sums(components: int, students: int, fields: int) -> Sums:
    """Sums over no samples."""
    q, K = components, students
    shapes = ((q,), (q,), (q, K, fields), (q, K, K), (q, K), (q, K), (q, K))
    return Sums(*(np.zeros(shape) for shape in shapes))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def advance(law, key, stream, first, stride, omega, path, sums):  # type: ignore[no-untyped-def]
    """Take steps of several chains, and add up what they see.

    Parameters
    ----------
    law : Law
    key : ndarray, shape (2,)
        Of the random streams, of which each chain has its own, from number `stream` on.
    stream : int
    first : int
        Number of the first sample.
    stride : int
        Number of steps between two records of the path.
    omega : ndarray, shape (chains, students)
        State, which is updated.
    path : ndarray, shape (records, chains, students)
        Receives omega after each `stride` steps.
    sums : Sums
        What is added to.

    Returns
    -------
    bool
        Whether all chains stayed within 1e8.
    """
    K = omega.shape[1]
    n = law.u.size
    components = law.cumulated.size
    even = law.normals + law.normals % 2
    samples = stride * law.batch_size
    drawn = min(samples, 4096)  # samples at once
    normals, uniforms = np.empty((drawn, even)), np.empty((drawn, 2))
    h, value, slope, push = np.empty(n), np.empty(n), np.empty(n), np.zeros(K)
    for i in range(omega.shape[0]):
        w = omega[i]
        for record in range(path.shape[0]):
            start = first + record * samples
            for sample in range(samples):
                row = sample % drawn
                if row == 0:
                    call(fill_normals, key, stream + i, NORMALS, (start + sample) * even, normals.ravel())
                    if components > 1:
                        call(fill_uniforms, key, stream + i, UNIFORMS, (start + sample) * 2, uniforms.ravel())
                q = 0
                while law.cumulated[q] < uniforms[row, 0] and components > 1:
                    q += 1
                _add_sample(law, q, normals[row], w, h, value, slope, push, sums)
                if sample % law.batch_size == law.batch_size - 1:
                    for k in range(K):
                        w[k] -= law.rate / law.batch_size * law.u[k] * push[k]
                        push[k] = 0.0
            for k in range(K):
                path[record, i, k] = w[k]
                if not abs(w[k]) < 1e8:  # no law of a chain is that wide
                    return False
    return True


@numba.njit(inline="always", error_model="numpy")
def _add_sample(law, q, normals, w, h, value, slope, push, sums):  # type: ignore[no-untyped-def]
    """Add what a sample of component q moves a chain by, in units of -eta v/tau, to `push`, and the rest to sums."""
    K = w.size
    n = law.u.size
    a = law.constant[q]
    error = 0.0
    for b in range(n):
        h[b] = 0.0
        for c in range(n):
            h[b] += law.root[q, b, c] * normals[c]
        own = b < K
        field = h[b] + law.mean[q, b] + (a * w[b] if own else 0.0)
        value[b] = call_scalar(law.functions[0 if own else 2], field)
        slope[b] = call_scalar(law.functions[1 if own else 3], field)
        error += law.u[b] * value[b]
    sums.samples[q] += 1.0
    sums.square[q] += error * error
    noisy, square = error, error * error + law.label_noise**2
    if law.label_noise > 0.0:
        noisy -= law.label_noise * normals[n]
    for k in range(K):
        force = error * slope[k]
        sums.force[q, k] += force
        sums.moment[q, k] += force * h[k]
        sums.output[q, k] += error * value[k]
        for b in range(n):
            sums.slopes[q, k, b] += slope[k] * slope[b]
        for j in range(K):
            sums.noise[q, k, j] += square * slope[k] * slope[j]
        push[k] += a * noisy * slope[k]
