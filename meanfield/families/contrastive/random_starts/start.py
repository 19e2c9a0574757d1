"""Linear regime of a random start: directions of growth around q = 0, and the random amplitudes along them.

A random start has sqrt(N) q(0) ~ N(0, I). While q is small, sqrt(N) q = sum_k v_k exp(j_k t) Y_k with eigenvectors v_k
and eigenvalues j_k of J0 = db/dq at 0, which is symmetric: there b = -grad <s1 s2> and a multiple of q. Along
directions that grow the noise of early steps counts as much as the start does:

    Cov[Y_k, Y_l] = delta_kl + S_kl/(j_k + j_l)

with S = S(0) in the basis of the v_k. Along the others |q_k| stays of order 1/sqrt(N): they do not matter in the limit.
Source: theory.md, section 5; for hidden variables that depend on each other the v_k are not the features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.noise import StepNoise
from meanfield.families.contrastive.order_parameters.table import MOST_FEATURES, BallTable, into_ball
from meanfield.families.contrastive.problem import Problem
from meanfield.typing import FloatArray


@dataclass(frozen=True)
class RandomStart:
    """The linear regime of one problem from a random start.

    Parameters
    ----------
    field : VectorField
    growth_rates : ndarray, shape (d1,)
        Eigenvalues j_k of db/dq at q = 0, decreasing.
    directions : ndarray, shape (d1, d1)
        Orthonormal eigenvectors v_k in columns: axes of single features where hidden variables are independent.
    growing : int
        Number of positive j_k; the other directions never grow.
    covariance : ndarray, shape (growing, growing)
        Covariance of the amplitudes Y along directions that grow.
    """

    field: VectorField
    growth_rates: FloatArray
    directions: FloatArray
    growing: int
    covariance: FloatArray

    @cached_property
    def drift(self) -> Callable[[FloatArray], FloatArray]:
        """Velocity dq/dt at many points, (n, d1) -> (n, d1): by a table, to about 1e-5, for at most two features."""
        features = self.field.features
        values = BallTable(self.field, features) if features <= MOST_FEATURES else self.field
        return lambda q: values(into_ball(q))

    def amplitudes(self, samples: int, seed: int = 0) -> FloatArray:
        """Amplitudes Y, shape (samples, growing), by a scrambled Sobol sequence: best where `samples` is a power of 2.

        Parameters
        ----------
        samples : int
        seed : int
            Seed of the scrambling; different seeds are independent.
        """
        from scipy.stats import qmc  # imported where it is used: it takes longer than most scripts run

        law = qmc.MultivariateNormalQMC(np.zeros(self.growing), self.covariance, seed=np.random.default_rng(seed))
        return np.asarray(law.random(samples))

    def check_grows(self) -> None:
        """Refuse problems whose random start never escapes in the limit.

        Raises
        ------
        InputError
            If q = 0 is stable or marginal.
        """
        if not self.growing:
            raise InputError(
                f"model: from a random start q stays at 0, which is stable: growth rates {_listed(self.growth_rates)}; "
                "nothing is learnt in the limit. Raise model.batch_size, lower model.learning_rate, or give the "
                "hidden variables larger second moments"
            )


def random_start(problem: Problem) -> RandomStart:
    """Linearise the ODE at q = 0.

    Parameters
    ----------
    problem : Problem
        Problem with a prior that closes the ODEs. Its initial overlaps do not matter: the start is random.

    Raises
    ------
    InputError
        If the prior does not close the ODEs, q = 0 is no fixed point, or S(0) is not known.
    """
    field = VectorField(problem)
    origin = np.zeros(field.features)
    drift = float(np.abs(field(origin)).max())
    rounding = 1e-9 * problem.model.learning_rate
    if drift > rounding:
        raise InputError(
            f"features.hidden: q = 0 is no fixed point (|dq/dt| = {drift:.3g}): a hidden variable whose mean is not 0 "
            "pulls the weights from the first step, and no chance is involved; use hidden laws with mean 0, or solve "
            "the order parameters from initial_overlap = 0.0"
        )
    slope = field.jacobian(origin)
    rates, directions = np.linalg.eigh(np.where(np.abs(slope) > rounding, slope, 0.0))
    order = np.argsort(-rates, kind="stable")
    rates, directions = rates[order], directions[:, order]
    growing = int(np.sum(rates > rounding))
    noise = directions.T @ StepNoise(field)(origin) @ directions
    sums = rates[:growing, None] + rates[:growing]
    covariance = np.eye(growing) + noise[:growing, :growing] / sums
    return RandomStart(field, rates, directions, growing, covariance)


def _listed(values: FloatArray) -> str:
    return ", ".join(f"{value:.3g}" for value in values)
