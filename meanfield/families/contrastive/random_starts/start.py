"""Linear regime of a random start: directions of growth around q = 0, amplitudes along them, and the time of escape.

A random start has sqrt(N) q(0) ~ N(0, I). While q is small, sqrt(N) q = sum_k v_k exp(j_k t) Y_k with eigenvectors v_k
and eigenvalues j_k of J0 = db/dq at 0, which is symmetric: there b = -grad <s1 s2> and a multiple of q. Along
directions that grow the noise of early steps counts as much as the start does:

    Cov[Y_k, Y_l] = delta_kl + S_kl/(j_k + j_l)

with S = S(0) in the basis of the v_k. Along the others |q_k| stays of order 1/sqrt(N): they do not matter in the limit.
For hidden variables that depend on each other the v_k are not the features.

Where one direction grows, the path leaves the origin like q = v exp(j t) Y/sqrt(N), to either side, and is
deterministic from there on. So the time of escape is

    T = (log(sqrt(N)/|Y|) + c)/j,   c = lim_{e -> 0} [ j t(e -> escape) + log e ],   Y ~ N(0, 1 + S(0)/(2 j))

with t(e -> escape) the time that the ODE takes from q = e v. Exact as N -> infinity; corrections are of order 1/N.
Source: theory.md, section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from meanfield.errors import InputError
from meanfield.families.contrastive.order_parameters.field import VectorField
from meanfield.families.contrastive.order_parameters.table import MOST_FEATURES, BallTable, into_ball
from meanfield.families.contrastive.order_parameters.trajectory import StepNoise
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.problems.base import check_problem, schedules_of
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
        return amplitudes_of(self.covariance, samples, seed)

    def check_grows(self) -> None:
        """Refuse problems whose random start never escapes in the limit.

        Raises
        ------
        InputError
            If q = 0 is stable or marginal.
        """
        if not self.growing:
            rates = ", ".join(f"{rate:.3g}" for rate in self.growth_rates)
            raise InputError(
                f"model: from a random start q stays at 0, which is stable: growth rates {rates}; "
                "nothing is learnt in the limit. Raise model.batch_size, lower model.learning_rate, or give the "
                "hidden variables larger second moments"
            )


def amplitudes_of(covariance: FloatArray, samples: int, seed: int) -> FloatArray:
    """Gaussian amplitudes; see `RandomStart.amplitudes`."""
    from scipy.stats import qmc  # imported where it is used: it takes longer than most scripts run

    law = qmc.MultivariateNormalQMC(np.zeros(len(covariance)), covariance, seed=np.random.default_rng(seed))
    return np.asarray(law.random(samples))


def random_start(problem: Problem) -> RandomStart:
    """Linearise the ODE at q = 0.

    Parameters
    ----------
    problem : Problem
        Problem with a prior that closes the ODEs. Its initial overlaps do not matter: the start is random.

    Raises
    ------
    InputError
        If the prior does not close the ODEs, q = 0 is no fixed point, S(0) is not known, or something changes in time.
    """
    check_problem(problem, Problem)
    changing = "phases" if problem.phases is not None else next(iter(schedules_of(problem)), "")
    if changing:
        raise InputError(
            f"{changing}: changes in time, and this is growth at constant rates; take outcomes_in_time, which has "
            "escape times and winners, or give meanfield.at_time(problem, t)"
        )
    field = VectorField(problem)
    rounding = check_rests(field)
    origin = np.zeros(field.features)
    slope = field.jacobian(origin)
    rates, directions = np.linalg.eigh(np.where(np.abs(slope) > rounding, slope, 0.0))
    order = np.argsort(-rates, kind="stable")
    rates, directions = rates[order], directions[:, order]
    growing = int(np.sum(rates > rounding))
    noise = directions.T @ StepNoise(field)(origin) @ directions
    sums = rates[:growing, None] + rates[:growing]
    covariance = np.eye(growing) + noise[:growing, :growing] / sums
    return RandomStart(field, rates, directions, growing, covariance)


def check_rests(field: VectorField) -> float:
    """Refuse fields that do not vanish at q = 0, and return what of them is rounding."""
    drift = float(np.abs(field(np.zeros(field.features))).max())
    rounding = 1e-9 * field.problem.model.rate
    if drift > rounding:
        raise InputError(
            f"features.hidden: q = 0 is no fixed point (|dq/dt| = {drift:.3g}): a hidden variable whose mean is not 0 "
            "pulls the weights from the first step, and no chance is involved; use hidden laws with mean 0, or solve "
            "the order parameters from initial_overlap = 0.0"
        )
    return rounding


def check_overlap(overlap: float) -> None:
    """Refuse lengths that overlaps do not have."""
    if not 0.0 < overlap <= 1.0:
        raise InputError(f"escape_overlap = {overlap}: |q| never reaches it from 0; give a number in (0, 1]")


@dataclass(frozen=True)
class EscapeLaw:
    """The law of the escape time.

    Parameters
    ----------
    rate : float
        Growth rate j.
    deviation : float
        Standard deviation of the amplitude Y.
    constants : ndarray, shape (2,)
        Values of c towards +v and towards -v; infinite where q settles before it escapes.
    """

    rate: float
    deviation: float
    constants: FloatArray

    def distribution(self, t: FloatArray | float, N: float) -> FloatArray:
        """Distribution function P(T <= t), of the shape of t."""
        distance = np.sqrt(N) * np.exp(self.constants - self.rate * np.asarray(t)[..., None])
        return np.asarray(ndtr(-distance / self.deviation).sum(axis=-1))

    def density(self, t: FloatArray, N: float) -> FloatArray:
        """Density dP(T <= t)/dt of the escape time."""
        distance = np.sqrt(N) * np.exp(self.constants - self.rate * np.asarray(t)[..., None]) / self.deviation
        finite = np.where(np.isfinite(distance), distance, 0.0)
        return np.asarray((self.rate * finite * np.exp(-0.5 * finite**2)).sum(axis=-1) / np.sqrt(2 * np.pi))

    def quantile(self, probability: float, N: float) -> float:
        """Time by which a share of replicas has escaped; infinite if fewer ever escape."""
        if not 0.0 < probability < 1.0:
            raise InputError(f"probability = {probability} has no quantile; give a number between 0 and 1")
        finite = self.constants[np.isfinite(self.constants)]
        if probability >= 0.5 * len(finite):
            return float("inf")
        # |Y| lies between these for all but 1e-300 of replicas on one side, and for all but `probability` on the other.
        middle = (0.5 * np.log(N) + finite - np.log(self.deviation)) / self.rate
        low, high = middle.min() - np.log(40.0) / self.rate, middle.max() + (40.0 - np.log1p(-probability)) / self.rate
        return float(brentq(lambda t: float(self.distribution(t, N)) - probability, low, high, xtol=1e-12))


def escape_law(start: RandomStart, overlap: float) -> EscapeLaw:
    """The law of the time at which |q| first reaches an overlap.

    Parameters
    ----------
    start : RandomStart
        Start of a problem in which exactly one direction grows, with any number of features.
    overlap : float
        Overlap that counts as escape, in (0, 1], such as `particles.escape_overlap`.

    Raises
    ------
    InputError
        If none or several directions grow, or q settles below that overlap.
    """
    start.check_grows()
    check_overlap(overlap)
    if start.growing > 1:
        raise InputError(
            f"features: {start.growing} directions grow from a random start, so the escape time has no closed form; "
            "use limit_outcomes, which samples it"
        )
    constants = np.array([_constant(start, side, overlap) for side in (1.0, -1.0)])
    if not np.isfinite(constants).any():
        raise InputError(
            f"escape_overlap = {overlap}: q settles before |q| reaches it, so that no replica escapes in the limit; "
            "lower it"
        )
    return EscapeLaw(float(start.growth_rates[0]), float(np.sqrt(start.covariance[0, 0])), constants)


def _constant(start: RandomStart, side: float, overlap: float) -> float:
    first = 1e-4 * overlap
    near, far = (_time(start, side * size, overlap) for size in (first, 2 * first))
    if not np.isfinite(near):
        return float("inf")
    rate = start.growth_rates[0]
    return float(2 * (rate * near + np.log(first)) - (rate * far + np.log(2 * first)))


def _time(start: RandomStart, size: float, overlap: float) -> float:
    """Time from q = size v to |q| = overlap; infinite if it is never reached."""

    def escapes(t: float, q: FloatArray) -> float:
        return float(q @ q - overlap * overlap)

    # The tolerance is that of q and of |q| at the start: c is a small difference of two times.
    path = solve_ode(
        lambda t, q: start.field(q),
        size * start.directions[:, 0],
        (0.0, 200.0 / start.growth_rates[0]),  # after which a path counts as never escaping
        Tolerance(1e-12, 1e-12 * abs(size)),
        integrator="DOP853",
        stops=[escapes],
    )
    return path.end_time if path.stopped_by is not None else float("inf")
