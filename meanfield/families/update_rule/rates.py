"""Rates of change of the order parameters of an update rule, and its normalisation (update_rules.md, eq-rule-ode)."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from meanfield.families.update_rule.averages import Averages
from meanfield.ingredients.spectra import Nodes
from meanfield.typing import FloatArray

Constraints = tuple[tuple[str, range], ...]
"""What follows a step, and for which students."""


class State(NamedTuple):
    """Order parameters; with a spectrum those of its nodes, per coordinate, with an axis for nodes before the last two.

    Parameters
    ----------
    R : ndarray, shape (..., students, features)
    Q : ndarray, shape (..., students, students)
    v : ndarray, shape (..., side variables)
    """

    R: FloatArray
    Q: FloatArray
    v: FloatArray

    def total(self, weight: FloatArray) -> State:
        """Averages over nodes with some weights."""
        R, Q = (np.einsum("b,...bkl->...kl", weight, each) for each in (self.R, self.Q))
        return State(R, Q, self.v)


tril_indices = cache(np.tril_indices)
"""Places of lower triangles; NumPy takes longer to find them than rates take."""


def packed(state: State) -> FloatArray:
    """State as a vector: R and the lower triangle of Q, node after node, and v."""
    i, j = tril_indices(state.Q.shape[-1])
    R = state.R.reshape(*state.R.shape[:-2], -1)
    return np.concatenate([np.concatenate([R, state.Q[..., i, j]], axis=-1).ravel(), state.v])


def unpacked(y: FloatArray, students: int, features: int, nodes: int | None = None) -> State:
    """State from vectors, shape (..., numbers), with an axis for nodes if there are any."""
    of_node = students * features + students * (students + 1) // 2
    end = of_node * (1 if nodes is None else nodes)
    overlaps = y[..., :end] if nodes is None else y[..., :end].reshape(*y.shape[:-1], nodes, of_node)
    R = overlaps[..., : students * features].reshape(*overlaps.shape[:-1], students, features)
    Q = np.empty((*overlaps.shape[:-1], students, students))
    i, j = tril_indices(students)
    Q[..., i, j] = Q[..., j, i] = overlaps[..., students * features :]
    return State(R, Q, y[..., end:])


def start_at(nodes: Nodes, R: FloatArray, Q: FloatArray, v: FloatArray) -> State:
    """Overlaps at the start, of students that know of the variances what the features do.

    Parameters
    ----------
    R, Q, v : ndarray
        Of all coordinates together.
    """
    along, teacher = R @ R.T, nodes.teacher[:, None, None]
    return State(teacher * R, Q + (teacher - 1.0) * along, v)


def rates_of(
    averages: Averages,
    G: FloatArray,
    features: int,
    decay: float,
    constraints: Constraints,
    nodes: Nodes | None = None,
) -> State:
    """Rates of change of R, Q and v.

    Parameters
    ----------
    averages : Averages
        Of all draws of a step.
    G : ndarray, shape (vectors, vectors)
        With nodes (nodes, vectors, vectors).
    features : int
    decay : float
        Strength of a linear prior.
    constraints : tuple of (str, range)
        What follows a step; see `normalisation`.
    nodes : Nodes, optional
        Nodes of the spectrum, if variances of coordinates differ.

    Notes
    -----
    Source: update_rules.md, eq-rule-ode and eq-rule-spectrum-ode.
    """
    M = features
    V = averages.E + G @ averages.B - decay * G[..., M:]
    R, Q, of_w, drift = G[..., M:, :M], G[..., M:, M:], V[..., M:, :], averages.Lambda
    if nodes is not None:
        drift = nodes.rho[:, None, None] * drift
    drift = of_w + of_w.swapaxes(-1, -2) + drift
    total = (drift, Q) if nodes is None else (np.tensordot(nodes.weight, each, 1) for each in (drift, Q))
    S = normalisation(constraints, *total)
    back = Q @ S
    return State(V[..., :M, :].swapaxes(-1, -2) - S.T @ R, drift - back - back.swapaxes(-1, -2), averages.H)


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
