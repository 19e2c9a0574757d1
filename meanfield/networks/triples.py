"""Losses of anchors, positives and negatives over a finite population, exactly, and NT-Xent of batches drawn from it.

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
from meanfield.networks.scale_functions import POLYNOMIALS, WIDTH
from meanfield.networks.scales import Scales, Sums, groups, negative_laws
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray, IntArray

SUMMED = ("triplet", "infonce", "nt_xent")
"""Losses that are sums over anchors, positives and negatives, and no less."""

MOST_TRIPLES = 1e9
"""Largest number of terms of an enumeration of anchors, positives and negatives: some ten seconds."""

MOST_GROUPS, FEWEST = 1e7, 500
"""Largest number of groups of scales of all anchors, of which there are `FEWEST` at least: a minute, 50 megabytes."""

MOST_KEPT = 1e7
"""Largest number of sums that are kept for what else is asked for: 80 megabytes."""

BLOCK = 1 << 15
"""Number of terms that are computed at once: they fit into the caches."""

COST_OF_AN_ANCHOR, COST_OF_SCALES, COST_OF_A_PAIR, COST_OF_A_GROUP = 15_000.0, 200_000.0, 2.0, 110.0
"""Usual times relative to that of a term of the enumeration, 5 ns: of an anchor of the enumeration and, of sums over
pairs, of their tables, and for each law of views of a pair and of a group of scales of an anchor."""


class Triples:
    """Loss of anchors, positives and negatives.

    Parameters
    ----------
    contrast : Contrast
        `triplet`, `infonce`, or `nt_xent`, whose outputs are directions, of length 1 or 0.
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
        anchors, others = _apart(self._y) if contrast.kind == "nt_xent" else (self._y, self._y)
        reach = reach_of(lambda: (anchors, others))
        check_triples(contrast, len(self._y), reach)
        self._groups = groups(contrast, reach)
        self._negative_laws = negative_laws(contrast, p)
        self._scales: Scales | None = None
        self._kept: list[tuple[slice, Sums]] = []
        if not self._enumerates():
            self._scales = Scales(contrast, p, self._chance, anchors, others, reach)

    def _enumerates(self) -> bool:
        """Whether the enumeration of all triples takes less time than sums over pairs, or these do not fit."""
        count, laws = float(len(self._y)), 1 + len(self._p)
        if not _fits(len(self._y), self._groups):
            return True
        other = COST_OF_SCALES + COST_OF_A_PAIR * count**2 * laws + COST_OF_A_GROUP * count * self._groups * laws
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
        mean = np.tensordot(self._negative_laws, grouped, axes=1)
        out, far = np.zeros_like(grouped), np.zeros_like(mean)
        value = 0.0
        for some, found in self._blocks():
            value += float(np.sum(found.value * p[:, None] * chance[:, some]))
            for z, weight in enumerate(p):
                out[z, some] += weight * (found.positive @ grouped[z] + (found.negative[z] @ mean).sum(axis=0))
                out[z] += weight * (found.positive.T @ grouped[z, some])
                far += weight * (np.swapaxes(found.negative[z], 1, 2) @ grouped[z, some])
        out += np.tensordot(self._negative_laws.T, far, axes=1)
        return value, np.einsum("zc,zck->ck", self._P, out[:, self._place])

    def _blocks(self) -> Iterable[tuple[slice, Sums]]:
        """Blocks of anchors and their sums, which are kept where they are small."""
        count, functions = len(self._y), 1 + len(self._p) * len(self._negative_laws)
        # A million coefficients of a block of anchors fit into the caches.
        most = min(MOST_KEPT / count, 1e6 / (POLYNOMIALS * self._groups)) / functions
        # At least 64 anchors are taken together, for products of matrices.
        step = max(1, int(min(max(64, BLOCK // count), most)))
        blocks = [slice(first, min(first + step, count)) for first in range(0, count, step)]
        if count**2 * functions > MOST_KEPT:
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
        return np.add.reduceat(columns[order], starts, axis=0)

    def _sums(self, anchors: slice) -> Sums:
        """Sums over positives and negatives of some anchors."""
        if self._scales is not None:
            return self._scales.of(anchors.start, anchors.stop)
        rows = [self._enumerated(anchor) for anchor in range(anchors.start, anchors.stop)]
        value, positive, negative = zip(*rows, strict=True)
        return Sums(np.stack(value, axis=1), np.stack(positive), np.stack(negative, axis=1)[:, None])

    @cached_property
    def _negatives(self) -> list[tuple[IntArray, FloatArray, FloatArray]]:
        """Blocks of all negatives of an anchor, shape (terms, negatives), with weights without and with the first."""
        count, H = len(self._y), self._contrast.each
        blocks = []
        step = max(1, BLOCK // count)
        for first in range(0, count**H, step):
            terms = np.arange(first, min(first + step, count**H))
            places = np.stack(np.unravel_index(terms, (count,) * H), axis=-1)
            others = self._alone[places[:, 1:]].prod(axis=1)
            blocks.append((places, others, self._alone[places[:, 0]] * others))
        return blocks

    def _enumerated(self, anchor: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums of one anchor, by the enumeration of positives and negatives."""
        count, H = len(self._y), self._contrast.each
        gaps = self._y - self._y[anchor]
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


def _apart(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Directions as anchors and as others, whose distances are 1 less the cosine: 1 where a direction is 0."""
    silent = 1.0 - y.any(axis=1, keepdims=True)
    return np.hstack([y, silent, 0.0 * silent]), np.hstack([y, 0.0 * silent, silent])


def combinations(contrast: Contrast, count: int) -> float:
    """Number of combinations of anchor, positive and negatives, of a number of different outputs."""
    if contrast.kind == "nt_xent":
        return math.inf
    return math.exp(min((2 + contrast.each) * math.log(count), 700.0))


def check_triples(contrast: Contrast, count: int, reach: float) -> None:
    """Refuse losses that take too long.

    Parameters
    ----------
    contrast : Contrast
        `triplet`, `infonce` or `nt_xent`.
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
    if terms <= MOST_TRIPLES or _fits(count, groups(contrast, reach)):
        return
    listed = (
        f"{terms:.3g} combinations of anchor, positive and negatives, of which {MOST_TRIPLES:.3g} are enumerated, and "
        if math.isfinite(terms)
        else ""
    )
    raise InputError(
        f"loss.kind = '{contrast.kind}' with {_negatives(contrast)}: {count:,} different outputs, at distances up to "
        f"{reach / contrast.temperature:.3g} times loss.temperature, have {listed}{float(count) ** 2:.3g} pairs, of "
        f"which {MOST_PAIRS:.3g} fit at distances up to {_longest(contrast, count):,.0f} times loss.temperature; raise "
        "loss.temperature, take fewer views or a smaller network, set loss.kind to 'simple', or use the method "
        "'particles'"
    )


def _negatives(contrast: Contrast) -> str:
    """Key that says how many negatives there are, and its value."""
    if contrast.kind == "nt_xent":
        return f"training.batch_size = {contrast.negatives + 1}"
    return f"loss.negatives = {contrast.each}"


def _fits(count: int, scales: float) -> bool:
    """Whether sums over pairs fit, for a number of groups of scales."""
    return float(count) ** 2 <= MOST_PAIRS and max(count, FEWEST) * scales <= MOST_GROUPS


def _longest(contrast: Contrast, count: int) -> float:
    """Largest distance, in units of the temperature, for which sums over pairs fit, or would for fewer pairs."""
    most = MOST_GROUPS / min(max(count, FEWEST), math.sqrt(MOST_PAIRS))
    return max(most - groups(contrast, 0.0), 0.0) * WIDTH
