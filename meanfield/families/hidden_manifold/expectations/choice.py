"""Choice of the expectations: closed forms where the activations of student and teacher have them, else quadrature."""

from __future__ import annotations

import numpy as np

from meanfield.families.hidden_manifold.expectations.erf import erf_expectations
from meanfield.families.hidden_manifold.expectations.quadrature import quadrature_error, quadrature_expectations
from meanfield.families.hidden_manifold.expectations.relu import relu_expectations
from meanfield.ingredients.activations import ACTIVATIONS, Activation
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba

QUADRATURE, ERF, LINEAR, RELU = range(4)
"""Kinds of expectations."""

CLOSED = {"scaled_erf": ERF, "linear": LINEAR, "relu": RELU}
"""Kinds by the name of the activation of student and teacher."""


def kind_of_expectations(student: Activation, teacher: Activation) -> int:
    """Kind for two activations; closed forms are known with means of the fields as without."""
    for name, kind in CLOSED.items():
        if student is teacher is ACTIVATIONS[name]:
            return kind
    return QUADRATURE


@numba.njit(cache=True, nogil=True, error_model="numpy")
def expectations(kind, K, C, m, u, label_noise, rule, A, H, G, D):  # type: ignore[no-untyped-def]
    """Write the expectations of a kind, and return the generalisation error; see `erf_expectations`."""
    if kind == ERF:
        return call(erf_expectations, K, C, m, u, label_noise, A, H, G, D)
    if kind == LINEAR:
        return call(linear_expectations, K, C, m, u, label_noise, A, H, G, D)
    if kind == RELU:
        return call(relu_expectations, K, C, m, u, label_noise, A, H, G, D)
    return call(quadrature_expectations, K, C, m, u, label_noise, rule, A, H, G, D)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def linear_expectations(K, C, m, u, label_noise, A, H, G, D):  # type: ignore[no-untyped-def]
    """Write the expectations that drive K students; see `erf_expectations`."""
    mean = square = 0.0
    for a in range(u.size):
        mean += u[a] * m[a]
        for b in range(u.size):
            square += u[a] * u[b] * (C[a, b] + m[a] * m[b])
    for k in range(K):
        G[k], D[k] = u[k] * mean, m[k] * mean
        for a in range(u.size):
            A[k, a] = u[k] * u[a]
            D[k] += u[a] * C[k, a]
        for j in range(K):
            H[k, j] = u[k] * u[j] * (square + label_noise)
    return 0.5 * square


@numba.njit(cache=True, nogil=True, error_model="numpy")
def generalisation_errors(kind, students, C, m, u, rule, out):  # type: ignore[no-untyped-def]
    """Write E[Delta^2]/2 of each state to `out`.

    Parameters
    ----------
    kind : int
        Kind of expectations, from `kind_of_expectations`.
    students : int
        Number of students, whose fields come first.
    C, m : ndarray, shape (states, fields, fields) and (states, fields)
        Covariances and means of the fields h.
    u : ndarray, shape (states, fields)
        Second layer (v, -v_teacher), so that Delta = sum_a u_a g(h_a).
    rule : Rule
        For a quadrature.
    out : ndarray, shape (states,)
    """
    n = u.shape[1]
    A, H, G, D = np.empty((0, n)), np.empty((0, 0)), np.empty(0), np.empty(0)
    for i in range(out.size):
        if kind == QUADRATURE:
            out[i] = call(quadrature_error, students, C[i], m[i], u[i], rule)
        else:  # all units have one activation: none of them need be a student
            out[i] = call(expectations, kind, 0, C[i], m[i], u[i], 0.0, rule, A, H, G, D)
