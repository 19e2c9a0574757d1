"""Test of runs against a prediction, or of two sets of runs, by random rotations of the runs.

Runs of training are independent, and what they differ in, overlaps at all times as well as distribution functions of
their weights, is Gaussian up to O(1/sqrt(N)). Its covariance, over times and over all weights of a run, which share
the overlap of that run, is unknown, and eight runs cannot estimate it. But rows of independent Gaussian vectors with
mean zero have the same law after any rotation of the rows, whatever their covariance (Langsrud, Statistics and
Computing 15, 53, 2005). So a difference is compared with those that random rotations of the same runs show: such a
test has exactly its false-alarm rate for two runs and more, and for any number of quantities at once.

Distribution functions are taken at a few points, of which W1 and KS are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield.comparison.judgement import FALSE_ALARMS
from meanfield.comparison.sides import beyond_errors
from meanfield.process.progress import counted
from meanfield.results.result import Result
from meanfield.typing import FloatArray, IntArray

ROTATIONS = 4999
"""Number of random rotations: p = 0.05 is then known to 0.003."""

SEED = 0
"""Seed of the rotations, one for all comparisons, so that a p value depends on the results alone. Studies of many
comparisons give each its own, by which the error above averages out."""

MOST_ROWS = 128
"""Largest number of rows that are rotated: more runs are added up in batches, which are runs of a larger N."""

VALUES_AT_ONCE = 2**16
"""Number of rotated values that are worked on at once, few enough for the cache."""

FEWEST_WEIGHTS = 64
"""Least number of weights of all runs together of which distribution functions are judged. Those of fewer are not
Gaussian: of independent weights of a known law 8 % of comparisons differ with 16 weights, 6 % with 32, and 32 % of four
runs of one weight each. Averages over fewer are not, either: moments of a single filter differ in 22 % of comparisons
of 4 runs, in 9 % of 16 and in 6 % of 32. All of them together differ in 6.9 % of 32 runs of one weight, which is too
many, and in 6.0 % of 64 and of 128."""

Measure = Callable[[FloatArray], FloatArray]
"""Size of deviations over the last axis, such as an integral or the largest one."""


class Contrast(NamedTuple):
    """Direction in the space of runs along which a difference of means shows.

    Parameters
    ----------
    direction : ndarray, shape (runs,)
        Unit vector.
    common : ndarray, shape (runs,)
        Unit vector along which an unknown mean of all runs shows; zero if the mean is predicted.
    reach : float
        Component along `direction` of rows whose means differ by one.
    """

    direction: FloatArray
    common: FloatArray
    reach: float

    @property
    def freedom(self) -> int:
        """Number of independent directions in which runs scatter and means do not differ."""
        return len(self.direction) - 1 - int(self.common.any())


@dataclass(frozen=True)
class Deviations:
    """Deviations of runs from a prediction, or runs of which two sets are compared, in one quantity.

    Parameters
    ----------
    rows : ndarray, shape (runs, places, points)
        The quantity at some places, such as times, as a vector of points.
    allowance : ndarray, shape (places, points)
        Largest deviation of the means that errors of the prediction explain.
    measures : mapping of str to callable
        Names of variables of the comparison, and how each makes one number of the points of a place.
    where : tuple of ndarray, shape (places,)
        Positions of the places in these variables, one array for each of their dims.
    scarce : int
        Number of places that are left out because there are few weights.
    weights : float
        Number of weights of all runs together, at all places of one time.
    """

    rows: FloatArray
    allowance: FloatArray
    measures: Mapping[str, Measure]
    where: tuple[IntArray, ...] = ()
    scarce: int = 0
    weights: float = np.inf


class Outcome(NamedTuple):
    """Outcome of a test.

    Parameters
    ----------
    p_value : float
        Share of rotations that differ by as much in the least likely of all quantities.
    levels : dict of str to float
        For each measure the largest deviation over its places, in standard errors, that chance allows: at most
        `FALSE_ALARMS` of true pairs exceed any of them.
    has_allowance : bool
        Whether any allowance is large enough to matter.
    deviations, standard_errors : dict of str to ndarray, shape (places,)
        Deviations in standard errors after the allowance, and standard errors, place by place.
    """

    p_value: float
    levels: dict[str, float]
    has_allowance: bool
    deviations: dict[str, FloatArray]
    standard_errors: dict[str, FloatArray]


def one_sample(sizes: FloatArray) -> Contrast:
    """Contrast of runs and a prediction that was subtracted from them.

    Parameters
    ----------
    sizes : ndarray, shape (rows,)
        Number of runs that each row is the scaled sum of; see `batched`.
    """
    root = np.sqrt(sizes)
    reach = float(np.linalg.norm(root))
    return Contrast(root / reach, np.zeros_like(root), reach)


def two_samples(first: FloatArray, second: FloatArray) -> Contrast:
    """Contrast of the second set of runs minus the first, whose common mean is unknown.

    Parameters
    ----------
    first, second : ndarray
        Sizes of the rows, in units of the inverse of their variance: number of runs times N.
    """
    root = np.sqrt(np.concatenate([first, second]))
    common = root / np.linalg.norm(root)
    step = np.concatenate([np.zeros_like(first), np.sqrt(second)])
    step = step - common * (common @ step)
    reach = float(np.linalg.norm(step))
    return Contrast(step / reach, common, reach)


def batched(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows of runs, or of batches of runs if they are many, scaled to the variance of one run; and sizes of batches."""
    if len(rows) <= MOST_ROWS:
        return rows, np.ones(len(rows))
    starts = np.linspace(0, len(rows), MOST_ROWS + 1).astype(int)[:-1]
    sizes = np.diff([*starts, len(rows)]).astype(float)
    scale = np.sqrt(sizes).reshape(-1, *np.ones(rows.ndim - 1, dtype=int))
    return np.add.reduceat(rows, starts, axis=0) / scale, sizes


