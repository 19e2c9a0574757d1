"""Triangular factors of matrices that may be singular, against products and LAPACK."""

import numpy as np
import pytest

from meanfield.numerics.compiled.triangular import factorise, factorise_products


def factor_of(vectors):
    factor = np.zeros((len(vectors), len(vectors)))
    factorise_products(vectors.copy(), factor)
    return factor


def semidefinite_factor(gram):
    factor = np.zeros_like(gram)
    factorise(gram, factor)
    return factor


@pytest.mark.parametrize(("count", "size", "rank"), [(1, 1, 1), (2, 5, 2), (3, 2, 2), (4, 7, 2), (3, 6, 3)])
def test_products_are_those_of_the_factor(count, size, rank):
    """Also where the rank is too low, for which LAPACK's Cholesky factor does not exist."""
    rng = np.random.default_rng(count)
    vectors = rng.standard_normal((count, rank)) @ rng.standard_normal((rank, size))
    for factor in (factor_of(vectors), semidefinite_factor(vectors @ vectors.T)):
        np.testing.assert_allclose(factor @ factor.T, vectors @ vectors.T, rtol=0, atol=1e-13)  # rounding
        assert np.array_equal(factor, np.tril(factor))
    if rank == count:
        expected = np.linalg.cholesky(vectors @ vectors.T)
        np.testing.assert_allclose(factor_of(vectors), expected, rtol=0, atol=1e-12)  # rounding times the condition


def test_vectors_that_vanish_or_coincide():
    first = np.array([0.3, 0.7, 0.1])
    factor = factor_of(np.array([first, 0 * first, -first, first]))
    assert np.array_equal(factor[:, 0], factor[0, 0] * np.array([1.0, 0.0, -1.0, 1.0]))  # to the last bit
    assert not factor[:, 1:].any()
    again = semidefinite_factor(np.full((2, 2), 0.7))
    assert np.array_equal(again[0], again[1])  # to the last bit


def test_small_differences_are_resolved_by_vectors():
    """Where the Gram matrix has lost them: 1 - correlation = 1e-20/2."""
    factor = factor_of(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 1e-10]]))
    assert factor[1, 1] == pytest.approx(1e-10, rel=1e-6)  # 1e-16 of rounding, relative to 1e-10
