"""Functions of s - x, of scales s and distances x, and their sums over distances and over scales.

Distances stand in intervals and scales in groups of the same width, so that one table has the values for an interval
and the groups around it, wherever it is. Far below the distance a function is a polynomial in e^(s - x), whose terms
are products: sums over all intervals beyond follow from one another. Far above it a function is constant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from meanfield.typing import FloatArray

WIDTH, POLYNOMIALS = 1.8, 26
"""Width of an interval of distances and of a group of scales, in units of tau, and number of Chebyshev polynomials on
an interval: errors are below 5e-15."""

PER_GROUP = 6
"""Number of scales of a group."""

STEP = WIDTH / PER_GROUP
"""Step of the trapezoidal rule in s: its error is exp(-pi^2/STEP), 5e-15."""

BELOW, ABOVE = 3, 3
"""Numbers of groups below and from the group of an interval on that are in the table: beyond these s - x is less than
-5.4, or more than 3.6, where exp(-e) is 1e-16. Distances with a margin need one more group."""

TERMS = 6
"""Number of terms of the polynomial in e^(s - x) below the table, the constant included: their relative error is
e^(-5.4 5)/720, 3e-15."""

_POINTS = np.asarray(chebyshev.chebpts1(POLYNOMIALS))
_TO_SERIES = np.linalg.inv(chebyshev.chebvander(_POINTS, POLYNOMIALS - 1))
_IN_INTERVAL = WIDTH * (0.5 + 0.5 * _POINTS)
_POWER = np.arange(TERMS)
_DECAYS = np.exp(-_POWER * WIDTH)
_EXPONENTIALS = _TO_SERIES @ np.exp(-_POWER * _IN_INTERVAL[:, None])
_OF_EXPONENTIAL = np.array([(-1.0) ** n / math.factorial(n) for n in range(TERMS)])


class Profile(NamedTuple):
    """Function of e = exp(s - x).

    Parameters
    ----------
    terms : ndarray, shape (TERMS,)
        Its Taylor coefficients.
    above : float
        Its limit for large e.
    """

    value: Callable[[FloatArray], FloatArray]
    terms: FloatArray
    above: float


NEAR = Profile(lambda e: np.exp(-e), _OF_EXPONENTIAL, 0.0)
FAR = Profile(lambda e: -np.expm1(-e), np.where(_POWER > 0, -_OF_EXPONENTIAL, 0.0), 1.0)
PULL = Profile(lambda e: e * np.exp(-e), -_POWER * _OF_EXPONENTIAL, 0.0)


@dataclass(frozen=True)
class Lattice:
    """Intervals of distances, and groups of scales.

    Parameters
    ----------
    origin : int
        Group of scales that starts at the distance 0, at least `BELOW` + 1.
    groups : int
        At least `origin` + `intervals` + `ABOVE` + 1.
    margin : float
        What is added to all distances, from 0 to `WIDTH`.
    """

    intervals: int
    origin: int
    groups: int
    margin: float = 0.0

    def sums(self, moments: FloatArray, *profiles: Profile) -> list[FloatArray]:
        """Sums over distances at all scales, shape (rows, PER_GROUP, groups) for each function.

        Parameters
        ----------
        moments : ndarray, shape (rows, intervals, POLYNOMIALS)
            Sums of Chebyshev polynomials.
        """
        rows, count, above = len(moments), self.intervals, self.origin + self._above
        found, beyond = [], self._beyond(moments)
        for profile in profiles:
            out, table = np.zeros((rows, PER_GROUP, self.groups)), self._table(profile)
            for some in self._blocks(rows):
                around = (table.T @ moments[some].reshape(-1, POLYNOMIALS).T).reshape(table.shape[1], -1, count)
                for part, (first, place) in zip(around, self._places, strict=True):
                    out[some, place, first : first + count] += part
            below = self._products(profile).T @ beyond.reshape(-1, TERMS).T
            out[:, :, : len(beyond)] += np.moveaxis(below.reshape(PER_GROUP, len(beyond), rows), -1, 0)
            if profile.above:
                before = profile.above * np.cumsum(moments[:, None, :, 0], axis=2)
                out[:, :, above : above + count] += before
                out[:, :, above + count :] += before[:, :, -1:]
            found.append(out)
        return found

    def series(self, weights: FloatArray, profile: Profile) -> FloatArray:
        """Chebyshev series of sums over scales of a function that vanishes above.

        Parameters
        ----------
        weights : ndarray, shape (rows, PER_GROUP, groups)

        Returns
        -------
        ndarray, shape (rows, intervals, POLYNOMIALS)
        """
        rows, count = len(weights), self.intervals
        below = np.moveaxis(self._products(profile) @ weights[:, :, : self._reach], -1, 0)
        beyond, table = _accumulated(below)[-count:], self._table(profile)
        found = np.empty((rows, count, POLYNOMIALS))
        for some in self._blocks(rows):
            around = np.stack([weights[some, place, first : first + count] for first, place in self._places])
            part = around.reshape(len(around), -1).T @ table.T
            part += np.swapaxes(beyond[:, some], 0, 1).reshape(-1, TERMS) @ _EXPONENTIALS.T
            found[some] = part.reshape(-1, count, POLYNOMIALS)
        return found

    def _blocks(self, rows: int) -> list[slice]:
        """Blocks of rows whose tables fit into the caches."""
        step = max(1, (1 << 17) // (self.intervals * len(self._places)))  # they fit into the caches
        return [slice(first, first + step) for first in range(0, rows, step)]

    @property
    def _places(self) -> list[tuple[int, int]]:
        """Groups and places in them of the scales of the table, for the first interval."""
        first = self.origin - BELOW
        return [(first + group, place) for group in range(BELOW + self._above) for place in range(PER_GROUP)]

    @property
    def _above(self) -> int:
        """Number of groups of the table from the group of an interval on."""
        return ABOVE + (self.margin > 0.0)

    @property
    def _reach(self) -> int:
        """Number of groups that are below the table of some interval."""
        return self.origin - BELOW - 1 + self.intervals

    def _beyond(self, moments: FloatArray) -> FloatArray:
        """Sums of exp(-n x) over the intervals whose table a group is below, relative to the first of these.

        The shape is (groups, rows, TERMS).
        """
        parts = np.zeros((self._reach, len(moments), TERMS))
        of_intervals = (moments.reshape(-1, POLYNOMIALS) @ _EXPONENTIALS).reshape(*moments.shape[:2], -1)
        parts[-self.intervals :] = np.swapaxes(of_intervals, 0, 1)
        return _accumulated(parts[::-1])[::-1]

    def _products(self, profile: Profile) -> FloatArray:
        """Terms of a function at the scales of the last group below the table, shape (TERMS, PER_GROUP)."""
        s = STEP * np.arange(PER_GROUP) - WIDTH * (BELOW + 1) - self.margin
        return profile.terms[:, None] * np.exp(_POWER[:, None] * s)

    def _table(self, profile: Profile) -> FloatArray:
        """Chebyshev series of a function on an interval, shape (POLYNOMIALS, scales around it)."""
        return _TO_SERIES @ profile.value(self._around)

    @cached_property
    def _around(self) -> FloatArray:
        """Values of exp(s - x) at points of an interval, shape (POLYNOMIALS, scales around it)."""
        s = STEP * np.arange(-PER_GROUP * BELOW, PER_GROUP * self._above) - self.margin
        return np.exp(s - _IN_INTERVAL[:, None])


def _accumulated(parts: FloatArray) -> FloatArray:
    """Sums over all parts so far, each of which decays from one to the next by the factors `_DECAYS`."""
    found = np.array(parts, order="C")
    for before, now in itertools.pairwise(found):
        now += _DECAYS * before
    return found
