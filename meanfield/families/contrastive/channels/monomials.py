"""Monomials of sums over the other samples of a batch, their moments, and what two samples have in common."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import comb

import numpy as np

from meanfield.typing import FloatArray

Exponents = tuple[int, ...]


class Monomials:
    """Monomials of sums over other samples up to degree 4, and how averages over two samples are made of them.

    Parameters
    ----------
    count : int
        Number of sums T.

    Attributes
    ----------
    all, low : list of tuple of int
        Exponents of all monomials, and of those up to degree 2, which come first.
    product : ndarray of int, shape (low, low)
        Places of the products of the latter.
    """

    def __init__(self, count: int) -> None:
        by_degree = [
            [tuple(chosen.count(i) for i in range(count)) for chosen in combinations_with_replacement(range(count), d)]
            for d in range(5 if count else 1)
        ]
        self.all = [exponents for degree in by_degree for exponents in degree]
        self.low = [exponents for exponents in self.all if sum(exponents) <= 2]
        place = {exponents: i for i, exponents in enumerate(self.all)}
        self.degree = np.array([float(sum(exponents)) for exponents in self.all])
        self._factorial = np.array([np.prod([[1, 1, 2, 6, 24][e] for e in exponents]) for exponents in self.all])
        self._parts = [_parts(exponents, place) for exponents in self.all]
        self.product = np.array([[place[_sum(a, b)] for b in self.low] for a in self.low])
        self._shared = [
            (t, j, u, i, _choose(self.low[t], self.low[i]) * _choose(self.low[u], self.low[j]), place[rest])
            for t, j, u, i in product(range(len(self.low)), repeat=4)
            if (rest := _rest(self.low[t], self.low[u], self.low[i], self.low[j])) is not None
        ]

    def of_sums(self, one: FloatArray, others: int) -> FloatArray:
        """Moments of sums over some samples from those of one sample, shape (monomials,); see `polynomials`."""
        a = one / self._factorial
        f = np.zeros_like(a)
        f[0] = 1.0
        for whole, (part, rest) in enumerate(self._parts):
            if whole:
                share = (others + 1.0) * self.degree[part] / self.degree[whole] - 1.0
                f[whole] = np.sum(share * a[part] * f[rest])
        return np.asarray(f * self._factorial)

    def of_two(self, moments: FloatArray) -> FloatArray:
        """Coefficients w with <h(1) h(2)> = sum w[t, j, u, i] <h_t p^j> <h_u p^i>, by moments over the others."""
        size = len(self.low)
        result = np.zeros((size, size, size, size))
        for t, j, u, i, factor, rest in self._shared:
            result[t, j, u, i] = factor * moments[rest]
        return result


def _sum(a: Exponents, b: Exponents) -> Exponents:
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _parts(whole: Exponents, place: dict[Exponents, int]) -> tuple[list[int], list[int]]:
    """Places of the monomials other than 1 that divide one, and of what is left."""
    parts = [part for part in product(*(range(e + 1) for e in whole)) if any(part)]
    rests = [tuple(e - p for e, p in zip(whole, part, strict=True)) for part in parts]
    return [place[part] for part in parts], [place[rest] for rest in rests]


def _choose(whole: Exponents, part: Exponents) -> int:
    return int(np.prod([comb(e, p) for e, p in zip(whole, part, strict=True)], dtype=int))


def _rest(t: Exponents, u: Exponents, i: Exponents, j: Exponents) -> Exponents | None:
    """Exponents t + u - i - j where i divides t and j divides u, else None."""
    left = [(a - c, b - d) for a, b, c, d in zip(t, u, i, j, strict=True)]
    return tuple(x + y for x, y in left) if all(x >= 0 and y >= 0 for x, y in left) else None
