"""Triplet, InfoNCE and NT-Xent losses with any number of negatives, from sums over pairs in place of triples.

With e = exp(-r/tau) for negatives, and a = exp(-(r + r0)/tau) for the positive, the loss log(1 + S/a) of S = sum_k e_k
is the integral of e^(-ta) (1 - e^(-tS)) dt/t. H negative samples with k views each are independent, and so are the
views of one of them given what it is. The mean of e^(-tS) is Phi^H with Phi = sum_w p_w phi_w^k, where phi_w is the
mean of e^(-te) over views of the sample w: at a scale t only sums over single views are left. With k = 1 (triplet,
InfoNCE) Phi is the mean over views of all samples, and in NT-Xent k = 2. The loss and its derivatives are

    int psi_z(t) (1 - Phi^H) dt/t,    dL/dr+ = (H/tau) int e^(-ta) Phi^(H-1) sum_w p_w k phi_w^(k-1) chi_w dt/t,
    dL/dr_w = -(H/tau) int te e^(-te) k phi_w^(k-1) Phi^(H-1) psi_z dt/t,

the last for a view of the sample w, times its chance, with the means psi_z of e^(-ta) over positives and chi_w of te
e^(-te): all terms are positive, and nothing cancels. As functions of log t + r/tau these are analytic within pi/2 of
the real line, so that the trapezoidal rule in log t and Chebyshev series in r converge geometrically.

A function that is a Chebyshev series sum_p c_p T_p on each of some intervals has the weighted sum sum_p c_p M_p over
samples, with moments M_p, the weighted sums of T_p. Distances are 0 or more, and intervals are numbered from 0 on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from meanfield.networks.contrast import Contrast
from meanfield.networks.scale_functions import ABOVE, FAR, NEAR, POLYNOMIALS, PULL, STEP, WIDTH, Lattice
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray


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


@dataclass(frozen=True)
class Sums:
    """Sums over positives and negatives of some anchors.

    Parameters
    ----------
    value : ndarray, shape (samples, anchors)
        Mean loss given that the anchor is a view of a sample.
    positive : ndarray, shape (anchors, views)
        Mean derivative by the distance of a positive.
    negative : ndarray, shape (samples, laws, anchors, views)
        Derivative by the distance of all negatives with one of their laws, given the sample of the anchor; any number
        where an anchor is no view of the sample.
    """

    value: FloatArray
    positive: FloatArray
    negative: FloatArray


class Scales:
    """Sums over positives and negatives as integrals over scales.

    Parameters
    ----------
    p : ndarray, shape (samples,)
    chance : ndarray, shape (samples, views)
        Probabilities of views given the sample.
    anchors, outputs : ndarray, shape (views, outputs)
        Outputs of views as anchors and as others.
    reach : float
        Bound of all distances.
    """

    def __init__(
        self,
        contrast: Contrast,
        p: FloatArray,
        chance: FloatArray,
        anchors: FloatArray,
        outputs: FloatArray,
        reach: float,
    ) -> None:
        self._contrast, self._anchors, self._y = contrast, np.ascontiguousarray(anchors), np.ascontiguousarray(outputs)
        self._scale = 0.5 / (contrast.temperature * WIDTH)
        self._positives, self._negatives = _lattices(contrast, reach)
        mixture, own = negative_laws(contrast, p), chance > 0.0
        self._shares, self._count, self._samples = mixture.sum(axis=1), len(mixture), len(p)
        self._first, self._second, self._place = _pairs(self._samples, self._count)
        always = np.ones((1, len(outputs)), dtype=bool)
        if contrast.together == 1:
            asked = own[self._first]
            chance, own = np.concatenate([mixture @ chance, chance]), np.concatenate([always, own])
        else:
            asked = own[self._first] | own[self._second]
            own = np.broadcast_to(always, own.shape).copy()
        self._functions = np.concatenate([always, asked])
        self._laws, self._wanted = np.ascontiguousarray(chance), own

    def of(self, first: int, last: int) -> Sums:
        """Sums of the anchors from `first` to before `last`."""
        from meanfield.networks.scales import moments, values

        laws, views = self._count, len(self._y)
        shape = (last - first, self._negatives.intervals, POLYNOMIALS)
        M = np.zeros((len(self._laws), *shape))
        moments(self._anchors, self._y, self._scale, self._laws, self._wanted, first, M)
        missing, chi = self._negatives.sums(M[:laws].reshape(-1, *shape[1:]), FAR, PULL)
        psi = 1.0 - missing  # where positives and negatives have the same laws and no margin
        if self._contrast.together == 1:
            (psi,) = self._positives.sums(M[laws:].reshape(-1, *shape[1:]), NEAR)
        parts = (x.reshape(-1, shape[0], *x.shape[1:]) for x in (psi, missing, chi))
        value, positive, negative = self._integrated(*parts)
        series = np.concatenate(
            [
                self._positives.series(positive, NEAR),
                self._negatives.series(negative.reshape(-1, *negative.shape[2:]), PULL),
            ]
        )
        found = np.empty((len(self._functions), shape[0], views))
        values(self._anchors, self._y, self._scale, series.reshape(-1, *shape), self._functions, first, found)
        return Sums(value, found[0], found[1:][self._place])

    def _integrated(
        self, psi: FloatArray, missing: FloatArray, chi: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Losses, and the weights of scales in their derivatives by the distances of positives and of negatives.

        Parameters
        ----------
        psi : ndarray, shape (samples, anchors, scales of a group, groups)
        missing : ndarray, shape (laws, anchors, scales of a group, groups)
            What phi misses of 1.
        chi : ndarray, shape (laws, anchors, scales of a group, groups)
        """
        contrast, H, k = self._contrast, self._contrast.each, self._contrast.together
        one_less = k * (1.0 - missing) ** (k - 1)
        of_sample = missing if k == 1 else missing * (2.0 - missing)
        of_all = np.minimum(np.tensordot(self._shares, of_sample, axes=1), 1.0 - 1e-16)
        log_Phi = np.log1p(-of_all)
        others = STEP * contrast.unit * H / contrast.temperature * np.exp((H - 1) * log_Phi)
        value = STEP * contrast.unit * np.einsum("zars,ars->za", psi, -np.expm1(H * log_Phi))
        positive = others * np.tensordot(self._shares, one_less * chi, axes=1)
        return value, positive, -psi[self._first] * (others * one_less)[self._second]


