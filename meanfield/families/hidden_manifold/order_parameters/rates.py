"""Rates of change of the order parameters, in compiled code (hidden_manifold.md, sections 2 and 4)."""

from __future__ import annotations

import numba
import numpy as np

from meanfield.families.hidden_manifold.expectations.choice import expectations
from meanfield.numerics.compiled.separate_calls import call


@numba.njit(cache=True, nogil=True, error_model="numpy")
def rates(y, system, dy):  # type: ignore[no-untyped-def]
    """Write dy/dt of a state y, and return its generalisation error.

    The equations are linear in r and sigma at each node but for averages over nodes, the covariances of the fields.
    `drift` is what A of the students does at rho = 0, `tilt` what it adds per rho, `pull` what draws towards columns.
    """
    K, M, L = system.students, system.teachers, system.t.shape[1]
    nodes = system.rho.size * K * (L + K)  # where Omega begins, and after it v
    eta, eta_v = system.rates
    matrices = np.zeros((8, K + L, K + L))
    mean_r, Sigma, t, drift, tilt, pull, noise, tilted_noise = matrices
    _averages(system, y, mean_r, Sigma, t)
    C, u = np.empty((K + M, K + M)), np.empty(K + M)
    for k in range(K):
        u[k] = y[nodes + K * K + k]
    for a in range(M):
        u[K + a] = -system.teacher_weights[a]
    for i in range(nodes, y.size):
        dy[i] = 0.0
    A, H, m, G, D = np.empty((K, K + M)), np.empty((K, K)), np.empty(K + M), np.empty(K), np.empty(K)
    error = 0.0
    for q in range(system.chance.size):
        p, b, s = system.chance[q], system.slope[q], system.scale[q]
        fields(system, q, y, mean_r, Sigma, t, C, m)
        error += p * call(expectations, system.kind, K, C, m, u, system.rule, A, H, G, D)
        for k in range(K):
            dy[nodes + K * K + k] -= eta_v * p * D[k]
            for a in range(M):
                pull[k, a] += p * b * s * A[k, K + a]
            if system.column[q] >= 0:
                pull[k, system.column[q]] += p * b / s * G[k]
            for j in range(K):
                drift[k, j] += p * system.rest[q] * system.aspect_ratio * A[k, j]
                tilt[k, j] += p * b * b * A[k, j]
                noise[k, j] += p * system.rest[q] * H[k, j]
                tilted_noise[k, j] += p * b * b / system.aspect_ratio * H[k, j]
                change = G[k] * m[j] + G[j] * m[k]
                for a in range(K + M):
                    change += A[k, a] * C[j, a] + A[j, a] * C[k, a]
                dy[nodes + K * k + j] += p * (eta * eta * system.square[q] * H[k, j] - eta * change)
    _at_nodes(system, y, drift, tilt, pull, noise, tilted_noise, dy)
    return error


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _averages(system, y, mean_r, Sigma, t):  # type: ignore[no-untyped-def]
    """Add up averages over the spectrum."""
    K, L = system.students, system.t.shape[1]
    for i in range(system.rho.size):
        w, node = system.weight[i], i * K * (L + K)
        for k in range(K):
            for a in range(L):
                mean_r[k, a] += w * y[node + a * K + k]
            for j in range(K):
                Sigma[k, j] += w * y[node + (L + j) * K + k]
        for a in range(L):
            for c in range(L):
                t[a, c] += w * system.t[i, a, c]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fields(system, q, y, mean_r, Sigma, t, C, m):  # type: ignore[no-untyped-def]
    """Write covariance and mean of the fields (lambda, nu) in component q."""
    K, M, L = system.students, system.teachers, system.t.shape[1]
    b, s, column = system.slope[q], system.scale[q], system.column[q]
    Omega = system.rho.size * K * (L + K)
    for k in range(K):
        for j in range(K):
            C[k, j] = system.rest[q] * y[Omega + K * k + j] + b * b * Sigma[k, j]
        for a in range(M):
            C[k, K + a] = C[K + a, k] = b * s * mean_r[k, a]
        m[k] = b / s * mean_r[k, column] if column >= 0 else 0.0
    for a in range(M):
        for c in range(M):
            C[K + a, K + c] = s * s * t[a, c]
        m[K + a] = t[a, column] if column >= 0 else 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _at_nodes(system, y, drift, tilt, pull, noise, tilted_noise, dy):  # type: ignore[no-untyped-def]
    """Write the rates of r and sigma at all nodes."""
    K, L, eta = system.students, system.t.shape[1], system.rates[0]
    speed = eta / system.aspect_ratio
    for i in range(system.rho.size):
        rho, r, sigma = system.rho[i], i * K * (L + K), i * K * (L + K) + K * L
        for row in range(L + K):
            for k in range(K):
                change = 0.0
                for j in range(K):
                    change += (drift[k, j] + rho * tilt[k, j]) * y[r + row * K + j]
                for c in range(L):
                    source = system.t[i, c, row] if row < L else y[r + c * K + row - L]
                    change += rho * pull[k, c] * source
                dy[r + row * K + k] = -speed * change
        for k in range(K):
            for j in range(k + 1):
                spread = rho * noise[k, j] + rho * rho * tilted_noise[k, j]
                both = dy[sigma + j * K + k] + dy[sigma + k * K + j] + eta * eta * spread
                dy[sigma + j * K + k] = dy[sigma + k * K + j] = both
