"""Which slots of a function act together: sums of terms that read two slots each are found by differences of values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from meanfield.numerics.compiled.row_functions import RowFunction
from meanfield.numerics.gaussian_moments.kernel import Law
from meanfield.numerics.gaussian_moments.rules import CELLS, REACH
from meanfield.numerics.gaussian_moments.separation import Parts, Separated, separate
from meanfield.typing import BoolArray, FloatArray

ROWS = 24
"""Number of pairs of random rows of a law between which slots are exchanged."""

SPREAD = 1.5
"""Spread of these rows in units of that of the law."""

FINE = 64
"""Order of tables with which sums of terms are tried."""


def find_parts(
    function: RowFunction, constants: FloatArray, laws: Sequence[Law], counted: int
) -> tuple[Parts, float] | None:
    """Parts of a function that is a sum of terms of two slots each, and their error relative to its largest value.

    Parameters
    ----------
    function : RowFunction
    constants : ndarray
    laws : sequence of Law
    counted : int
        Number of the first outputs of which averages of products are wanted.

    Returns
    -------
    Parts and float, or None
        None if the function is no such sum, or of too many parts or products.
    """
    together = np.zeros((function.outputs, function.width, function.width), dtype=bool)
    for law in laws:
        found = _interactions(function, constants, law)
        if found is None:
            return None
        together |= found
    parts = _parts_of(together, np.any([law.factor.any(axis=1) for law in laws], axis=0), counted)
    if parts is None:
        return None
    error = max(_misfit(function, constants, law, parts) for law in laws)
    # Largest error of a sum of terms, relative to the largest value.
    return (parts, error) if error <= 1e-8 else None


def _rows(law: Law, count: int, seed: int) -> FloatArray:
    """Rows with independent slots, shape (count, width)."""
    z = SPREAD * np.random.default_rng(seed).standard_normal((count, len(law.mean)))
    return np.asarray(law.mean + np.clip(z, -REACH, REACH) * np.linalg.norm(law.factor, axis=1))


def _interactions(function: RowFunction, constants: FloatArray, law: Law) -> BoolArray | None:
    """Which slots act together on each output, shape (outputs, width, width); None if a value is not finite."""
    slots = np.flatnonzero(law.factor.any(axis=1))
    start, end = _rows(law, ROWS, 0), _rows(law, ROWS, 1)
    sets = [(), *((a,) for a in slots), *combinations(slots, 2)]
    rows = np.repeat(start[None], len(sets), axis=0)
    for number, moved in enumerate(sets):
        rows[number, :, moved] = end[:, moved].T
    values = function(rows.reshape(-1, function.width), constants).reshape(len(sets), ROWS, -1)
    if not np.isfinite(values).all():
        return None
    largest = np.abs(values).max(axis=(0, 1))
    at = dict(zip(sets, values, strict=True))
    found = np.zeros((function.outputs, function.width, function.width), dtype=bool)
    for a, b in combinations(slots, 2):
        difference = np.abs(at[a, b] - at[a,] - at[b,] + at[()]).max(axis=0)
        # Mixed difference of two slots that counts, relative to the largest value: ten thousand times its rounding.
        found[:, a, b] = found[:, b, a] = difference > 1e-10 * largest
    return found


def _parts_of(together: BoolArray, varies: BoolArray, counted: int) -> Parts | None:
    """Parts with hubs that take part in all interactions; None if there are too many."""
    output, hub, partners, whole = [], [], [], []
    for number, pairs in enumerate(together):
        left, first = pairs.copy(), len(output)
        while left.any():
            most = int(left.sum(axis=0).argmax())
            partners.append(varies & (np.arange(len(varies)) != most) if len(output) == first else left[most].copy())
            output.append(number)
            hub.append(most)
            left[most] = left[:, most] = False
        if len(output) == first:
            partners.append(varies)
            output.append(number)
            hub.append(-1)
        # Largest number of hubs of an output whose squares are wanted: each two of them take a quadrature of their own.
        if number < counted and len(output) - first > 2:
            return None
        whole += [number == first for number in range(first, len(output))]
    return Parts(np.array(output), np.array(hub), np.array(partners), np.array(whole), counted)


def _misfit(function: RowFunction, constants: FloatArray, law: Law, parts: Parts) -> float:
    """Largest error of a sum of terms at random rows, relative to the largest value of each output."""
    sizes = np.linalg.norm(law.factor, axis=1)
    given = (function.address, function.outputs, constants, law.mean, sizes)
    own = separate(given, parts, REACH, CELLS * FINE)
    rows = _rows(law, 8 * ROWS, 2)
    wanted = function(rows, constants)
    error = np.abs(_sum_of(own, parts, (rows - law.mean) / np.maximum(sizes, 1e-300), wanted.shape[1]) - wanted)
    largest = np.abs(wanted).max(axis=0)
    return float((error.max(axis=0) / np.maximum(largest, 1e-300)).max()) if np.isfinite(error).all() else np.inf


def _sum_of(own: Separated, parts: Parts, x: FloatArray, outputs: int) -> FloatArray:
    """Values of all parts at places in standard deviations, shape (rows, outputs)."""
    cells = own.tables.shape[1]
    place = np.clip(0.5 * (x / REACH + 1.0) * cells, 0.0, cells * (1.0 - 1e-15))
    cell = place.astype(int)
    powers = (place - cell)[..., None] ** np.arange(own.tables.shape[2])
    found = np.zeros((len(x), outputs))
    for j, hub in enumerate(parts.hub):
        for r in range(own.rank[j]):
            inner = np.full(len(x), own.constant[j, r])
            for c, count in enumerate(own.functions):
                for b in range(count):
                    table = own.tables[own.of_slot[c, b]]
                    inner += own.share[j, r, c, b] * (table[cell[:, c]] * powers[:, c]).sum(axis=1)
            height = (own.tables[own.of_hub[j, r]][cell[:, hub]] * powers[:, hub]).sum(axis=1)
            found[:, parts.output[j]] += height * inner
    return found
