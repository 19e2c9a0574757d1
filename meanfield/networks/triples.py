"""Losses of anchors, positives and negatives over a finite population, exactly.

Many views have the same output, where nodes are not active: these stand together. The sum over all triples of
different outputs is taken as it is where these are few, and as integrals over sums of pairs where they are many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np

from meanfield.errors import InputError
from meanfield.networks.contrast import Contrast
from meanfield.networks.distinct import MOST_PAIRS, merged, reach_of
from meanfield.networks.scales import Scales, Sums, sizes
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray, IntArray

MOST_TRIPLES = 1e9
"""Largest number of terms of an enumeration of anchors, positives and negatives: some ten seconds."""

MOST_SERIES = 1e7
"""Largest number of coefficients by scale that are kept: 80 megabytes for each of three tables."""

MOST_KEPT = 1e7
"""Largest number of sums that are kept for what else is asked for: 80 megabytes."""

BLOCK = 1 << 15
"""Number of terms that are computed at once: they fit into the caches."""

LEAST = 64
"""Least number of anchors that are taken together, for products of matrices."""

COST_OF_AN_ANCHOR, COST_OF_SCALES, COST_OF_A_PAIR, COST_OF_A_PRODUCT = 15_000.0, 200_000.0, 2.0, 0.0125
"""Usual times relative to that of a term of the enumeration, 5 ns: of an anchor of the enumeration and, of sums over
pairs, of their tables, of a pair for each law of views, and of a multiplication in products of matrices."""


class Triples:
    """Loss of anchors, positives and negatives.

    Parameters
    ----------
    contrast : Contrast
        `triplet` or `infonce`.
    p : ndarray, shape (samples,)
    P : ndarray, shape (samples, views)
    outputs : ndarray, shape (views, outputs)

    Raises
    ------
    InputError
        If there are too many different outputs, or distances are too large in units of the temperature.
    """

    def __init__(self, contrast: Contrast, p: FloatArray, P: FloatArray, outputs: FloatArray) -> None:
        self._contrast, self._p, self._P = contrast, p, P
        self._y, self._place = merged(outputs)
        self._chance = np.array([np.bincount(self._place, row, len(self._y)) for row in P])
        self._alone = p @ self._chance
        reach = reach_of(self._y)
        check_triples(contrast, len(self._y), reach)
        self._sizes = sizes(contrast, reach)
        self._scales: Scales | None = None
        self._kept: list[tuple[slice, Sums]] = []
        if not self._enumerates():
            self._scales = Scales(contrast, self._chance, self._alone, self._y, reach)

    def _enumerates(self) -> bool:
        """Whether the enumeration of all triples takes less time than sums over pairs, or these do not fit."""
        count, samples, (polynomials, scales) = float(len(self._y)), len(self._p), self._sizes
        if not _fits(len(self._y), self._sizes):
            return True
        products = 3.0 * count * (2 + samples) * polynomials * scales
        other = COST_OF_SCALES + COST_OF_A_PAIR * count**2 * (1 + samples) + COST_OF_A_PRODUCT * products
        return COST_OF_AN_ANCHOR * count + combinations(self._contrast, len(self._y)) <= other

    def pull(self, columns: FloatArray) -> FloatArray:
        """Product of `columns` and G + G^T, with the derivative G(c, c') of the loss by distances of views.

        Parameters
        ----------
        columns : ndarray, shape (views, columns)
        """
        return self.value_and_pull(columns)[1]

    def value_and_pull(self, columns: FloatArray) -> tuple[float, FloatArray]:
        """Loss, and what `pull` returns."""
        p, chance = self._p, self._chance
        grouped = np.stack([self._grouped(row[:, None] * columns) for row in self._P])
        mean = np.tensordot(p, grouped, axes=1)
        out, far, value = np.zeros_like(grouped), np.zeros_like(mean), 0.0
        for some, found in self._blocks():
            value += float(np.sum(found.value.T * p[:, None] * chance[:, some]))
            for z, weight in enumerate(p):
                negative = found.negative[:, z]
                out[z, some] += weight * (found.positive @ grouped[z] + negative @ mean)
                out[z] += weight * (found.positive.T @ grouped[z, some])
                far += weight * (negative.T @ grouped[z, some])
        out += p[:, None, None] * far
        return value, np.einsum("zc,zck->ck", self._P, out[:, self._place])

    def _blocks(self) -> Iterable[tuple[slice, Sums]]:
        """Blocks of anchors and their sums, which are kept where they are small."""
        count = len(self._y)
        step = max(1, int(min(max(LEAST, BLOCK // count), MOST_SERIES / (len(self._p) * (count + self._sizes[0])))))
        blocks = [slice(first, min(first + step, count)) for first in range(0, count, step)]
        if count**2 * (1 + len(self._p)) > MOST_KEPT:
            return self._shown(blocks)
        self._kept = self._kept or [(some, self._sums(some)) for some in blocks]
        return self._kept

    def _shown(self, blocks: list[slice]) -> Iterator[tuple[slice, Sums]]:
        """Blocks and their sums, with a progress bar."""
        with progress_bar(len(self._y), "anchors, positives and negatives", "anchor") as bar:
            for some in blocks:
                yield some, self._sums(some)
                bar.update(some.stop - some.start)

    def _grouped(self, columns: FloatArray) -> FloatArray:
        """Sums of columns over views with the same output."""
        order = np.argsort(self._place, kind="stable")
        starts = np.searchsorted(self._place[order], np.arange(len(self._y)))
        return np.asarray(np.add.reduceat(columns[order], starts, axis=0))

    def _sums(self, anchors: slice) -> Sums:
        """Sums over positives and negatives of some anchors."""
        if self._scales is not None:
            return self._scales.of(anchors.start, anchors.stop)
        rows = [self._enumerated(anchor) for anchor in range(anchors.start, anchors.stop)]
        return Sums(*(np.stack(part) for part in zip(*rows, strict=True)))

    @cached_property
    def _negatives(self) -> list[tuple[IntArray, FloatArray, FloatArray]]:
        """Blocks of all negatives of an anchor, shape (terms, negatives), with weights without and with the first."""
        count, H, blocks = len(self._y), self._contrast.each, []
        step = max(1, BLOCK // count)
        for first in range(0, count**H, step):
            terms = np.arange(first, min(first + step, count**H))
            places = np.stack(np.unravel_index(terms, (count,) * H), axis=-1)
            others = self._alone[places[:, 1:]].prod(axis=1)
            blocks.append((places, others, self._alone[places[:, 0]] * others))
        return blocks

    def _enumerated(self, anchor: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums of one anchor, by the enumeration of positives and negatives."""
        gaps, count, H = self._y - self._y[anchor], len(self._y), self._contrast.each
        r = 0.5 * (gaps * gaps).sum(axis=1)
        value, positive = np.zeros(len(self._p)), np.zeros(count)
        negative = np.zeros((len(self._p), count))
        for places, others, weight in self._negatives:
            found = self._contrast.of_triples(r[:, None], r[None, places])
            value += self._chance @ (found.value @ weight)
            positive += found.positive @ weight
            # negatives are alike: the first one stands for all
            by_first = H * (self._chance @ found.negative[..., 0]) * others
            for z, row in enumerate(by_first):
                negative[z] += np.bincount(places[:, 0], row, count)
        return value, positive, negative


def combinations(contrast: Contrast, count: int) -> float:
    """Number of combinations of anchor, positive and negatives, of a number of different outputs."""
    return math.exp(min((2 + contrast.each) * math.log(count), 700.0))


def check_triples(contrast: Contrast, count: int, reach: float) -> None:
    """Refuse losses that take too long.

    Parameters
    ----------
    contrast : Contrast
        `triplet` or `infonce`.
    count : int
        Number of different outputs.
    reach : float
        Bound of their distances.

    Raises
    ------
    InputError
        With the size, and what to do instead.
    """
    terms = combinations(contrast, count)
    if terms <= MOST_TRIPLES or _fits(count, sizes(contrast, reach)):
        return
    raise InputError(
        f"loss.kind = '{contrast.kind}' with loss.negatives = {contrast.each}: {count:,} different outputs, at "
        f"distances up to {reach / contrast.temperature:.3g} times loss.temperature, have {terms:.3g} combinations of "
        f"anchor, positive and negatives, of which {MOST_TRIPLES:.3g} are enumerated, and {float(count) ** 2:.3g} "
        f"pairs, of which {MOST_PAIRS:.3g} fit at distances up to {_longest(contrast):,.0f} times loss.temperature; "
        "raise loss.temperature, take fewer views or a smaller network, set loss.kind to 'simple', or use the method "
        "'particles'"
    )


def _fits(count: int, numbers: tuple[float, float]) -> bool:
    """Whether sums over pairs fit, for numbers of polynomials and of scales."""
    return float(count) ** 2 <= MOST_PAIRS and numbers[0] * numbers[1] <= MOST_SERIES


def _longest(contrast: Contrast) -> float:
    """Largest distance, in units of the temperature, for which `MOST_SERIES` numbers suffice."""
    low, high = 0.0, 1e9
    while high - low > 1.0:
        R = 0.5 * (low + high)
        polynomials, scales = sizes(contrast, R * contrast.temperature)
        low, high = (R, high) if polynomials * scales <= MOST_SERIES else (low, R)
    return low
