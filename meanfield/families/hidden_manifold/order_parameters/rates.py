"""Rates of change of the order parameters, in compiled code (hidden_manifold.md, sections 2 and 4)."""

from __future__ import annotations

import numba
import numpy as np

from meanfield.families.hidden_manifold.expectations.choice import expectations


@numba.njit(cache=True, nogil=True, error_model="numpy")
def rates(y, system, dy):  # type: ignore[no-untyped-def]
    """Write dy/dt of a state y, and return its generalisation error.

    The equations are linear in r and sigma at each node but for sums over nodes, which make the covariances of the fields.
    `drift` is what A of the students does at rho = 0, `tilt` what it adds per rho, `pull` what draws towards columns.
    """
    K, M, n, L = system.students, system.teachers, system.rho.size, system.t.shape[1]
    eta, eta_v = system.rates
    r = y[: n * K * L].reshape(n, K, L)
    sigma = y[n * K * L : n * K * (L + K)].reshape(n, K, K)
    Omega = y[n * K * (L + K) : n * K * (L + K) + K * K].reshape(K, K)
    v = y[n * K * (L + K) + K * K :]
    dr = dy[: n * K * L].reshape(n, K, L)
    dsigma = dy[n * K * L : n * K * (L + K)].reshape(n, K, K)
    dOmega = dy[n * K * (L + K) : n * K * (L + K) + K * K].reshape(K, K)
    dv = dy[n * K * (L + K) + K * K :]

    mean_r, Sigma, t = np.zeros((K, L)), np.zeros((K, K)), np.zeros((L, L))
    _averages(system, r, sigma, mean_r, Sigma, t)
    C, m, u = np.empty((K + M, K + M)), np.zeros(K + M), np.empty(K + M)
    for k in range(K):
        u[k] = v[k]
    for a in range(M):
        u[K + a] = -system.teacher_weights[a]
    drift, tilt, pull = np.zeros((K, K)), np.zeros((K, K)), np.zeros((K, L))
    noise, tilted_noise = np.zeros((K, K)), np.zeros((K, K))
    A, H, G, D = np.empty((K, K + M)), np.empty((K, K)), np.empty(K), np.empty(K)
    dOmega[:] = 0.0
    dv[:] = 0.0
    error = 0.0
    for q in range(system.chance.size):
        p, b, s = system.chance[q], system.slope[q], system.scale[q]
        fields(system, q, Omega, mean_r, Sigma, t, C, m)
        error += p * expectations(system.kind, K, C, m, u, system.rule, A, H, G, D)
        for k in range(K):
            dv[k] -= eta_v * p * D[k]
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
                dOmega[k, j] += p * (eta * eta * system.square[q] * H[k, j] - eta * change)
    _at_nodes(system, r, sigma, drift, tilt, pull, noise, tilted_noise, dr, dsigma)
    return error


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _averages(system, r, sigma, mean_r, Sigma, t):  # type: ignore[no-untyped-def]
    """Add up averages over the spectrum."""
    K, L = system.students, system.t.shape[1]
    for i in range(system.rho.size):
        w = system.weight[i]
        for k in range(K):
            for a in range(L):
                mean_r[k, a] += w * r[i, k, a]
            for j in range(K):
                Sigma[k, j] += w * sigma[i, k, j]
        for a in range(L):
            for c in range(L):
                t[a, c] += w * system.t[i, a, c]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fields(system, q, Omega, mean_r, Sigma, t, C, m):  # type: ignore[no-untyped-def]
    """Write covariance and mean of the fields (lambda, nu) in component q."""
    K, M = system.students, system.teachers
    b, s, column = system.slope[q], system.scale[q], system.column[q]
    for k in range(K):
        for j in range(K):
            C[k, j] = system.rest[q] * Omega[k, j] + b * b * Sigma[k, j]
        for a in range(M):
            C[k, K + a] = C[K + a, k] = b * s * mean_r[k, a]
    for a in range(M):
        for c in range(M):
            C[K + a, K + c] = s * s * t[a, c]
    if column >= 0:
        for k in range(K):
            m[k] = b / s * mean_r[k, column]
        for a in range(M):
            m[K + a] = t[a, column]
    else:
        m[:] = 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _at_nodes(system, r, sigma, drift, tilt, pull, noise, tilted_noise, dr, dsigma):  # type: ignore[no-untyped-def]
    """Write the rates of r and sigma at all nodes."""
    K, L, eta = system.students, system.t.shape[1], system.rates[0]
    speed = eta / system.aspect_ratio
    total, towards = np.empty((K, K)), np.empty((K, K))
    for i in range(system.rho.size):
        rho = system.rho[i]
        for k in range(K):
            for j in range(K):
                total[k, j] = drift[k, j] + rho * tilt[k, j]
        for k in range(K):
            for a in range(L):
                change = 0.0
                for j in range(K):
                    change += total[k, j] * r[i, j, a]
                for c in range(L):
                    change += rho * pull[k, c] * system.t[i, c, a]
                dr[i, k, a] = -speed * change
            for j in range(K):
                change = 0.0
                for x in range(K):
                    change += total[k, x] * sigma[i, x, j]
                for c in range(L):
                    change += rho * pull[k, c] * r[i, j, c]
                towards[k, j] = change
        for k in range(K):
            for j in range(K):
                spread = rho * noise[k, j] + rho * rho * tilted_noise[k, j]
                dsigma[i, k, j] = eta * eta * spread - speed * (towards[k, j] + towards[j, k])
