"""Choice of the expectations: closed forms where the activations of student and teacher have them, else quadrature."""

from __future__ import annotations

from meanfield.families.hidden_manifold.expectations.erf import erf_expectations
from meanfield.families.hidden_manifold.expectations.linear import linear_expectations
from meanfield.families.hidden_manifold.expectations.quadrature import quadrature_expectations
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