def rotation_test(contrast: Contrast, quantities: Sequence[Deviations], with_allowance: bool = True) -> Outcome:
    """Test whether means differ by more than the scatter of the runs and the allowance explain.

    Parameters
    ----------
    contrast : Contrast
    quantities : sequence of Deviations
        Of the same runs, each multiplied by the square root of its size.
    with_allowance : bool
        Whether the allowances of the quantities count.
    """
    directions = np.vstack([contrast.direction, _random_directions(contrast)])
    largest, shown, errors, has_allowance = {}, {}, {}, False
    for quantity in quantities:
        rows = _rows(contrast, quantity, with_allowance)
        sizes = _sizes(directions, rows, contrast.freedom, quantity.measures)
        spread = _spread(contrast, rows)
        # Largest allowance, in standard errors, that decides nothing.
        has_allowance |= bool(np.any(quantity.allowance.max(axis=1) > 0.05 * spread.max(axis=1)))
        for name, measure in quantity.measures.items():
            largest[name], shown[name] = sizes[name].max(axis=1), sizes[name][0]
            errors[name] = measure(spread)
    # The p value of each quantity alone, for the pair and for each rotation; the smallest of them is the statistic.
    shares = np.array([_tail_shares(values) for values in largest.values()])
    smallest = shares.min(axis=0)
    # It is a number of rotations, the same for one rotation in each quantity. Ties count as larger, and would lower the
    # rate from 5 to 3 % for 6 quantities and 400 rotations: the mean breaks them, by less than one rotation.
    ordered = smallest + shares.mean(axis=0) / len(directions)
    p_value = float(np.mean(ordered <= ordered[0]))
    least = float(np.quantile(smallest, FALSE_ALARMS, method="inverted_cdf"))
    levels = {name: float(np.quantile(values, 1 - least, method="higher")) for name, values in largest.items()}
    return Outcome(p_value, levels, has_allowance, shown, errors)


def _random_directions(contrast: Contrast) -> FloatArray:
    """Unit vectors that are uniform among those without a component along the common mean."""
    drawn = np.random.default_rng(SEED).normal(size=(ROTATIONS, len(contrast.direction)))
    drawn -= np.outer(drawn @ contrast.common, contrast.common)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def _rows(contrast: Contrast, quantity: Deviations, with_allowance: bool) -> FloatArray:
    """Rows without what is common to all, whose difference is what is beyond the allowance."""
    rows = quantity.rows - np.tensordot(contrast.common, np.tensordot(contrast.common, quantity.rows, 1), 0)
    if not with_allowance:
        return rows
    along = np.tensordot(contrast.direction, rows, 1)
    left = beyond_errors(along / contrast.reach, quantity.allowance, _spread(contrast, rows), contrast.freedom)
    return rows - np.tensordot(contrast.direction, along - contrast.reach * left, 0)


