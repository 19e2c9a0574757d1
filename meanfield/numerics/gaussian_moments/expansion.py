"""Averages near some Gaussian laws, to first order in their changes, and the averages of products of four values.

A change of a law changes the weights of the nodes. With x = mean + A z, and (b, D) the shift and the stretch of z that
change the law, d<f> = b . <z f> + sum D_ij <(z_i z_j - delta_ij) f>: no derivative of f occurs, so that f may jump.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations_with_replacement

import numpy as np

from meanfield.numerics.compiled.row_functions import RowFunction
from meanfield.numerics.gaussian_moments.kernel import Law, Moments, Nodes
from meanfield.numerics.gaussian_moments.rules import REACH, Kind, Rule, fixed_nodes, half_of, pivots_of
from meanfield.numerics.gaussian_moments.spherical import mean_powers
from meanfield.numerics.quadrature import gaussian_trapezoid
from meanfield.typing import FloatArray

_lower = cache(np.tril_indices)

ROWS = 2048
"""Number of rows that are evaluated together."""

LARGEST_DEGREE = 4
"""Largest degree of polynomials whose averages over random points are made exact."""


@dataclass(frozen=True)
class Terms:
    """Products of a function's values with each other and with z, side by side: f, z f, f f.

    Parameters
    ----------
    rank, outputs : int
    counted : int
        Number of the first outputs of which z f and f f are wanted.
    """

    rank: int
    outputs: int
    counted: int

    def of(self, z: FloatArray, values: FloatArray) -> FloatArray:
        """Terms of nodes, shape (terms, nodes), from z, shape (rank, nodes), and values, shape (outputs, nodes)."""
        i, j = _lower(self.counted)
        first = values[: self.counted]
        return np.concatenate([values, (z[:, None] * first).reshape(-1, z.shape[1]), first[i] * first[j]])

    def parity(self, parity: FloatArray) -> FloatArray:
        """That of each term, by that of the outputs; z is odd."""
        return self.of(-np.ones((self.rank, 1)), parity[:, None])[:, 0]

    def moments(self, averages: FloatArray) -> Moments:
        """Moments by averages of the terms, shape (terms,); 0 where they are not wanted."""
        counted, end = self.counted, self.outputs + self.rank * self.counted
        along, products = np.zeros((self.rank, self.outputs)), np.zeros((self.outputs, self.outputs))
        along[:, :counted] = averages[self.outputs : end].reshape(self.rank, counted)
        i, j = _lower(counted)
        products[i, j] = products[j, i] = averages[end:]
        return Moments(averages[: self.outputs], along, products)

    @property
    def count(self) -> int:
        """Number of terms."""
        return self.outputs + self.rank * self.counted + self.counted * (self.counted + 1) // 2


class Expansion:
    """Averages of a function near some laws and constants, to first order; of these what `Rule.averages` has.

    Parameters
    ----------
    rule : Rule
        Rule of quadrature for products of four values.
    function : RowFunction
    constants : ndarray
    laws : sequence of Law
    counted : int
        Number of the first outputs of which <z f> and <f f> are wanted.
    reads : sequence of int
        Constants that the function reads.

    Attributes
    ----------
    products : list of ndarray, shape (terms, terms)
        Averages of the products of `Terms`, two by two, over each law.
    """

    def __init__(
        self,
        rule: Rule,
        function: RowFunction,
        constants: FloatArray,
        laws: Sequence[Law],
        counted: int,
        reads: Sequence[int],
    ) -> None:
        self._rule, self._constants, self._reads, self._laws = rule, constants, list(reads), laws
        self.terms = [Terms(law.factor.shape[1], function.outputs, counted) for law in laws]
        self._pivots = [pivots_of(law.factor) for law in laws]
        found = [_averages(rule, function, constants, law, each) for law, each in zip(laws, self.terms, strict=True)]
        self._weighed, self.products = [each[0] for each in found], [each[1] for each in found]

    @property
    def mean(self) -> list[FloatArray]:
        """Averages of the terms over each law, shape (terms,)."""
        return [each[0] for each in self._weighed]

    def averages(self, function: RowFunction, constants: FloatArray, laws: Sequence[Law]) -> list[Moments]:
        """Averages over laws that are close, in the order of those that it was made of.

        Parameters
        ----------
        function : RowFunction
            The function that it was made of.
        constants : ndarray
        laws : sequence of Law
        """
        found = [self._near(number, law) for number, law in enumerate(laws)]
        if np.array_equal(constants[self._reads], self._constants[self._reads]):
            return found
        after, before = (self._rule.averages(function, each, self._laws) for each in (constants, self._constants))
        return [
            Moments(*(x + (y - z) for x, y, z in zip(*each, strict=True)))
            for each in zip(found, after, before, strict=True)
        ]

    def _near(self, number: int, law: Law) -> Moments:
        here, terms, pivots = self._laws[number], self.terms[number], self._pivots[number]
        if law.factor.shape != here.factor.shape:
            return terms.moments(np.full(terms.count, np.nan))  # noise that begins has no derivative
        inner = here.factor[pivots]
        b = np.linalg.solve(inner, law.mean[pivots] - here.mean[pivots])
        D = np.linalg.solve(inner, law.factor[pivots] - inner)
        i, j = _lower(terms.rank)
        pairs = np.where(i == j, D[i, j], D[i, j] + D[j, i])
        changed = np.concatenate([[1.0 - np.trace(D)], b, pairs]) @ self._weighed[number]
        first, along, products = terms.moments(changed)
        before = terms.moments(self._weighed[number][0])
        along[:, : terms.counted] -= np.outer(b, before.first[: terms.counted]) + D @ before.along[:, : terms.counted]
        return Moments(first, along, products)


def _averages(
    rule: Rule, function: RowFunction, constants: FloatArray, law: Law, terms: Terms
) -> tuple[FloatArray, FloatArray]:
    """Averages of the terms with 1, z and z z, shape (weights, terms), and of their products, shape (terms, terms)."""
    rule = rule.of(law)
    parity = rule.parity(function, constants, law)
    z, weights = _nodes(rule, law, parity is not None)
    i, j = _lower(terms.rank)
    start = 1 + terms.rank + len(i)
    found = np.zeros((start + terms.count, terms.count))
    for first in range(0, len(weights), ROWS):
        at, w = z[:, first : first + ROWS], weights[first : first + ROWS]
        values = function(law.mean + at.T @ law.factor.T, constants).T
        each = terms.of(at, values)
        found += np.concatenate([np.ones((1, len(w))), at, at[i] * at[j], each]) @ (w * each).T
    if parity is not None:
        of_terms = terms.parity(parity)
        of_weights = np.concatenate([[1.0], -np.ones(terms.rank), np.ones(len(i)), of_terms])
        found *= 0.5 * (1.0 + np.outer(of_weights, of_terms))
    if rule.powers is not None:
        grown = terms.of(np.full((terms.rank, 1), 2.0), 2.0 ** np.array(rule.powers)[:, None])[:, 0]
        of_terms = np.rint(np.log2(grown)).astype(int)
        of_weights = np.concatenate([np.repeat([0, 1, 2], [1, terms.rank, len(i)]), of_terms])
        found *= mean_powers(terms.rank)[of_weights[:, None] + of_terms]
    return found[:start], found[start:]


def _nodes(rule: Rule, law: Law, half: bool) -> Nodes:
    """Nodes of a rule, or of one half-space, that are not negligible."""
    rank = law.factor.shape[1]
    if rule.kind == "random":
        return _calibrated(rule.order, rank, rule.randomisation)
    if rule.kind == "kinked":
        return _kept(*rule.nodes(law))
    found = _kept_of(rule.kind, rule.order, rank, rule.reach)
    return half_of(found) if half else found


@lru_cache(maxsize=8)
def _kept_of(kind: Kind, order: int, rank: int, reach: float) -> Nodes:
    """The same of nodes that are the same for all laws; in four directions every other one, as on a checkerboard."""
    z, weights = fixed_nodes(kind, order, rank, reach, None)
    # Directions in which every other node of a trapezoidal product is as exact as all, unless functions are narrowest
    # along diagonals: the shortest waves that the nodes (the lattice D4) take for constants are as short as before.
    if kind == "smooth" and rank == 4:
        x, _ = gaussian_trapezoid(order, reach)
        weights = np.where(np.rint((z - x[0]) / (x[1] - x[0])).sum(axis=0) % 2 == 0, 2.0 * weights, 0.0)
    return _kept(z, weights)


def _kept(z: FloatArray, weights: FloatArray) -> Nodes:
    # Weight of nodes that are left out, relative to the largest: more than half of those in four directions.
    kept = np.flatnonzero(np.abs(weights) > 1e-9 * weights.max())
    return Nodes(z[:, kept], weights[kept])


@lru_cache(maxsize=16)
def _calibrated(order: int, rank: int, randomisation: int | None) -> Nodes:
    """Random points with weights by which polynomials of low degree have their exact averages."""
    z, weights = fixed_nodes("random", order, rank, REACH, randomisation)
    degree = max(d for d in range(1, LARGEST_DEGREE + 1) if math.comb(rank + d, d) <= max(order // 8, rank + 1))
    of_one = np.stack([np.polynomial.hermite_e.hermeval(z, unit) for unit in np.eye(degree + 1)])
    products = []
    for chosen in combinations_with_replacement(range(rank + 1), degree):  # the last stands for 1
        powers = np.bincount(chosen, minlength=rank + 1)[:rank]
        size = math.sqrt(math.prod(map(math.factorial, powers.tolist())))
        products.append(
            np.prod([of_one[n, i] for i, n in enumerate(powers.tolist()) if n] or [1.0 + 0.0 * z[0]], axis=0) / size
        )
    H = np.array(products)
    off = H @ weights
    off[-1] -= 1.0  # of the constant
    return Nodes(z, weights - weights * (np.linalg.solve((H * weights) @ H.T, off) @ H))
