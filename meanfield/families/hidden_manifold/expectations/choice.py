"""Choice of the expectations: closed forms where the activations of student and teacher have them, else quadrature."""

from __future__ import annotations

from meanfield.families.hidden_manifold.expectations.erf import erf_expectations, product_of_two
from meanfield.families.hidden_manifold.expectations.quadrature import average, quadrature_expectations
from meanfield.families.hidden_manifold.expectations.relu import product_of_two as product_of_rectified
from meanfield.families.hidden_manifold.expectations.relu import relu_expectations
from meanfield.ingredients.activations import ACTIVATIONS, Activation
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba

QUADRATURE, ERF, LINEAR, RELU = range(4)
"""Kinds of expectations."""

CLOSED = {"scaled_erf": ERF, "linear": LINEAR, "relu": RELU}
"""Kinds by the name of the activation of student and teacher."""


def kind_of_expectations(student: Activation, teacher: Activation, means: bool) -> int:
    """Kind for two activations, whose fields have means or not."""
    for name, kind in CLOSED.items():
        if student is teacher is ACTIVATIONS[name] and not (means and kind == RELU):
            return kind
    return QUADRATURE


@numba.njit(cache=True, nogil=True, error_model="numpy")
def expectations(kind, K, C, m, u, rule, A, H, G, D):  # type: ignore[no-untyped-def]
    """Write the expectations of a kind, and return the generalisation error; see `erf_expectations`."""
    if kind == ERF:
        return call(erf_expectations, K, C, m, u, A, H, G, D)
    if kind == LINEAR:
        return call(linear_expectations, K, C, m, u, A, H, G, D)
    if kind == RELU:
        for k in range(K):
            G[k] = 0.0
        return call(relu_expectations, K, C, u, A, H, D)
    return call(quadrature_expectations, K, C, m, u, rule, A, H, G, D)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def linear_expectations(K, C, m, u, A, H, G, D):  # type: ignore[no-untyped-def]
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
            H[k, j] = u[k] * u[j] * square
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
    for i in range(out.size):
        out[i] = 0.0
        for a in range(u.shape[1]):
            for b in range(a + 1):
                share = 0.5 if a == b else 1.0
                out[i] += share * u[i, a] * u[i, b] * _product(kind, students, C[i], m[i], rule, a, b)


@numba.njit(inline="always", error_model="numpy")
def _product(kind, students, C, m, rule, a, b):  # type: ignore[no-untyped-def]
    """E[g(h_a) g(h_b)]."""
    if kind == ERF:
        return call(product_of_two, C[a, a], C[b, b], C[a, b], m[a], m[b])
    if kind == LINEAR:
        return C[a, b] + m[a] * m[b]
    if kind == RELU:
        return call(product_of_rectified, C, a, b)
    return call(average, -1, -1, a, b, False, students, C, m, rule)