def _pairs(samples: int, laws: int) -> tuple[IntArray, IntArray, IntArray]:
    """Samples of anchors and laws of negatives that have functions, and the functions' places, shape (samples, laws).

    Where each sample is a law, both enter alike, and one order of two samples stands for the other.
    """
    if laws == 1:
        return np.arange(samples), np.zeros(samples, dtype=int), np.arange(samples)[:, None]
    first, second = np.triu_indices(samples)
    place = np.empty((samples, laws), dtype=int)
    place[first, second] = place[second, first] = np.arange(len(first))
    return first, second, place


def negative_laws(contrast: Contrast, p: FloatArray) -> FloatArray:
    """Shares of samples in the laws of negatives: of all samples at once, or of each, shape (laws, samples)."""
    return p[None] if contrast.together == 1 else np.diag(p)


def groups(contrast: Contrast, reach: float) -> float:
    """Number of groups of scales for distances up to `reach`."""
    shift = abs(contrast.shift) / WIDTH
    return reach / (contrast.temperature * WIDTH) + 2.0 + _before(contrast) + shift + ABOVE + 1


def _lattices(contrast: Contrast, reach: float) -> tuple[Lattice, Lattice]:
    """Scales for distances of positives, with the margin, and of negatives."""
    intervals = 1 + int(reach / (contrast.temperature * WIDTH))
    later = math.floor(contrast.shift / WIDTH)
    origin = math.ceil(_before(contrast)) + max(-later, 0)
    count = origin + max(later, 0) + intervals + ABOVE + 1
    positives = Lattice(intervals, origin + later, count, contrast.shift - later * WIDTH)
    return positives, Lattice(intervals, origin, count)


def _before(contrast: Contrast) -> float:
    """Number of groups below all distances, without the margin."""
    # What is left out at small t is exp(-36) = 2e-16.
    return (36.0 + math.log(contrast.each * contrast.together)) / WIDTH