def _sizes(
    directions: FloatArray, rows: FloatArray, freedom: int, measures: Mapping[str, Measure]
) -> dict[str, FloatArray]:
    """Deviations along each direction at each place, in units of the scatter across it; shape (directions, places)."""
    squares = np.einsum("rpx,rpx->px", rows, rows)
    flat = rows.reshape(len(rows), -1)
    result = {name: np.empty((len(directions), rows.shape[1])) for name in measures}
    step = max(1, VALUES_AT_ONCE // max(flat.shape[1], 1))
    for start in counted(range(0, len(directions), step), "rotations", "block"):
        along = (directions[start : start + step] @ flat).reshape(-1, *squares.shape)
        across = np.sqrt(np.clip(squares - along**2, 0.0, None) / freedom)
        np.abs(along, out=along)
        for name, measure in measures.items():
            result[name][start : start + step] = measure(along) / np.maximum(measure(across), np.finfo(float).tiny)
    return result


def _spread(contrast: Contrast, rows: FloatArray) -> FloatArray:
    """Standard error of the difference of means at each place and point."""
    along = np.tensordot(contrast.direction, rows, 1)
    across = np.einsum("rpx,rpx->px", rows, rows) - along**2
    return np.asarray(np.sqrt(np.clip(across, 0.0, None) / contrast.freedom) / contrast.reach)


def _tail_shares(values: FloatArray) -> FloatArray:
    """Share of the values that are at least as large, for each of them."""
    ordered = np.sort(values)
    return 1.0 - np.searchsorted(ordered, values, side="left") / len(values)


class DeviationsAt(NamedTuple):
    """Deviations of the distribution functions of all runs at one place of a comparison, such as a time.

    Parameters
    ----------
    position : tuple of int
        Position in the variables of the comparison.
    widths : ndarray, shape (points,)
        Lengths that the points stand for in integrals.
    rows : ndarray, shape (runs, points)
    weights : float
        Number of weights of all runs together.
    error : float
        Largest error of the predicted distribution function.
    """

    position: tuple[int, ...]
    widths: FloatArray
    rows: FloatArray
    weights: float
    error: float = 0.0


def deviations_from(
    values: FloatArray, membership: FloatArray, points: FloatArray, predicted: FloatArray
) -> FloatArray:
    """Empirical minus predicted distribution functions of runs, whose mean over runs is that of all values pooled.

    Parameters
    ----------
    values, membership : ndarray, shape (runs, values)
        Values of each run, and how much each of them counts.
    points, predicted : ndarray, shape (points,)

    Returns
    -------
    ndarray, shape (runs, points)
    """
    places = np.searchsorted(points, values)
    size = len(points) + 1
    counts = np.array([np.bincount(p, m, size) for p, m in zip(places, membership, strict=True)])
    total = counts.sum(axis=1, keepdims=True)
    return np.asarray((np.cumsum(counts, axis=1)[:, :-1] - predicted * total) / total.mean())


def joined(places: Sequence[DeviationsAt], names: Sequence[str]) -> Deviations:
    """Deviations at all places where there are enough weights.

    Parameters
    ----------
    places : sequence of DeviationsAt
        At least one.
    names : sequence of str
        Variables of the comparison, which begin with W1 or KS.
    """
    weights = np.array([place.weights for place in places])
    enough = weights >= FEWEST_WEIGHTS
    positions = np.array([place.position for place in places])
    widths = np.array([place.widths for place in places])[enough]

    def integral(values: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("...px,px->...p", values, widths))

    return Deviations(
        rows=np.stack([place.rows for place in places], axis=1)[:, enough],
        allowance=np.array([np.full(len(place.widths), place.error) for place in places])[enough],
        measures={name: integral if name.startswith("W1") else _largest for name in names},
        where=tuple(positions[enough].T),
        scarce=int((~enough).sum()),
        weights=float(np.bincount(positions[:, 0], weights).max()),
    )


def _largest(values: FloatArray) -> FloatArray:
    return np.asarray(values.max(axis=-1))


def evenly_spread(count: int, most: int) -> IntArray:
    """So many of `count` positions at most, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int))


def judged_times(density: xr.Dataset) -> list[int]:
    """Positions of the output times at which laws of weights are judged: sixteen of more, evenly spread."""
    return [int(time) for time in evenly_spread(density.sizes["time"], 16)]


def both_orders(results: Sequence[Result], pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Result, Result]]:
    """Number of each pair and its two results, one of which may be a prediction and the other runs, in both orders."""
    for row, (i, j) in enumerate(pairs):
        yield row, results[i], results[j]
        yield row, results[j], results[i]


def circle_widths(angles: FloatArray) -> FloatArray:
    """Lengths that increasing angles within a turn stand for in integrals along the circle."""
    around = np.concatenate([[angles[-1] - 2.0 * np.pi], angles, [angles[0] + 2.0 * np.pi]])
    return np.asarray(0.5 * (around[2:] - around[:-2]))


def without_a_cut(rows: FloatArray, widths: FloatArray) -> FloatArray:
    """Deviations along a circle without their mean, which another first angle would change."""
    return np.asarray(rows - (rows @ widths / (2.0 * np.pi))[:, None])
