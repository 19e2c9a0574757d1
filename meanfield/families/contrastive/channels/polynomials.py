"""Sensitivities of the loss as polynomials in the outputs of one sample and in sums over the others of its batch.

With the derivatives s of the activation left out, the sensitivities of a sample to its pre-activations are

    alpha_k / s1_k = sum_j A_kj yh2_j,   beta_k / s2_k = sum_j A_jk yh1_j,   A_kk = 1,   A_kj = -lambda psi'(C_kj)

Where psi'(C) is linear in C they are polynomials in the outputs y of the sample and in the sums U = sum' y and
T_kj = sum' y1_k y2_j over the other m - 1 samples. Products of two of them are all that averages over a batch need, so
that these are exact at every m. Outputs are centred by their mean, under batch centring by that of the batch.
Source: several_channels.md, sections 1 and 3.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from meanfield.typing import FloatArray, IntArray

Exponents = tuple[int, ...]
Polynomial = dict[Exponents, float]
"""Coefficients by the exponents of the outputs, then of the sums."""


class Terms(NamedTuple):
    """Polynomials as arrays for compiled code.

    Parameters
    ----------
    parent, factor : ndarray of int, shape (monomials,)
        A monomial of the outputs is an earlier one times an output; the first is 1.
    sum_monomial : ndarray of int, shape (sums,)
        Monomial of the outputs whose average is the moment of one sample that belongs to a monomial of the sums.
    sum_factorial : ndarray, shape (sums,)
        Product of the factorials of its exponents.
    degree : ndarray of int, shape (sums,)
        Its degree in the outputs.
    pairs : ndarray of int, shape (pairs, 3)
        Monomials of the sums and the two whose product they are, in the order of degrees; the second is never 1.
    polynomial, monomial, sums : ndarray of int, shape (terms,)
        Polynomial, monomial of the outputs and monomial of the sums of a term.
    coefficient : ndarray, shape (terms,)
    polynomials : int
        Number of polynomials: the sensitivities, then their products, those of a view before those of the next.
    """

    parent: IntArray
    factor: IntArray
    sum_monomial: IntArray
    sum_factorial: FloatArray
    degree: IntArray
    pairs: IntArray
    polynomial: IntArray
    monomial: IntArray
    sums: IntArray
    coefficient: FloatArray
    polynomials: int


class _Algebra:
    """Variables of polynomials: outputs y of the views and channels, then sums U of them, then sums T of products."""

    def __init__(self, channels: int, views: int, centred_by_batch: bool) -> None:
        self.channels, self.views = channels, views
        self.outputs = channels * views
        self.sums = self.outputs if centred_by_batch else 0
        pairs = [(k, j) for k in range(channels) for j in range(channels) if k < j or (k > j and views == 2)]
        self.pair = {pair: self.outputs + self.sums + i for i, pair in enumerate(pairs)}
        self.size = self.outputs + self.sums + len(pairs)

    def variable(self, index: int) -> Polynomial:
        return {tuple(int(i == index) for i in range(self.size)): 1.0}

    def constant(self, value: float) -> Polynomial:
        return {(0,) * self.size: value} if value else {}

    def output(self, view: int, channel: int) -> int:
        return (view if self.views == 2 else 0) * self.channels + channel

    def product_sum(self, k: int, j: int) -> Polynomial:
        """The sum T_kj over other samples of y1_k y2_j."""
        return self.variable(self.pair[(k, j) if self.views == 2 else (min(k, j), max(k, j))])


def _plus(*parts: tuple[float, Polynomial]) -> Polynomial:
    total: Polynomial = defaultdict(float)
    for factor, polynomial in parts:
        for exponents, coefficient in polynomial.items():
            total[exponents] += factor * coefficient
    return {exponents: coefficient for exponents, coefficient in total.items() if coefficient}


def _times(first: Polynomial, second: Polynomial) -> Polynomial:
    total: Polynomial = defaultdict(float)
    for a, x in first.items():
        for b, y in second.items():
            total[tuple(map(sum, zip(a, b, strict=True)))] += x * y
    return dict(total)


def sensitivities(
    channels: int, views: int, batch_size: int, by_batch: bool, strength: float, linear: bool
) -> tuple[_Algebra, list[Polynomial]]:
    """The sensitivities alpha_k / s1_k and, with two views, beta_k / s2_k, as polynomials.

    Parameters
    ----------
    channels, views : int
        d2, and 1 if both views are the sample itself, else 2.
    by_batch : bool
        Whether outputs are centred by the mean of the batch.
    strength : float
        The factor lambda: A_kj = -lambda (2 C_kj), the square penalty, or A_kj = -lambda, if psi' = 1.
    linear : bool
        Whether psi' = 1.
    """
    algebra, m = _Algebra(channels, views, by_batch), float(batch_size)

    def y(view: int, k: int) -> Polynomial:
        return algebra.variable(algebra.output(view, k))

    def total(view: int, k: int) -> Polynomial:
        """Sum over the batch of an output, the sample itself included."""
        return _plus((1.0, y(view, k)), (1.0, algebra.variable(algebra.outputs + algebra.output(view, k))))

    def centred(view: int, k: int) -> Polynomial:
        return _plus((1.0, y(view, k)), (-1.0 / m, total(view, k))) if by_batch else y(view, k)

    def coupling(k: int, j: int) -> Polynomial:
        if linear:
            return algebra.constant(-strength)
        products = _plus((1.0 / m, _times(y(0, k), y(1, j))), (1.0 / m, algebra.product_sum(k, j)))
        means = _times(total(0, k), total(1, j)) if by_batch else {}
        return _plus((-2.0 * strength, products), (2.0 * strength / m**2, means))

    def gradient(view: int, k: int) -> Polynomial:
        parts = [(1.0, centred(1 - view, k))]
        for j in range(channels) if strength else ():
            if j != k:
                A = coupling(k, j) if view == 0 else coupling(j, k)
                parts.append((1.0, _times(A, centred(1 - view, j))))
        return _plus(*parts)

    return algebra, [gradient(view, k) for view in range(views) for k in range(channels)]


@lru_cache(maxsize=32)
def batch_terms(
    channels: int, views: int, batch_size: int, by_batch: bool, strength: float, linear: bool = False
) -> Terms:
    """Sensitivities and all products of two of them; see `sensitivities` for the parameters."""
    algebra, gradients = sensitivities(channels, views, batch_size, by_batch, strength, linear)
    squares = [_times(a, b) for a, b in combinations_with_replacement(gradients, 2)]
    return _arrays(algebra, [*gradients, *squares])


def terms_at(
    strength: float, channels: int, views: int, batch_size: int, by_batch: bool, largest: float, linear: bool = False
) -> Terms:
    """`batch_terms` at a strength up to the largest one, at a fraction of the cost: coefficients are polynomials in it.

    Parameters
    ----------
    strength, largest : float
    channels, views, batch_size, by_batch, linear
        See `sensitivities`.
    """
    of_largest = channels, views, batch_size, by_batch, largest, linear
    terms = batch_terms(*of_largest)
    if strength == largest:
        return terms
    return terms._replace(coefficient=np.vander([strength / largest], 3)[0] @ _series_in_strength(*of_largest))


@lru_cache(maxsize=32)
def _series_in_strength(
    channels: int, views: int, batch_size: int, by_batch: bool, largest: float, linear: bool
) -> FloatArray:
    """Coefficients of terms as polynomials in the strength relative to the largest one, shape (3, terms)."""
    shares = np.array([0.5, 1.0, 2.0])  # squares of strengths are the highest powers
    found = [batch_terms(channels, views, batch_size, by_batch, share * largest, linear) for share in shares]
    return np.asarray(np.linalg.solve(np.vander(shares), [terms.coefficient for terms in found]))


def _arrays(algebra: _Algebra, polynomials: list[Polynomial]) -> Terms:
    split = algebra.outputs
    needed = {exponents[split:] for polynomial in polynomials for exponents in polynomial}
    sums = _divisors(needed)
    monomials = _divisors(
        {exponents[:split] for polynomial in polynomials for exponents in polynomial}
        | {_of_one_sample(algebra, exponents) for exponents in sums}
    )
    index = {exponents: i for i, exponents in enumerate(monomials)}
    of_sums = {exponents: i for i, exponents in enumerate(sums)}
    steps = [_last_factor(exponents) for exponents in monomials]
    terms = [
        (p, index[exponents[:split]], of_sums[exponents[split:]], coefficient)
        for p, polynomial in enumerate(polynomials)
        for exponents, coefficient in polynomial.items()
    ]
    degree = [sum(_of_one_sample(algebra, exponents)) for exponents in sums]
    pairs = [
        (of_sums[whole], of_sums[part], of_sums[tuple(w - p for w, p in zip(whole, part, strict=True))])
        for whole in sums
        for part in sums
        if any(part) and all(p <= w for p, w in zip(part, whole, strict=True))
    ]
    return Terms(
        parent=np.array([0 if factor < 0 else index[below] for factor, below in steps]),
        factor=np.array([factor for factor, _ in steps]),
        sum_monomial=np.array([index[_of_one_sample(algebra, exponents)] for exponents in sums]),
        sum_factorial=np.array([float(np.prod([_factorial(e) for e in exponents])) for exponents in sums]),
        degree=np.array(degree),
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 3),
        polynomial=np.array([term[0] for term in terms]),
        monomial=np.array([term[1] for term in terms]),
        sums=np.array([term[2] for term in terms]),
        coefficient=np.array([term[3] for term in terms]),
        polynomials=len(polynomials),
    )


def _divisors(wanted: set[Exponents]) -> list[Exponents]:
    """The monomials and all that divide them, those of low degree first."""
    found, new = set(wanted), list(wanted)
    while new:
        exponents = new.pop()
        for i, e in enumerate(exponents):
            below = (*exponents[:i], e - 1, *exponents[i + 1 :])
            if e and below not in found:
                found.add(below)
                new.append(below)
    return sorted(found, key=lambda exponents: (sum(exponents), exponents))


def _last_factor(exponents: Exponents) -> tuple[int, Exponents]:
    """The last variable of a monomial, -1 for 1, and the monomial without it."""
    last = max((i for i, e in enumerate(exponents) if e), default=-1)
    return last, tuple(e - (i == last) for i, e in enumerate(exponents))


def _of_one_sample(algebra: _Algebra, sums: Exponents) -> Exponents:
    """Exponents of the outputs in what one sample adds to a monomial of sums."""
    exponents = [*sums[: algebra.sums]] if algebra.sums else [0] * algebra.outputs
    for (k, j), place in algebra.pair.items():
        power = sums[place - algebra.outputs]
        exponents[algebra.output(0, k)] += power
        exponents[algebra.output(1, j)] += power
    return tuple(exponents)


def _factorial(n: int) -> int:
    return 1 if n < 2 else n * _factorial(n - 1)
