"""Covariance S(q) of one SGD step of the overlaps, which drives their fluctuations at order 1/sqrt(N).

In the limit a step adds (1/N)(1/m) sum_b Y_b to q, with independent samples b and

    Y = tau A - q tau^2 B/(2m),   A = (alpha + beta)(c - q b) + alpha xi_1 + beta xi_2,
    B = alpha^2 (1 + v11) + beta^2 (1 + v22) + 2 alpha beta (1 + v12)

where b = c.q + sqrt(1 - q.q) e, and xi_l ~ N(0, v (1 - q q^T)) is what the noise of view l along the features has
besides what moves the pre-activations (eta_l = q zeta_l + xi_l). Hence E[Y] = dq/dt, and S = Cov[Y]/m.
Source: theory.md, section 4.
"""

from __future__ import annotations

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures.sensitivities import Sensitivities
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.problem import Problem
from meanfield.typing import FloatArray

ALPHA_PLUS_BETA = np.array([1.0, 1.0])
"""Coefficients of alpha + beta in alpha and beta."""


class StepNoise:
    """Covariance S(q) of one step of a problem, inside the unit ball.

    Parameters
    ----------
    field : VectorField
        Vector field of a problem whose samples are independent within a step: centring none or population.

    Raises
    ------
    InputError
        If centring is by the batch, a hidden law lacks the moments that S needs, or the products of the activation that
        S averages are not resolved.

    Notes
    -----
    All quantities are dimensionless. A prior with linear phi acts on the norm alone and adds nothing. The mean outputs
    of population centring are constants within a step, whatever they depend on. Errors are below 1e-9 of S, except
    where |q| > 0.999 and a uniform hidden variable meets a kink that no noise smooths: up to 1e-4 at 0.99999.
    """

    def __init__(self, field: VectorField) -> None:
        problem = field.problem
        check_independent(problem)
        self.features = field.features
        self._tau, self._m = problem.model.learning_rate, problem.model.batch_size
        v = problem.noise_covariance
        # Quadratic forms in alpha and beta: coefficients of alpha^2, alpha beta and beta^2
        self._own = np.array([v[0, 0], 2 * v[0, 1], v[1, 1]])
        self._squared_length = np.array([1 + v[0, 0], 2 * (1 + v[0, 1]), 1 + v[1, 1]])
        self._sensitivities = Sensitivities(field.closure, problem)

    def __call__(self, q: FloatArray) -> FloatArray:
        """Covariance S(q), shape (d1, d1); NaN outside the unit ball."""
        return self.moments(q)[1]

    def moments(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """N times the mean of a step, which is dq/dt, shape (d1,), and S(q), shape (d1, d1)."""
        q = np.ascontiguousarray(q, dtype=float)
        d1 = self.features
        if not q @ q <= 1.0:
            return np.full(d1, np.nan), np.full((d1, d1), np.nan)
        first, second, third, fourth = self._sensitivities(q)
        of_x, of_xx = slice(1, 1 + d1), slice(1 + d1, None)
        length = self._squared_length
        A = ALPHA_PLUS_BETA @ first[:, of_x]
        B = length @ second[:, 0]
        AA = (np.convolve(ALPHA_PLUS_BETA, ALPHA_PLUS_BETA) @ second[:, of_xx]).reshape(d1, d1)
        AA += (self._own @ second[:, 0]) * (np.eye(d1) - np.outer(q, q))
        AB = np.convolve(ALPHA_PLUS_BETA, length) @ third[:, of_x]
        BB = np.convolve(length, length) @ fourth[:, 0]
        tau, shrinking = self._tau, 0.5 * self._tau**2 / self._m * q
        mean = tau * A - shrinking * B
        mixed = tau * np.outer(AB, shrinking)
        square = tau**2 * AA - mixed - mixed.T + np.outer(shrinking, shrinking) * BB
        return mean, (square - np.outer(mean, mean)) / self._m


def check_independent(problem: Problem) -> None:
    """Refuse batches whose samples depend on each other.

    Raises
    ------
    InputError
        If centring is by the batch.
    """
    if problem.model.centering == "batch":
        raise InputError(
            "model.centering = 'batch': fluctuations of the overlaps are known for samples that are independent within "
            "a step; set it to 'none' or 'population', or use SGD"
        )
