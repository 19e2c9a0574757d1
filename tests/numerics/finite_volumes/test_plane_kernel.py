"""Selling's decomposition: a reference, and what makes it one, for random matrices."""

import numpy as np
import pytest

from meanfield.numerics.finite_volumes.plane_kernel import selling


def test_a_reference():
    """several_channels.md, section 5: weights to the digits that are printed there."""
    rho, directions = selling(np.array([[0.02773356, 0.018193015], [0.018193015, 0.021353715]]))
    found = {tuple(e): r for e, r in zip(directions.tolist(), rho.tolist(), strict=True)}
    assert found == pytest.approx({(1, 1): 0.018193015, (1, 0): 0.009540545, (0, 1): 0.0031607}, abs=1e-12)  # rounding


def test_weights_are_positive_and_give_the_matrix_back():
    rng = np.random.default_rng(0)
    for _ in range(300):
        root = rng.normal(size=(2, 2))
        D = root @ root.T + 1e-6 * np.eye(2)
        rho, e = selling(D)
        assert (rho >= 0).all()
        assert np.abs(np.einsum("s,si,sj", rho, e, e) - D).max() <= 1e-8 * np.abs(D).max()  # rounding, times |e|^2
        assert (np.gcd(*e.T) == 1).all()


@pytest.mark.parametrize("D", [np.ones((2, 2)), np.diag([1.0, -1.0]), np.full((2, 2), np.nan)])
def test_other_matrices_are_refused(D):
    with pytest.raises(ValueError, match="not positive definite"):
        selling(D)
