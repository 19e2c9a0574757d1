"""Power iteration w <- A(w) w/|A(w) w| at a critical point, and the constants of its existence theorem.

For h(z) = h'(z) z the field is A(w) w, so that the change of A comes from the Jacobian J on the tangent space: with
l = w.A w and A_t, A on the tangent space, d(A(v) w)/dv = J + l - A_t, and the iteration has the Jacobian (J + l)/l
(alpha_contrastive.md, section 3).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.typing import FloatArray

SECOND_ORDER_BOUND = 1.5
"""Bound of the second order of an eigenvector, in units of the change of the matrix over the gap, squared: with a the
element of the change at the eigenvector it is at most ((1 + a) sqrt(1 - a^2), (1 - a^2)/2)."""

NAMES = ("roughness", "power_factor", "cosine_top", "mu", "nu", "omega")


def existence_constants(
    values: FloatArray, cosine: float, lipschitz: float, kappa: float | None = None
) -> dict[str, float]:
    """Constants of the theorem by which power iteration converges where omega < 1 around a point.

    Parameters
    ----------
    values : ndarray
        Eigenvalues of A(w), increasing.
    cosine : float
        c = |w.phi_1|.
    lipschitz : float
        L, the Lipschitz constant of A.
    kappa : float, optional
        Bound of the second order of the top eigenvector; by perturbation theory if it is not given.

    Returns
    -------
    dict
        mu = (1 + c)/(2 c^2) (l_2/l_1)^2, nu = 2 kappa L^2 (1 + mu c) + (2 L/gap) sqrt(mu (1 + mu c)), omega = mu + nu.
    """
    gap = float(values[-1] - values[-2])
    if cosine <= 1e-9 or gap <= 0.0:  # eigenvectors of different eigenvalues, to rounding
        return dict.fromkeys(("mu", "nu", "omega"), np.inf)
    mu = (1.0 + cosine) / (2.0 * cosine**2) * float(values[-2] / values[-1]) ** 2
    kappa = SECOND_ORDER_BOUND / gap**2 if kappa is None else kappa
    inner = 1.0 + mu * cosine
    nu = 2.0 * kappa * lipschitz**2 * inner + 2.0 * lipschitz / gap * np.sqrt(mu * inner)
    return {"mu": mu, "nu": float(nu), "omega": float(mu + nu)}


def at_point(
    matrix: Callable[[FloatArray], FloatArray], w: FloatArray, J: FloatArray, basis: FloatArray
) -> dict[str, float]:
    """Quantities of a critical point between walls, for h(z) = h'(z) z.

    Parameters
    ----------
    matrix : callable
        A(w).
    w : ndarray, shape (coordinates,)
    J : ndarray, shape (coordinates - 1, coordinates - 1)
        Jacobian on the tangent space, alpha moving.
    basis : ndarray, shape (coordinates, coordinates - 1)
    """
    A = matrix(w)
    level = float(w @ A @ w)
    change = J + level * np.eye(len(J)) - basis.T @ A @ basis
    values, vectors = np.linalg.eigh(A)
    cosine = min(1.0, abs(float(vectors[:, -1] @ w)))
    slopes = [(matrix(w + 1e-5 * e) - matrix(w - 1e-5 * e)) / 2e-5 for e in basis.T]
    lipschitz = float(np.sqrt(sum(np.linalg.norm(slope, 2) ** 2 for slope in slopes)))
    factor = float(np.abs(1.0 + np.linalg.eigvalsh(J) / level).max()) if level > 0.0 else np.inf
    own = {"roughness": float(np.linalg.norm(change, 2)), "power_factor": factor, "cosine_top": cosine}
    found = own | existence_constants(values, cosine, lipschitz)
    return {name: value if np.isfinite(value) else np.nan for name, value in found.items()}
