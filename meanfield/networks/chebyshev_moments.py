"""Sums over samples of functions of distances, from Chebyshev moments of distances in intervals; compiled loops.

A function that is a Chebyshev series sum_p c_p T_p on each of some intervals has the weighted sum sum_p c_p M_p over
samples, with moments M_p, the weighted sums of T_p. Distances are 0 or more, and intervals are numbered from 0 on.
"""

from __future__ import annotations

import numpy as np

from meanfield.process import own_numba as numba


@numba.njit(inline="always")
def _polynomials(anchors, a, y, u, scale, last, T):  # type: ignore[no-untyped-def]
    """Interval of the distance of an anchor and a sample, and Chebyshev polynomials there, written to T."""
    r = 0.0
    for j in range(y.shape[1]):
        gap = anchors[a, j] - y[u, j]
        r += gap * gap
    place = scale * r
    interval = min(int(place), last)
    x = 2.0 * (place - interval) - 1.0
    T[0] = 1.0
    T[1] = x
    for p in range(2, len(T)):
        T[p] = 2.0 * x * T[p - 1] - T[p - 2]
    return interval


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def moments(anchors, y, scale, weight, wanted, first, out):  # type: ignore[no-untyped-def]
    """Moments of distances from anchors `first`, `first` + 1, ... to all samples.

    Parameters
    ----------
    anchors, y : ndarray, shape (samples, outputs)
        Samples as anchors, which may stand elsewhere, and as others.
    scale : float
        Number of intervals by squared distance.
    weight : ndarray, shape (laws, samples)
    wanted : ndarray of bool, shape (laws, samples)
        Whether moments of a law are asked for from an anchor.
    first : int
    out : ndarray, shape (laws, some anchors, intervals, polynomials)
        Added to.
    """
    T = np.empty(out.shape[3])
    for i in range(out.shape[1]):
        for u in range(len(y)):
            interval = _polynomials(anchors, first + i, y, u, scale, out.shape[2] - 1, T)
            for law in range(len(weight)):
                if wanted[law, first + i]:
                    w = weight[law, u]
                    for p in range(len(T)):
                        out[law, i, interval, p] += w * T[p]


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def values(anchors, y, scale, series, wanted, first, out):  # type: ignore[no-untyped-def]
    """Values of functions of distances from anchors `first`, `first` + 1, ... to all samples.

    Parameters
    ----------
    anchors, y, scale, wanted, first
        See `moments`.
    series : ndarray, shape (functions, some anchors, intervals, polynomials)
    out : ndarray, shape (functions, some anchors, samples)
        Written to; 0 where a function is not wanted.
    """
    T = np.empty(series.shape[3])
    for i in range(out.shape[1]):
        for u in range(len(y)):
            interval = _polynomials(anchors, first + i, y, u, scale, series.shape[2] - 1, T)
            for k in range(len(series)):
                total = 0.0
                if wanted[k, first + i]:
                    for p in range(len(T)):
                        total += series[k, i, interval, p] * T[p]
                out[k, i, u] = total
