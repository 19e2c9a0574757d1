"""Triplet and InfoNCE losses with any number of negatives, from sums over pairs in place of triples.

With e = exp(-r/tau) for negatives, and a = exp(-(r + r0)/tau) for the positive, the loss log(1 + S/a) of S = sum_k e_k
is the integral of e^(-ta) (1 - e^(-tS)) dt/t. Negatives are independent, so that the mean of e^(-tS) is the power H of
that of e^(-te), and at a scale t only sums over single views are left. The loss and its derivatives are

    int psi(t) (1 - phi(t)^H) dt/t,    dL/dr+ = (H/tau) int e^(-ta) phi^(H-1) chi dt/t,
    dL/dr_k = -(1/tau) int te e^(-te) phi^(H-1) psi dt/t,

with the means psi of e^(-ta), phi of e^(-te) and chi of te e^(-te): all terms are positive, and nothing cancels. As
functions of log t + r/tau these are analytic within pi/2 of the real line, so that the trapezoidal rule in log t and
Chebyshev series in r converge geometrically.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from meanfield.networks.contrast import Contrast
from meanfield.typing import FloatArray

WIDTH, POLYNOMIALS = 1.0, 19
"""Width of an interval of distances in units of tau, and number of polynomials on it: errors are below 1e-14."""

STEP = 0.3
"""Step of the trapezoidal rule in log t: its error is exp(-pi^2/STEP), 5e-15."""

DECAY = 36.0
"""Negative exponent of what is left out at small t, and logarithm of that at large t: 2e-16."""

_POINTS = np.asarray(chebyshev.chebpts1(POLYNOMIALS))
_TO_SERIES = np.linalg.inv(chebyshev.chebvander(_POINTS, POLYNOMIALS - 1))


def sizes(contrast: Contrast, reach: float) -> tuple[float, float]:
    """Numbers of Chebyshev polynomials and of scales for distances up to `reach`."""
    R, shift = reach / contrast.temperature, contrast.shift
    last = R + shift + math.log(DECAY)
    return POLYNOMIALS * (1.0 + R / WIDTH), 1.0 + max(last - _first(contrast), 0.0) / STEP


def _first(contrast: Contrast) -> float:
    """Logarithm of the smallest scale."""
    return -DECAY + min(0.0, contrast.shift) - math.log(contrast.each)


@dataclass(frozen=True)
class Sums:
    """Sums over positives and negatives of some anchors.

    Parameters
    ----------
    value : ndarray, shape (anchors, samples)
        Mean loss given that the anchor is a view of a sample.
    positive : ndarray, shape (anchors, views)
        Mean derivative by the distance of a positive.
    negative : ndarray, shape (anchors, samples, views)
        Derivative by the distance of all negatives, given the sample; 0 where an anchor is no view of the sample.
    """

    value: FloatArray
    positive: FloatArray
    negative: FloatArray


class Scales:
    """Sums over positives and negatives as integrals over scales.

    Parameters
    ----------
    contrast : Contrast
    chance : ndarray, shape (samples, views)
        Probabilities of views given the sample.
    alone : ndarray, shape (views,)
    outputs : ndarray, shape (views, outputs)
    reach : float
        Bound of all distances.
    """

    def __init__(
        self, contrast: Contrast, chance: FloatArray, alone: FloatArray, outputs: FloatArray, reach: float
    ) -> None:
        self._contrast, self._y = contrast, np.ascontiguousarray(outputs)
        self._laws = np.ascontiguousarray(np.vstack([alone, chance]))
        tau, shift = contrast.temperature, contrast.shift
        self._intervals = 1 + int(reach / (tau * WIDTH))
        self._scale = 0.5 / (tau * WIDTH)
        count = int(sizes(contrast, reach)[1]) + 1
        s = _first(contrast) + STEP * np.arange(count, dtype=np.float64)
        x = WIDTH * (np.arange(self._intervals)[:, None] + 0.5 + 0.5 * _POINTS)
        self._near = _series(np.exp(-_powers(s - shift, x)))
        t = _powers(s, x)
        self._far, self._pull = _series(-np.expm1(-t)), _series(t * np.exp(-t))

    def of(self, first: int, last: int) -> Sums:
        """Sums of the anchors from `first` to before `last`."""
        from meanfield.networks.chebyshev_moments import moments, values

        contrast, anchors = self._contrast, last - first
        wanted = self._laws > 0.0
        wanted[0] = True
        shape = (anchors, len(self._laws), self._intervals, POLYNOMIALS)
        table = np.zeros(shape)
        moments(self._y, self._scale, self._laws, wanted, first, table)
        M = table.reshape(anchors, len(self._laws), -1)
        psi, missing, chi = M[:, 1:] @ self._near, M[:, 0] @ self._far, M[:, 0] @ self._pull
        missing = np.minimum(missing, 1.0 - 1e-16)  # of 1, which is phi + missing
        H = contrast.each
        log_phi = np.log1p(-missing)
        others = np.exp((H - 1) * log_phi)
        value = STEP * contrast.unit * (psi @ -np.expm1(H * log_phi)[:, :, None])[..., 0]
        slope = STEP * contrast.unit * H / contrast.temperature
        series = np.empty(shape)
        series[:, 0] = (slope * (others * chi) @ self._near.T).reshape(anchors, *shape[2:])
        series[:, 1:] = (-slope * (psi * others[:, None]) @ self._pull.T).reshape(anchors, -1, *shape[2:])
        found = np.empty((*shape[:2], len(self._y)))
        values(self._y, self._scale, series, wanted, first, found)
        return Sums(value, found[:, 0], found[:, 1:])


def _powers(s: FloatArray, x: FloatArray) -> FloatArray:
    """exp(s - x), shape (intervals, points, scales); too large ones as large as matters."""
    return np.asarray(np.exp(np.minimum(s - x[..., None], 700.0)))


def _series(table: FloatArray) -> FloatArray:
    """Chebyshev series from values at points, shape (intervals polynomials, scales)."""
    return np.asarray((_TO_SERIES @ table).reshape(-1, table.shape[-1]))
