"""Averages over (Theta1, Theta2) from which g and Lambda are made, at any overlaps.

With s_l = sigma(Theta_l) - <sigma(Theta_l)> if outputs are centred, else sigma(Theta_l), and p_l and D as in `closure`,
they are <D^2(s1 s2)>, <s1^2 p2^2>, <s2^2 p1^2>, <s1 s2 p1 p2> and <c_k D(s1 s2)>; if outputs are centred, also
<s1^2><p2^2>, <s2^2><p1^2> and <s1 s2><p1 p2>, which batches add.

They are combinations of averages of the rows of a table, which one formula makes: of several features in compiled code,
at one q, and of one feature in NumPy, at many q at once.
With one feature all averages are functions of q alone, and tabulated, too. The variable is arcsin q, in which functions
of q and of sqrt(1 - q^2) are both smooth. Where |q| -> 1 they may be singular, since a kinked activation takes an atom
of B on its kink badly; the table ends before that, or earlier if the law of the hidden variable has so many atoms that
it does not pay to resolve them, and beyond its end the averages are evaluated one by one.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures.averages import averages
from meanfield.families.contrastive.closures.mixture import Mixture, reach_of
from meanfield.families.contrastive.closures.one_feature import averages_at_many
from meanfield.families.contrastive.closures.row_moments import RowMoments, no_moments, rows_by_moments
from meanfield.families.contrastive.closures.views import DIFFUSION_ROWS, bracket_table
from meanfield.ingredients.activations import Activation
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.piecewise import Table, tabulate
from meanfield.process import own_numba as numba
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray

DRIFT_AND_DIFFUSION = 4
"""Number of averages that precede <c_k D(s1 s2)>."""

BATCH = 3
"""Number of averages that batch centring adds behind <c_k D(s1 s2)>."""

OUTPUTS = tuple(6 + DIFFUSION_ROWS.index(name) for name in ("s1", "s2", "s1^2", "s2^2"))
"""Indices of the rows of the outputs sigma and of their squares in the table of a centred problem."""


class Expectation(NamedTuple):
    """Data of averages at any overlaps q.

    Parameters
    ----------
    table : Table
        Products of sigma and sigma' of both views as functions of B.
    mixture : Mixture
        The law of the hidden variables.
    moments : RowMoments
        The rows as polynomials, where sigma is one and there are several features.
    """

    table: Table
    mixture: Mixture
    moments: RowMoments


def at_many(expectation: Expectation, q: FloatArray, root: FloatArray | None = None) -> FloatArray:
    """All averages of this module, in its order, for one feature; shape (averages, n) at overlaps q, shape (n,).

    `root` is sqrt(1 - q^2), where it is known to more digits than q has near 1.
    """
    rows = averages_at_many(expectation.table, expectation.mixture, q, root)
    return np.asarray(_from_rows.py_func(rows, q[None]))


def rows_at_many(expectation: Expectation, points: FloatArray) -> FloatArray:
    """Averages of the rows of the table, shape (rows, 1 + 2 d1, points) at points of shape (points, d1)."""
    if points.shape[1] == 1:
        return averages_at_many(expectation.table, expectation.mixture, points[:, 0])
    return np.stack([_rows_at(expectation, q) for q in points], axis=-1)


def averages_of(expectation: Expectation, q: FloatArray) -> FloatArray:
    """All averages of this module, in its order, for any number of features, shape (averages,)."""
    return np.asarray(_from_rows.py_func(rows_at_many(expectation, q[None])[:, :, 0], q))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def averages_at(expectation, q):  # type: ignore[no-untyped-def]
    """All averages of this module, in its order, in compiled code."""
    return _from_rows(_rows_at(expectation, q), q)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _rows_at(expectation, q):  # type: ignore[no-untyped-def]
    if expectation.moments.drift > 0:
        return rows_by_moments(expectation.moments, q)
    rows = np.empty((expectation.table.values.shape[0], 1 + 2 * q.size))
    return call(averages, expectation.table, expectation.mixture, q, rows)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _from_rows(rows, q):  # type: ignore[no-untyped-def]
    """All averages of this module from those of rows; in NumPy also for many points at once, along a last axis.

    Parameters
    ----------
    rows : ndarray, shape (rows, 1 + 2 d1)
        See `averages`.
    q : ndarray, shape (d1,)
    """
    d1 = len(q)
    last = DRIFT_AND_DIFFUSION + d1
    if len(rows) == 5:  # rows of a table whose outputs are not centred
        result = np.empty((last,) + q.shape[1:])  # noqa: RUF005 (numba cannot unpack)
        result[0] = rows[1, 0]
        for i in range(1, DRIFT_AND_DIFFUSION):
            result[i] = rows[1 + i, 0]
        for k in range(d1):
            result[4 + k] = rows[0, 1 + k] + q[k] * rows[1, 1 + d1 + k]
        return result
    result = np.empty((last + BATCH,) + q.shape[1:])  # noqa: RUF005 (the same)
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
    return result


MOST_PANELS = 150
"""Largest number of panels of a table; more take too long to compute."""

GROUPS = (0, 1, 1, 1, 0)
CENTRED_GROUPS = (*GROUPS, 2, 2, 2)
"""Group of each average: those that are added to each other share one, so that only the largest of them needs all
digits."""

Key = tuple[tuple[tuple[int, ...], bytes], ...]


def as_key(mixture: Mixture) -> Key:
    """Mixture as a hashable value: shapes and numbers of its parts."""
    return tuple((np.shape(part), np.asarray(part, dtype=float).tobytes()) for part in mixture)


@lru_cache(maxsize=64)
def overlap_table(
    activation: Activation, noise: tuple[float, float, float], centred: bool, key: Key
) -> tuple[Table, float]:
    """Table of all averages as functions of arcsin q.

    Parameters
    ----------
    activation, noise, centred
        See `bracket_table`.
    key : tuple
        The law of the hidden variable, see `as_key`.

    Returns
    -------
    table : Table
    reach : float
        Largest |q| in the table; 0 if the averages are not resolved anywhere.
    """
    *arrays, fineness = (np.frombuffer(numbers).reshape(shape) for shape, numbers in key)
    mixture = Mixture._make([*arrays, float(fineness)])
    expectation = Expectation(bracket_table(activation, noise, centred, reach_of(mixture)), mixture, no_moments())

    def rows(angles: FloatArray) -> FloatArray:
        found = at_many(expectation, np.sin(angles), np.cos(angles))
        bar.update(angles.size)
        return found

    groups = CENTRED_GROUPS if centred else GROUPS
    with progress_bar(math.inf, "averages over hidden variables", "overlap") as bar:
        for end in (0.01, 0.1, 0.5):  # values of sqrt(1 - q^2) where the table may end
            reach = math.acos(end)
            try:
                overlap = tabulate(rows, (), reach, "the closure", groups=groups, most_panels=MOST_PANELS)
            except InputError:
                continue
            return overlap, math.sin(reach)
    return tabulate(lambda x: np.zeros((len(groups), x.size)), (), 1.0, "nothing"), 0.0
