"""Expectations for the linear activation, with field means."""

from __future__ import annotations

from meanfield.process import own_numba as numba


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
