"""Selling's decomposition of a diffusion matrix into directions of a square lattice.

A symmetric positive definite D is a sum of at most three terms rho e e^T with weights rho >= 0 and integer vectors e,
so that diffusion in the plane is diffusion along three families of lattice lines, and finite volumes along these have
fluxes of one sign. Source: several_channels.md, section 5.
"""

from __future__ import annotations

import numpy as np

from meanfield.typing import FloatArray, IntArray


def selling(D: FloatArray) -> tuple[FloatArray, IntArray]:
    """Weights and directions with D = sum_s rho_s e_s e_s^T.

    Parameters
    ----------
    D : ndarray, shape (2, 2)
        Symmetric and positive definite.

    Returns
    -------
    rho : ndarray, shape (3,)
        Weights, none of them negative.
    directions : ndarray of int, shape (3, 2)
        Vectors e_s without a common factor, whose first number that is not 0 is positive.

    Raises
    ------
    ValueError
        If D is not positive definite, or so nearly singular that the reduction does not end.
    """
    if not (D[0, 0] > 0 and D[0, 0] * D[1, 1] - D[0, 1] * D[1, 0] > 0):
        raise ValueError("the matrix is not positive definite")
    basis = np.array([[-1, -1], [1, 0], [0, 1]])
    for _ in range(1000):  # steps, whose number grows like the square root of the anisotropy
        products = np.array([basis[(s + 1) % 3] @ D @ basis[(s + 2) % 3] for s in range(3)])
        worst = int(np.argmax(products))
        if products[worst] <= 0:
            # Each direction is orthogonal to the vector of the superbase that its weight leaves out.
            directions = basis[:, ::-1] * [1, -1]
            sign = np.where((directions[:, 0] < 0) | ((directions[:, 0] == 0) & (directions[:, 1] < 0)), -1, 1)
            return -products, directions * sign[:, None]
        first, second = basis[(worst + 1) % 3], basis[(worst + 2) % 3]
        basis = np.array([-first, second, first - second])
    raise ValueError("the matrix is too nearly singular")
