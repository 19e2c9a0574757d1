"""Rates of change of the order parameters of an update rule, and its normalisation (update_rules.md, eq-rule-ode)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.families.update_rule.averages import Averages
from meanfield.typing import FloatArray

Constraints = tuple[tuple[str, range], ...]
"""What follows a step, and for which students."""


class State(NamedTuple):
    """Order parameters.

    Parameters
    ----------
    R : ndarray, shape (..., students, features)
    Q : ndarray, shape (..., students, students)
    v : ndarray, shape (..., side variables)
    """

    R: FloatArray
    Q: FloatArray
    v: FloatArray


def packed(state: State) -> FloatArray:
    """State as a vector: R, the lower triangle of Q, and v."""
    return np.concatenate([state.R.ravel(), state.Q[np.tril_indices(len(state.Q))], state.v])


def unpacked(y: FloatArray, students: int, features: int) -> State:
    """State from vectors, shape (..., numbers)."""
    first, pairs = students * features, students * (students + 1) // 2
    R = y[..., :first].reshape(*y.shape[:-1], students, features)
    Q = np.empty((*y.shape[:-1], students, students))
    i, j = np.tril_indices(students)
    Q[..., i, j] = Q[..., j, i] = y[..., first : first + pairs]
    return State(R, Q, y[..., first + pairs :])


def rates_of(averages: Averages, G: FloatArray, features: int, decay: float, constraints: Constraints) -> State:
    """Rates of change of R, Q and v.

    Parameters
    ----------
    averages : Averages
        Of all draws of a step.
    G : ndarray, shape (vectors, vectors)
    features : int
    decay : float
        Strength of a linear prior.
    constraints : tuple of (str, range)
        What follows a step; see `normalisation`.
    """
    R, Q = G[features:, :features], G[features:, features:]
    V = averages.E + G @ averages.B - decay * G[:, features:]
    drift = V[features:] + V[features:].T + averages.Lambda
    S = normalisation(constraints, drift, Q)
    back = Q @ S
    return State(V[:features].T - S.T @ R, drift - back - back.T, averages.H)


def normalisation(constraints: Constraints, drift: FloatArray, Q: FloatArray) -> FloatArray:
    """S with which normalisations undo a drift of Q to first order (update_rules.md, section 4).

    Parameters
    ----------
    constraints : tuple of (str, range)
        "none", "sphere", "gram_schmidt" or "polar" for the students of each group.
    drift, Q : ndarray, shape (students, students)
    """
    S = np.zeros_like(drift)
    for constraint, students in constraints:
        own = slice(students.start, students.stop)
        inner = drift[own, own]
        if constraint == "sphere":
            S[own, own] = np.diag(np.diag(inner) / (2.0 * np.diag(Q[own, own])))
        elif constraint == "gram_schmidt":
            S[own, own] = np.triu(inner, 1) + 0.5 * np.diag(np.diag(inner))
        elif constraint == "polar":
            S[own, own] = 0.5 * inner
    return S
