"""Products of a matrix with many vectors: against NumPy, and the same bits wherever a vector stands."""

import numpy as np
import pytest

from meanfield.numerics.compiled.matrix_products import TOGETHER, multiply, pack, tiles_for, unpack


def products(matrix, vectors):
    panels, tiles = pack(matrix), tiles_for(len(vectors), len(matrix))
    for i, vector in enumerate(vectors):
        tiles[i // TOGETHER, :, i % TOGETHER] = vector
    out = np.empty((len(tiles) * TOGETHER, panels.shape[0] * panels.shape[2]))
    multiply(panels, tiles, len(vectors), out)
    return out[: len(vectors), : matrix.shape[1]]


@pytest.mark.parametrize(("rows", "columns", "vectors"), [(1, 1, 1), (5, 37, 7), (33, 16, 6), (50, 100, 48)])
def test_products_are_right(rows, columns, vectors):
    rng = np.random.default_rng(0)
    matrix, several = rng.standard_normal((rows, columns)), rng.standard_normal((vectors, rows))
    assert np.array_equal(unpack(pack(matrix), columns), matrix)
    bound = rows * np.finfo(float).eps * (np.abs(several) @ np.abs(matrix))  # of any order of summation
    assert np.all(np.abs(products(matrix, several) - several @ matrix) <= bound)


def test_a_product_does_not_depend_on_the_place_of_its_vector():
    rng = np.random.default_rng(1)
    matrix, several = rng.standard_normal((40, 50)), rng.standard_normal((20, 40))
    together = products(matrix, several)
    for i in range(20):
        assert np.array_equal(products(matrix, several[i : i + 1])[0], together[i])
        assert np.array_equal(products(matrix[:, ::-1], several[: i + 1])[i, ::-1], together[i])
