"""The escape time from a random start where one direction grows: its law in closed form.

The path leaves the origin like q = v exp(j t) Y/sqrt(N), to either side, and is deterministic from there on. So

    T = (log(sqrt(N)/|Y|) + c)/j,   c = lim_{e -> 0} [ j t(e -> escape) + log e ],   Y ~ N(0, 1 + S(0)/(2 j))

with t(e -> escape) the time that the ODE takes from q = e v. Exact as N -> infinity; corrections are of order 1/N.
Source: theory.md, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from meanfield.errors import InputError
from meanfield.families.contrastive.random_starts.start import RandomStart
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.typing import FloatArray


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
    if not 0.0 < overlap <= 1.0:
        raise InputError(f"escape_overlap = {overlap}: |q| never reaches it from 0; give a number in (0, 1]")
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
