"""Products of a matrix with many vectors: against NumPy, and the same bits wherever a vector stands."""

import numpy as np
import pytest

from meanfield.numerics.compiled.matrix_products import (
    VECTORS_PER_TILE,
    multiply,
    pack,
    relative_error,
    tiles_for,
    unpack,
)


def products(matrix, vectors, precision=np.float64):
    panels, tiles = pack(matrix).astype(precision), tiles_for(len(vectors), len(matrix)).astype(precision)
    for i, vector in enumerate(vectors):
        tiles[i // VECTORS_PER_TILE, :, i % VECTORS_PER_TILE] = vector
    out = np.empty((len(tiles) * VECTORS_PER_TILE, panels.shape[0] * panels.shape[2]), precision)
    multiply(panels, tiles, len(vectors), out)
    return out[: len(vectors), : matrix.shape[1]]


@pytest.mark.parametrize(("rows", "columns", "vectors"), [(1, 1, 1), (5, 37, 7), (33, 16, 6), (50, 100, 48)])
def test_products_are_right(rows, columns, vectors):
    rng = np.random.default_rng(0)
    matrix, several = rng.standard_normal((rows, columns)), rng.standard_normal((vectors, rows))
    assert np.array_equal(unpack(pack(matrix), columns), matrix)
    bound = rows * np.finfo(float).eps * (np.abs(several) @ np.abs(matrix))  # of any order of summation
    assert np.all(np.abs(products(matrix, several) - several @ matrix) <= bound)


@pytest.mark.parametrize("rows", [3, 128, 700])
def test_errors_of_single_precision_are_bounded(rows):
    """The bound is one of the worst case; positive numbers come within a factor of thirty."""
    rng = np.random.default_rng(2)
    matrix, several = 1 + rng.random((rows, 100)), 1 + rng.random((48, rows))
    lengths = np.linalg.norm(several, axis=1)[:, None] * np.linalg.norm(matrix, axis=0)
    error = np.abs(products(matrix, several, np.float32) - several @ matrix) / lengths
    assert 0.02 * relative_error(rows) < error.max() <= relative_error(rows)


def test_a_product_does_not_depend_on_the_place_of_its_vector():
    rng = np.random.default_rng(1)
    matrix, several = rng.standard_normal((40, 50)), rng.standard_normal((20, 40))
    together = products(matrix, several)
    for i in range(20):
        assert np.array_equal(products(matrix, several[i : i + 1])[0], together[i])
        assert np.array_equal(products(matrix[:, ::-1], several[: i + 1])[i, ::-1], together[i])
