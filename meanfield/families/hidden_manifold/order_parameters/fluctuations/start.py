"""Covariance of the order parameters over starts of SGD, times N: products of weights that are drawn at random.

To leading order they are linear in normal numbers: in each eigenspace those of the products of random vectors with the
teacher, and with each other. A start with exact overlaps fixes their sums over all spaces, not those in each.
"""

from __future__ import annotations

import numpy as np

from meanfield.families.hidden_manifold.order_parameters.fluctuations.spaces import spaces_of
from meanfield.families.hidden_manifold.order_parameters.fluctuations.step_noise import problem_means
from meanfield.families.hidden_manifold.order_parameters.system import State, System, packed
from meanfield.families.hidden_manifold.particles.start import root
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.typing import FloatArray


def start_covariance(problem: Problem, system: System) -> FloatArray:
    """N times the covariance of the state at t = 0, shape (n, n)."""
    K, M, spaces = system.students, system.teachers, spaces_of(system)
    rows = []
    for j in map(int, np.flatnonzero(spaces.inputs > 0.0)):
        for k in range(K):
            if spaces.rho[j] > 0.0:
                rows += [_state(problem, system, j, np.zeros((K, K)), np.outer(np.eye(K)[k], e)) for e in np.eye(M)]
            for i in range(k + 1):
                products = np.zeros((K, K))
                products[k, i] = products[i, k] = 2.0**0.5 if i == k else 1.0
                rows.append(_state(problem, system, j, products, np.zeros((K, M))))
    changes = np.array(rows)
    return np.asarray(changes.T @ changes)


def _state(problem: Problem, system: System, j: int, products: FloatArray, along: FloatArray) -> FloatArray:
    """Change of the state by a normal number of space j.

    It is one of the products of random vectors with each other, or of those with the teacher, per dimension.
    """
    K, M, n, spaces = system.students, system.teachers, len(system.rho), spaces_of(system)
    g, X = root(problem.student.rest), problem.initial_on_teacher
    share = spaces.inputs
    random = problem.student.initial == "random"
    t = np.append(system.t[:, :M, :M], np.zeros((1, M, M)), axis=0)
    each = np.zeros((n + 1, K, K))  # of P^T P per dimension of each space, with P the random part of the weights
    each[j] = products / share[j] ** 0.5
    total = share[j] ** 0.5 * products
    features = np.zeros((n + 1, K, M))  # of P^T F^T Wt/sqrt(N) per dimension
    features[j] = (spaces.rho[j] / share[j]) ** 0.5 * along @ root(t[j])
    if not random:
        each -= np.where(share > 0.0, 1.0, 0.0)[:, None, None] * total
        gram = np.einsum("j,jab->ab", share * spaces.rho, t)
        features -= share[j] * features[j] @ np.linalg.pinv(gram) @ (spaces.rho[:, None, None] * t)
        total = np.zeros((K, K))
    each, features = g @ each @ g, g @ features
    crossed = X @ features.swapaxes(1, 2)
    own = each + crossed + crossed.swapaxes(1, 2)
    means = problem_means(problem)[system.column >= 0]
    columns = np.vstack([np.eye(M), means])
    rho = spaces.rho[:n, None, None]
    return packed(State(features[:n] @ columns.T, rho * own[:n], g @ total @ g, np.zeros(K)))
