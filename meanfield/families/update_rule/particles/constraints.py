"""Constraints after a step, as matrices A with W <- A W that follow from the products Q of the students alone."""

from __future__ import annotations

import math

from meanfield.numerics.compiled.triangular import factorise
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts

CONSTRAINTS = {"none": 0, "sphere": 1, "gram_schmidt": 2, "polar": 3}
"""Numbers of constraints in compiled code."""

SPHERE, GRAM_SCHMIDT, POLAR = CONSTRAINTS["sphere"], CONSTRAINTS["gram_schmidt"], CONSTRAINTS["polar"]

SWEEPS = 32
"""Largest number of sweeps of Jacobi's method; a handful diagonalises matrices of any size that fits the caches."""


@without_reference_counts()
def constrain(constraints, starts, lengths, Q, work, A):  # type: ignore[no-untyped-def]
    """Write the matrix that takes students back to the constraints; not finite where students vanish.

    Parameters
    ----------
    constraints : ndarray of int, shape (groups,)
        Values of `CONSTRAINTS`.
    starts : ndarray of int, shape (groups + 1,)
        Where the students of each group begin.
    lengths : ndarray, shape (students,)
        Q_kk that the sphere keeps.
    Q : ndarray, shape (students, students)
        Products after the step, which are lost.
    work : ndarray, shape (students, students)
    A : ndarray, shape (students, students)
    """
    for k in range(Q.shape[0]):
        for j in range(Q.shape[0]):
            A[k, j] = 1.0 if j == k else 0.0
    for group in range(constraints.size):
        a, b = starts[group], starts[group + 1]
        _constrain(constraints[group], lengths[a:b], Q[a:b, a:b], work[a:b, a:b], A[a:b, a:b])


@without_reference_counts()
def _constrain(constraint, lengths, Q, work, A):  # type: ignore[no-untyped-def]
    """Write the matrix of one group, which is 1 before."""
    students = Q.shape[0]
    if constraint == SPHERE:
        for k in range(students):
            A[k, k] = math.sqrt(lengths[k] / Q[k, k])
    elif constraint == GRAM_SCHMIDT:
        factorise(Q, work)
        for k in range(students):  # A = L^-1, row after row
            for j in range(k):
                rest = 0.0
                for i in range(j, k):
                    rest += work[k, i] * A[i, j]
                A[k, j] = -rest / work[k, k]
            A[k, k] = 1.0 / work[k, k]
    elif constraint == POLAR:
        _inverse_root(Q, work, A)


@without_reference_counts()
def _inverse_root(Q, vectors, root):  # type: ignore[no-untyped-def]
    """Write Q^(-1/2) by Jacobi's rotations, which diagonalise Q in place; `root` is 1 before, as eigenvectors begin."""
    size = Q.shape[0]
    for k in range(size):
        for j in range(size):
            vectors[k, j] = root[k, j]
    for _ in range(SWEEPS):
        largest = 0.0
        for p in range(size):
            for q in range(p):
                largest = max(largest, abs(Q[p, q]) / math.sqrt(Q[p, p] * Q[q, q]))
                _rotate(Q, vectors, p, q)
        if not largest > 1e-17:
            break
    for k in range(size):
        for j in range(size):
            total = 0.0
            for i in range(size):
                total += vectors[k, i] * vectors[j, i] / math.sqrt(Q[i, i])
            root[k, j] = total


@without_reference_counts()
def _rotate(Q, vectors, p, q):  # type: ignore[no-untyped-def]
    """Turn eigenvectors p and q by the angle that removes Q_pq."""
    if Q[p, q] == 0.0:
        return
    half = (Q[q, q] - Q[p, p]) / (2.0 * Q[p, q])
    tangent = math.copysign(1.0, half) / (abs(half) + math.sqrt(half * half + 1.0))
    cosine = 1.0 / math.sqrt(tangent * tangent + 1.0)
    sine = tangent * cosine
    for i in range(Q.shape[0]):
        first, second = Q[i, p], Q[i, q]
        Q[i, p], Q[i, q] = cosine * first - sine * second, sine * first + cosine * second
        first, second = vectors[i, p], vectors[i, q]
        vectors[i, p], vectors[i, q] = cosine * first - sine * second, sine * first + cosine * second
    for i in range(Q.shape[0]):
        first, second = Q[p, i], Q[q, i]
        Q[p, i], Q[q, i] = cosine * first - sine * second, sine * first + cosine * second
    Q[p, q] = Q[q, p] = 0.0
