"""Places where a function of rows, its slope or its curvature jumps, found by scans along one slot at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from meanfield.numerics.compiled.row_functions import RowFunction
from meanfield.numerics.gaussian_moments.kernel import Law
from meanfield.numerics.gaussian_moments.rules import REACH, Kinks
from meanfield.typing import FloatArray

CELLS = 64
"""Number of cells of a scan, each twice as wide as their distance."""

STEPS = 16
"""Number of steps in a cell; about its largest third difference a quarter of it becomes the next cell."""

JUDGED_AT = (8, 8, 4)
"""Zoom at which a jump of the function, of its slope and of its curvature is told: steps are 5e-7 standard deviations,
and 1e-4 for curvatures, which rounding would hide."""

LEAST = (1e-6, 1e-6, 1e-5)
"""Jumps that count, in units of the largest value and of standard deviations: ten times their rounding."""

NEAR = (1e-4, 1e-4, 1e-2)
"""Distance from a declared kink, in standard deviations, within which a place is this kink."""


class Rough(NamedTuple):
    """Place at which a derivative of a function jumps.

    Parameters
    ----------
    row : ndarray, shape (width,)
    slot : int
        The scanned slot.
    derivative : int
        0 where the function itself jumps, 1 where its slope does, 2 where its curvature does.
    low, high : float
        Values of the derivative on both sides; `high` is infinite where the function is not finite.
    """

    row: FloatArray
    slot: int
    derivative: int
    low: float
    high: float


def find_rough(function: RowFunction, constants: FloatArray, laws: Sequence[Law], kinks: Kinks) -> Rough | None:
    """The undeclared place with the largest jump of the lowest derivative; None if scans find none.

    What is narrower than 1e-5 standard deviations counts as a jump.
    """
    found = [rough for law in laws for rough in _along_slots(function, constants, law, kinks)]
    return max(found, key=lambda rough: (-rough.derivative, abs(rough.high - rough.low)), default=None)


def _along_slots(function: RowFunction, constants: FloatArray, law: Law, kinks: Kinks) -> Iterator[Rough]:
    rank = law.factor.shape[1]
    # Number of random rows of a law through which scans go.
    rows = law.mean + np.random.default_rng(0).standard_normal((8, rank)) @ law.factor.T
    for slot, deviation in enumerate(np.sqrt((law.factor**2).sum(axis=1))):
        if deviation > 0.0:
            places = law.mean[slot] + deviation * np.linspace(-REACH, REACH, CELLS, endpoint=False)
            yield from _along(function, constants, np.repeat(rows, CELLS, axis=0), slot, places, deviation, kinks)


def _along(
    function: RowFunction,
    constants: FloatArray,
    rows: FloatArray,
    slot: int,
    places: FloatArray,
    deviation: float,
    kinks: Kinks,
) -> Iterator[Rough]:
    """Rough places in cells of scans of one slot, one cell for each row."""
    step = 2.0 * (places[1] - places[0]) / STEPS
    start, cells = np.tile(places, len(rows) // CELLS), np.arange(len(rows))
    whole = np.repeat(rows, STEPS + 1, axis=0)
    sizes: list[FloatArray] = []  # of jumps, shape (derivatives, cells), in each zoom
    scale: FloatArray = np.empty(0)
    for zoom in range(max(JUDGED_AT) + 1):
        whole[:, slot] = (start[:, None] + step * np.arange(STEPS + 1)).ravel()
        values = function(whole, constants).reshape(len(rows), STEPS + 1, -1)
        gaps = np.argwhere(~np.isfinite(values).all(axis=2))
        if len(gaps):
            row = rows[gaps[0, 0]].copy()
            row[slot] = start[gaps[0, 0]] + step * gaps[0, 1]
            yield Rough(row, slot, 0, 0.0, np.inf)
            return
        if zoom == 0:
            scale = np.maximum(np.abs(values).max(axis=(0, 1)), 1e-300)
        third = np.abs(np.diff(values, n=3, axis=1)) / scale
        where, output = np.divmod(third.reshape(len(rows), -1).argmax(axis=1), values.shape[2])
        curve = values[cells, :, output] / scale[output, None]
        derivatives = [np.diff(curve, n=n, axis=1) / (step / deviation) ** n for n in range(3)]
        sizes.append(np.array([np.abs(np.diff(each, axis=1)).max(axis=1) for each in derivatives]))
        for n in np.flatnonzero(np.equal(JUDGED_AT, zoom)):
            lasts = sizes[-1] > 0.5 * sizes[-3]  # those of smooth functions are 16 times smaller
            for i in np.flatnonzero(lasts[n] & (sizes[-1][n] > LEAST[n]) & ~lasts[:n].any(axis=0)):
                at = int(np.abs(np.diff(derivatives[n][i])).argmax())
                row = rows[i].copy()
                row[slot] = start[i] + (at + 0.5 * (n + 1)) * step
                if not _is_declared(row, slot, NEAR[n] * deviation, kinks):
                    sides = derivatives[n][i, np.clip([at - n, at + 1 + n], 0, STEPS - n)]  # away from the place itself
                    yield Rough(row, slot, int(n), *(sides * scale[output[i]] / deviation**n).tolist())
        start, step = start + np.clip(where, 0, STEPS - 4) * step, 0.25 * step


def _is_declared(row: FloatArray, slot: int, near: float, kinks: Kinks) -> bool:
    apart = np.abs(kinks.normals @ row - kinks.levels)
    return bool((apart <= near * np.abs(kinks.normals[:, slot])).any())
