"""Law of the tilt s = u.g, a sum of independent coordinates, with E[u|s]: nodes on a line in place of a million in u.

Averages over u of what depends on s alone need the density of s and E[u|s] times it. They are convolved one coordinate
after the other, the one with the largest part in s first, on panels that end at all sums of points where densities are
not smooth. So they are exact to about 1e-12, also for averages over w that pass through narrow layers in s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from meanfield.numerics.fine_rules import ContinuousLaw
from meanfield.typing import FloatArray

WIDEST_PANEL = 4.0
"""Largest width of panels, in standard deviations of the coordinate that is added."""

NODES = 16
"""Nodes of a panel, and coefficients of its polynomials."""

TAIL = 2.0
"""Factor by which the range of a law with a tail is wider than its `support`. The variance beyond is below 1e-20, and
where a weak prior lets weights grow from some u within the `support` on, less than 1e-9 of E[w^2] lies there."""

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)
_TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(_POINTS, NODES - 1))


class _Sum(NamedTuple):
    """Density of a sum of coordinates, and E[u_k|s] times it, as polynomials on panels.

    Parameters
    ----------
    ends : ndarray, shape (panels + 1,)
    series : ndarray, shape (panels, NODES, 1 + coordinates)
        Chebyshev coefficients.
    """

    ends: FloatArray
    series: FloatArray

    @classmethod
    def of(cls, ends: FloatArray, values: FloatArray) -> _Sum:
        """Polynomials from values at the nodes of panels."""
        return cls(ends, np.einsum("kn,pnf->pkf", _TO_COEFFICIENTS, values.reshape(len(ends) - 1, NODES, -1)))

    def __call__(self, s: FloatArray) -> FloatArray:
        """Values, shape (len(s), 1 + coordinates); 0 beyond the ends."""
        panel = np.clip(np.searchsorted(self.ends, s, side="right") - 1, 0, len(self.ends) - 2)
        low, high = self.ends[panel], self.ends[panel + 1]
        x = (2.0 * s - low - high) / (high - low)
        values = np.einsum("nk,nkf->nf", chebyshev.chebvander(x, NODES - 1), self.series[panel])
        return np.where((np.abs(x) <= 1.0 + 1e-9)[:, None], values, 0.0)


def tilt_rule(
    laws: Sequence[ContinuousLaw], gains: FloatArray, places: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes in s, their probabilities, and these times E[u|s].

    Parameters
    ----------
    laws : sequence of ContinuousLaw
        Laws with mean 0 and variance 1.
    gains : ndarray, shape (coordinates,)
        Factors of the coordinates in s.
    places : ndarray
        Values of s at which panels end, too: those of layers.

    Returns
    -------
    s, weight : ndarray, shape (nodes,)
    mean : ndarray, shape (nodes, coordinates)
    """
    # Smaller parts move no average.
    order = [k for k in np.argsort(-np.abs(gains)) if abs(gains[k]) > 1e-12 * np.abs(gains).max()]
    if not order:
        return np.zeros(1), np.ones(1), np.zeros((1, len(gains)))
    ends, found = np.zeros(1), None
    for k in order:
        corners = gains[k] * panel_ends(laws[k], WIDEST_PANEL)
        ends = _distinct(np.concatenate([ends, (ends[:, None] + corners).ravel()]))
        if k == order[-1]:
            ends = _distinct(np.concatenate([ends, places[np.abs(places) < ends[-1]]]))
        s = _nodes(ends)
        values = _scaled(laws[k], gains[k], s) if found is None else _added(found, laws[k], gains[k], s)
        found = _Sum.of(ends, values)
    weight = (0.5 * np.diff(ends)[:, None] * _WEIGHTS).ravel()
    mean = np.zeros((len(s), len(gains)))
    mean[:, order] = weight[:, None] * values[:, 1:]
    total = weight @ values[:, 0]
    return s, weight * values[:, 0] / total, mean / total


def panel_ends(law: ContinuousLaw, widest: float, places: Sequence[float] | FloatArray = ()) -> FloatArray:
    """Ends of panels of a coordinate: its corners, those places within its range, and others between them."""
    corners, inner = range_of(law), np.asarray(places)
    low, high = corners[0], corners[-1]
    even = np.linspace(low, high, int(np.ceil((high - low) / widest)) + 1)
    return np.unique([*corners, *even, *inner[(inner > low) & (inner < high)]])


def _distinct(ends: FloatArray) -> FloatArray:
    """Increasing ends without those that differ by rounding."""
    ends = np.sort(ends)
    # Narrower panels are rounding.
    apart: FloatArray = ends[np.append(True, np.diff(ends) > 1e-13 * np.abs(ends).max())]
    return apart


def _nodes(ends: FloatArray) -> FloatArray:
    return np.asarray((ends[:-1, None] + 0.5 * np.diff(ends)[:, None] * (_POINTS + 1.0)).ravel())


def _scaled(law: ContinuousLaw, gain: float, s: FloatArray) -> FloatArray:
    """Density of gain times a coordinate, and its value times it."""
    x = s / gain
    density = law.density(x) / abs(gain)
    return np.column_stack([density, x * density])


def _added(before: _Sum, law: ContinuousLaw, gain: float, s: FloatArray) -> FloatArray:
    """Values of a sum with one coordinate more."""
    values = np.empty((len(s), before.series.shape[2] + 1))
    for i, each in enumerate(s):
        ends = panel_ends(law, WIDEST_PANEL, (each - before.ends) / gain)
        x = _nodes(ends)
        weight = (0.5 * np.diff(ends)[:, None] * _WEIGHTS).ravel() * law.density(x)
        there = before(each - gain * x)
        values[i, :-1], values[i, -1] = weight @ there, (weight * x) @ there[:, 0]
    return values


def range_of(law: ContinuousLaw) -> FloatArray:
    """Ends and corners of a law with a density, as far out as it has any variance."""
    corners = np.array(law.support)
    if has_tails(law):
        corners[[0, -1]] *= TAIL
    return corners


def has_tails(law: ContinuousLaw) -> bool:
    """Whether a law goes on beyond its `support`, where it has hardly any probability."""
    return bool(law.density(np.array(law.support[-1:]))[0] < 1e-8)  # at the end of a `support` that cuts a tail
