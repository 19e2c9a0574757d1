"""Two-layer networks of erf units in closed form, after Saad and Solla (1995): equations that share no code with rules.

A student sum_k v_k g(s_k) learns from sum_m g(y_m) + sigma eps with g(x) = erf(x/sqrt 2), T = I, by steps tau v_k
g'(s_k) Delta x/sqrt N of its vectors and tau_v g(s_k) Delta/N of its heads. Averages of two to four of these functions
are arcsines (update_rules.md, section 10.8).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp


class Network(NamedTuple):
    """Student, teacher and rates.

    Parameters
    ----------
    R : ndarray, shape (students, teachers)
    Q : ndarray, shape (students, students)
    v : ndarray, shape (students,)
    rate, head_rate, sigma : float
    """

    R: np.ndarray
    Q: np.ndarray
    v: np.ndarray
    rate: float
    head_rate: float = 0.0
    sigma: float = 0.0


def pairs(C: np.ndarray) -> np.ndarray:
    """<g g'> of Gaussian variables with a covariance."""
    one = 1.0 + np.diag(C)
    return 2.0 / np.pi * np.arcsin(C / np.sqrt(np.outer(one, one)))


def error(R: np.ndarray, Q: np.ndarray, v: np.ndarray) -> float:
    """Half of the mean squared difference of student and teacher."""
    C, h = _joined(R, Q, v)
    return float(0.5 * h @ pairs(C) @ h)


def _joined(R: np.ndarray, Q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Covariance of the fields of students and teachers, and their weights in Delta."""
    return np.block([[Q, R], [R.T, np.eye(R.shape[1])]]), np.append(-v, np.ones(R.shape[1]))


def rates(network: Network, R: np.ndarray, Q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """dR/dt, dQ/dt and dv/dt."""
    (C, h), K = _joined(R, Q, v), len(Q)
    one = 1.0 + np.diag(C)
    E, noise = np.empty((len(C), K)), np.empty((K, K))
    for a in range(K):
        determinant = one[a] * one - C[a] ** 2
        triple = 2.0 / np.pi * (C * one[a] - np.outer(C[a], C[a])) / (one[a] * np.sqrt(determinant))
        E[:, a] = network.rate * v[a] * triple @ h
        for b in range(K):
            A, B, c, L4 = C[a], C[b], C[a, b], one[a] * one[b] - C[a, b] ** 2
            L0 = L4 * C - np.outer(B, B) * one[a] - np.outer(A, A) * one[b] + c * (np.outer(A, B) + np.outer(B, A))
            L1 = L4 * one - B**2 * one[a] - A**2 * one[b] + 2.0 * c * A * B
            four = 4.0 / np.pi**2 * np.arcsin(np.clip(L0 / np.sqrt(np.outer(L1, L1)), -1.0, 1.0))
            label = 2.0 / np.pi * network.sigma**2
            noise[a, b] = network.rate**2 * v[a] * v[b] * (h @ four @ h + label) / np.sqrt(L4)
    return E[K:].T, E[:K] + E[:K].T + noise, network.head_rate * (pairs(C) @ h)[:K]


def errors(network: Network, times: np.ndarray) -> np.ndarray:
    """Errors at some times from the network's start, which increase from 0."""
    K, M = network.R.shape

    def parts(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return y[: K * M].reshape(K, M), y[K * M : K * (M + K)].reshape(K, K), y[K * (M + K) :]

    def velocity(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate([each.ravel() for each in rates(network, *parts(y))])

    start = np.concatenate([np.ravel(each) for each in network[:3]])
    path = solve_ivp(velocity, (0.0, times[-1]), start, method="LSODA", t_eval=times, rtol=1e-9, atol=1e-11)
    assert path.success, path.message
    return np.array([error(*parts(y)) for y in path.y.T])
