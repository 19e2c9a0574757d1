"""Generalisation errors alone, of many states: expectations of two fields, without those that drive training."""

from __future__ import annotations

from meanfield.families.hidden_manifold.expectations.choice import ERF, LINEAR, RELU
from meanfield.families.hidden_manifold.expectations.erf import product_of_two
from meanfield.families.hidden_manifold.expectations.quadrature import average
from meanfield.families.hidden_manifold.expectations.relu import product_of_two as product_of_rectified
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba


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
