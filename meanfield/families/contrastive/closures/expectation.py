"""Averages over (Theta1, Theta2) from which g and Lambda are made, for compiled code, at any overlaps.

With s_l = sigma(Theta_l) - <sigma(Theta_l)> if outputs are centred, else sigma(Theta_l), and p_l and D as in `closure`,
they are <D^2(s1 s2)>, <s1^2 p2^2>, <s2^2 p1^2>, <s1 s2 p1 p2> and <c_k D(s1 s2)>; if outputs are centred, also
<s1^2><p2^2>, <s2^2><p1^2> and <s1 s2><p1 p2>, which batches add, then <sigma(Theta1)> and <sigma(Theta2)>, and last the
size of the outputs, which says how many digits these two need.

With one feature they are functions of one variable and come from a table wherever it reaches. The mean outputs of
polynomial activations have a closed form.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from meanfield.families.contrastive.closures.averages import averages
from meanfield.families.contrastive.closures.brackets import DIFFUSION_ROWS
from meanfield.families.contrastive.closures.mixture import Mixture
from meanfield.families.contrastive.closures.polynomial_means import (
    PolynomialMeans,
    mean_of_polynomial,
    no_polynomial,
)
from meanfield.families.contrastive.closures.row_moments import RowMoments, no_moments
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.piecewise import Table, interpolate, panel_of

DRIFT_AND_DIFFUSION = 4
"""Number of averages that precede <c_k D(s1 s2)>."""

BATCH = 3
"""Number of averages that batch centring adds behind <c_k D(s1 s2)>."""

UNCENTRED_ROWS = 5
"""Number of rows of the table if outputs are not centred."""

OUTPUTS = tuple(6 + DIFFUSION_ROWS.index(name) for name in ("s1", "s2"))
"""Indices of the rows of the outputs sigma in the table of a centred problem."""


class Expectation(NamedTuple):
    """Data of averages at any overlaps q, for compiled code.

    Parameters
    ----------
    table : Table
        Products of sigma and sigma' of both views as functions of B.
    outputs : Table
        Only sigma of both views; without rows if outputs are not centred.
    mixture : Mixture
        The law of the hidden variables.
    overlap : Table
        The averages as functions of arcsin q, if there is one feature.
    reach : float
        Largest |q| in that table; 0 if there is none.
    polynomial : PolynomialMeans
        The outputs alone, where sigma is a polynomial and outputs are centred.
    moments : RowMoments
        All rows, where sigma is a polynomial and there are several features.
    """

    table: Table
    outputs: Table
    mixture: Mixture
    overlap: Table
    reach: float
    polynomial: PolynomialMeans
    moments: RowMoments


def no_expectation() -> Expectation:
    """Placeholder for compiled code that takes an expectation and does not use it."""
    none, empty = np.empty(0), np.empty((0, 0))
    table = Table(none, none, none, empty, np.empty((0, 0, 0)), none, empty)
    mixture = Mixture(none, empty, empty, none, empty, empty, 1.0)
    return Expectation(table, table, mixture, table, 0.0, no_polynomial(0), no_moments())


@numba.njit(cache=True, nogil=True, error_model="numpy")
def mean_outputs(expectation, q):  # type: ignore[no-untyped-def]
    """<sigma(Theta1)> and <sigma(Theta2)>; the expectation must be that of a centred problem."""
    if expectation.polynomial.coefficient.size > 0:
        means = expectation.polynomial
        return mean_of_polynomial(means, q, means.noise[0]), mean_of_polynomial(means, q, means.noise[1])
    if is_tabulated(expectation, q):
        result = interpolated(expectation, q)
        first = DRIFT_AND_DIFFUSION + 1 + BATCH
        return result[first], result[first + 1]
    rows = call(averages, expectation.outputs, expectation.mixture, q, np.empty((2, 1)))
    return rows[0, 0], rows[1, 0]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def is_tabulated(expectation, q):  # type: ignore[no-untyped-def]
    """Whether the averages come from the table of one feature."""
    return q.size == 1 and abs(q[0]) < expectation.reach


@numba.njit(cache=True, nogil=True, error_model="numpy")
def interpolated(expectation, q):  # type: ignore[no-untyped-def]
    """All averages of this module, in its order, from the table of one feature."""
    table = expectation.overlap
    angle = math.asin(q[0])
    result = np.empty(table.values.shape[0])
    interpolate(table, panel_of(table, angle), angle, result)
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def averages_at(table, mixture, q):  # type: ignore[no-untyped-def]
    """All averages of this module, in its order, for any number of features."""
    rows = np.empty((table.values.shape[0], 1 + 2 * q.size))
    return from_rows(call(averages, table, mixture, q, rows), q)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def from_rows(rows, q):  # type: ignore[no-untyped-def]
    """All averages of this module from those of the rows of a table; see `averages`."""
    d1 = q.size
    centred = rows.shape[0] > UNCENTRED_ROWS
    last = DRIFT_AND_DIFFUSION + d1
    result = np.empty(last + BATCH + 3 if centred else last)
    if not centred:
        result[0] = rows[1, 0]
        for i in range(1, 4):
            result[i] = rows[1 + i, 0]
        for k in range(d1):
            result[4 + k] = rows[0, 1 + k] + q[k] * rows[1, 1 + d1 + k]
        return result
    (
        s1s1p2p2, s2s2p1p1, s1s2p1p2, s1p2p2, s2p1p1, s1p1p2, s2p1p2, p2p2, p1p1, p1p2, s1, s2, s1s1, s2s2, s1s2
    ) = rows[6:, 0]  # fmt: skip
    result[0] = rows[3, 0] - s2 * rows[4, 0] - s1 * rows[5, 0]
    for k in range(d1):
        m, v = 1 + k, 1 + d1 + k
        direct = rows[0, m] - s2 * rows[1, m] - s1 * rows[2, m]
        by_stein = rows[3, v] - s2 * rows[4, v] - s1 * rows[5, v]
        result[4 + k] = direct + q[k] * by_stein
    result[1] = s1s1p2p2 - 2.0 * s1 * s1p2p2 + s1 * s1 * p2p2
    result[2] = s2s2p1p1 - 2.0 * s2 * s2p1p1 + s2 * s2 * p1p1
    result[3] = s1s2p1p2 - s2 * s1p1p2 - s1 * s2p1p2 + s1 * s2 * p1p2
    result[last] = (s1s1 - s1 * s1) * p2p2
    result[last + 1] = (s2s2 - s2 * s2) * p1p1
    result[last + 2] = (s1s2 - s1 * s2) * p1p2
    result[last + 3] = s1
    result[last + 4] = s2
    result[last + 5] = math.sqrt(max(s1s1, s2s2))
    return result
