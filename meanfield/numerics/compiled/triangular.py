"""Triangular factors of Gram matrices that may be singular, for compiled code without reference counts.

What is above the diagonal of a factor is not written.
"""

from __future__ import annotations

import math

from meanfield.numerics.compiled.array_operations import add, dot
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts


@without_reference_counts(inline="always")
def factorise(gram, factor):  # type: ignore[no-untyped-def]
    """Write the lower triangular L with L L^T = gram to `factor`; zero columns for vectors in the span of others.

    Vectors whose products are equal to the last bit have equal rows in L.
    """
    for b in range(gram.shape[0]):
        pivot = gram[b, b]
        for c in range(b):
            pivot -= factor[b, c] * factor[b, c]
        independent = pivot > 1e-14 * gram[b, b]  # less is the rounding of products
        factor[b, b] = math.sqrt(pivot) if independent else 0.0
        for a in range(b + 1, gram.shape[0]):
            rest = gram[a, b]
            for c in range(b):
                rest -= factor[a, c] * factor[b, c]
            factor[a, b] = rest / pivot * factor[b, b] if independent else 0.0


@without_reference_counts()
def factorise_products(vectors, factor):  # type: ignore[no-untyped-def]
    """Write the lower triangular L with L L^T = A A^T to `factor`, where the rows of A are `vectors`.

    The vectors are made orthogonal one after the other, and are lost. Unlike the products A A^T, which square what is
    small, this resolves differences of vectors to 14 digits; vectors that are equal to the last bit, or opposite, have
    equal or opposite rows in L.
    """
    count = vectors.shape[0]
    for b in range(count):
        rest = dot(vectors[b], vectors[b])
        whole = rest
        for c in range(b):
            whole += factor[b, c] * factor[b, c]
        if rest <= 1e-28 * whole:  # less is the rounding of the vectors themselves
            for a in range(b, count):
                factor[a, b] = 0.0
            continue
        factor[b, b] = math.sqrt(rest)
        for a in range(b + 1, count):
            share = dot(vectors[b], vectors[a]) / rest
            add(vectors[a], -share, vectors[b])
            factor[a, b] = share * factor[b, b]
