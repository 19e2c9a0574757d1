"""Rates of change of the order parameters, in compiled code (hidden_manifold.md, sections 2 and 4)."""

from __future__ import annotations

import numpy as np

from meanfield.families.hidden_manifold.expectations.choice import expectations
from meanfield.families.hidden_manifold.order_parameters.system import System
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


@numba.njit(cache=True, nogil=True, error_model="numpy")
def rates(y, system, dy):  # type: ignore[no-untyped-def]
    """Write dy/dt of a state y, and return its generalisation error."""
    components = system.chance.size
    K = system.students
    n = system.students + system.teachers
    C = np.empty((components, n, n))
    m = np.empty((components, n))
    u = np.empty(n)
    A, H = np.empty((components, K, n)), np.empty((components, K, K))
    G, D = np.empty((components, K)), np.empty((components, K))
    call(fields, system, y, C, m, u)
    error, noise = 0.0, system.training[3]
    for q in range(components):
        found = call(expectations, system.kind, K, C[q], m[q], u, noise, system.rule, A[q], H[q], G[q], D[q])
        error += system.chance[q] * found
    call(rates_of_expectations, system, y, C, m, A, H, G, D, dy)
    return error


@numba.njit(cache=True, nogil=True, error_model="numpy")
def rates_of_expectations(system, y, C, m, A, H, G, D, dy):  # type: ignore[no-untyped-def]
    """Write dy/dt of a state from the law of its fields and their expectations in each component.

    The equations are linear in r and sigma at each node but for averages over nodes, the covariances of the fields.
    `drift` is what A of the students does at rho = 0, `tilt` what it adds per rho, `pull` what draws towards columns.

    Parameters
    ----------
    system : System
    y : ndarray, shape (n,)
    C, m : ndarray, shape (components, fields, fields) and (components, fields)
        Covariance and mean of the fields, without means that all inputs of a component have.
    A, H, G, D : ndarray, with a leading dim of components
        See `erf_expectations`.
    dy : ndarray, shape (n,)
    """
    K = system.students
    M = system.teachers
    L = system.t.shape[1]
    nodes = system.rho.size * K * (L + K)  # where Omega begins, and after it v
    eta, eta_v, batch_size, _, weight_decay = system.training
    drift, tilt, pull, noise, tilted_noise = np.zeros((5, K, max(K, L)))
    per_step = eta * eta / batch_size  # products of two samples of a step are smaller by sqrt(N)
    for k in range(K):
        drift[k, k] = system.aspect_ratio * weight_decay
    for i in range(nodes, y.size):
        dy[i] = -(2.0 * eta if i < nodes + K * K else eta_v) * weight_decay * y[i]
    for q in range(system.chance.size):
        p, b, s = system.chance[q], system.slope[q], system.scale[q]
        for k in range(K):
            dy[nodes + K * K + k] -= eta_v * p * D[q, k]
            for a in range(M):
                pull[k, a] += p * b * s * A[q, k, K + a]
            if system.column[q] >= 0:
                pull[k, system.column[q]] += p * b / s * G[q, k]
            for j in range(K):
                drift[k, j] += p * system.rest[q] * system.aspect_ratio * A[q, k, j]
                tilt[k, j] += p * b * b * A[q, k, j]
                noise[k, j] += p * system.rest[q] * H[q, k, j]
                tilted_noise[k, j] += p * b * b / system.aspect_ratio * H[q, k, j]
                change = G[q, k] * m[q, j] + G[q, j] * m[q, k]
                for a in range(K + M):
                    change += A[q, k, a] * C[q, j, a] + A[q, j, a] * C[q, k, a]
                dy[nodes + K * k + j] += p * (per_step * system.variance[q] * H[q, k, j] - eta * change)
    _at_nodes(system, y, drift, tilt, pull, noise, tilted_noise, per_step, dy)


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


Fields = tuple[FloatArray, FloatArray, FloatArray]
"""Covariances and means of the fields in each component, and the second layer."""


def fields_at(system: System, y: FloatArray) -> Fields:
    """Covariances and means of the fields of a state, and the second layer."""
    components, n = len(system.chance), system.students + system.teachers
    found = np.empty((components, n, n)), np.empty((components, n)), np.empty(n)
    fields(system, y, *found)
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fields(system, y, C, m, u):  # type: ignore[no-untyped-def]
    """Write covariance and mean of the fields (lambda, nu) in each component, and the second layer (v, -v_teacher)."""
    K = system.students
    M = system.teachers
    L = system.t.shape[1]
    Omega = system.rho.size * K * (L + K)
    mean_r, Sigma, t = np.zeros((3, K + L, K + L))
    _averages(system, y, mean_r, Sigma, t)
    for k in range(K):
        u[k] = y[Omega + K * K + k]
    for a in range(M):
        u[K + a] = -system.teacher_weights[a]
    for q in range(system.chance.size):
        b, s, column = system.slope[q], system.scale[q], system.column[q]
        for k in range(K):
            for j in range(K):
                C[q, k, j] = system.rest[q] * y[Omega + K * k + j] + b * b * Sigma[k, j]
            for a in range(M):
                C[q, k, K + a] = C[q, K + a, k] = b * s * mean_r[k, a]
            m[q, k] = b / s * mean_r[k, column] if column >= 0 else 0.0
        for a in range(M):
            for c in range(M):
                C[q, K + a, K + c] = s * s * t[a, c]
            m[q, K + a] = t[a, column] if column >= 0 else 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _at_nodes(system, y, drift, tilt, pull, noise, tilted_noise, per_step, dy):  # type: ignore[no-untyped-def]
    """Write the rates of r and sigma at all nodes."""
    K = system.students
    L = system.t.shape[1]
    speed = system.training[0] / system.aspect_ratio
    for i in range(system.rho.size):
        rho = system.rho[i]
        r = i * K * (L + K)
        sigma = i * K * (L + K) + K * L
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
                both = dy[sigma + j * K + k] + dy[sigma + k * K + j] + per_step * spread
                dy[sigma + j * K + k] = dy[sigma + k * K + j] = both
