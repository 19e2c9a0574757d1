"""Which of two features wins from a random start: the separatrix near q = 0.

Two features that both grow, at rates j_1 > j_2, compete where neither recovery state attracts everything: between their
regions of attraction lies the stable manifold of a saddle, which leaves the origin as |q_2| = K |q_1|^(j_2/j_1). Paths
with larger amplitudes of feature 2 go to its state, so that

    P(feature 2 wins) = P(|Y_2| > K N^((1 - j_2/j_1)/2) |Y_1|^(j_2/j_1)).

Traced backward from the saddle the manifold attracts its neighbours, and log |q_2| - (j_2/j_1) log |q_1| converges to
log K like |q|^2. Source: theory.md, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

from meanfield.errors import InputError
from meanfield.families.contrastive.fixed_points.points import find_fixed_points
from meanfield.families.contrastive.fixed_points.symmetries import is_reflected, sign_symmetries
from meanfield.families.contrastive.random_starts.start import RandomStart
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.typing import FloatArray

TRACES = ((1e-5, 1e-4, 1e-12), (1e-4, 1e-3, 1e-10))
"""Distances from the saddle where a trace begins and from the origin where it ends, and tolerances of a step of log q,
far below the error that these distances leave: the first trace gives K, and the second one its error."""


@dataclass(frozen=True)
class Separatrix:
    """Separatrix |q_2| = K |q_1|^exponent near the origin, where 1 is the feature that grows faster.

    Parameters
    ----------
    K : float
    K_error : float
        Estimated error of K.
    exponent : float
        Ratio j_2/j_1 of the growth rates.
    saddle : ndarray, shape (2,)
        Overlaps of the saddle whose stable manifold is the separatrix, in the quadrant of positive overlaps.
    fast, slow : int
        Indices of features 1 and 2.
    """

    K: float
    K_error: float
    exponent: float
    saddle: FloatArray
    fast: int
    slow: int


def find_separatrix(start: RandomStart) -> Separatrix | None:
    """The separatrix of two features.

    Parameters
    ----------
    start : RandomStart

    Returns
    -------
    Separatrix or None
        None if the same state is reached from all random starts in the limit, so that no chance is involved.

    Raises
    ------
    InputError
        If there are not two features that both grow, the signs of overlaps matter, or regions of attraction have more
        borders than one in a quadrant.
    """
    _check(start)
    axes = np.abs(start.directions).argmax(axis=0)
    points = find_fixed_points(start.field).points
    saddles = [point.q for point in points if point.kind == "saddle" and np.all(point.q > 1e-6)]
    leading = [q for q in saddles if np.isfinite(_trace(start, axes, q, *TRACES[-1]))]
    if not leading:
        return None
    if len(leading) > 1:
        raise InputError(
            f"features: {len(leading) + 1} regions of attraction meet at q = 0 in one quadrant; use limit_outcomes"
        )
    (saddle,) = leading
    finer, coarser = np.exp([_trace(start, axes, saddle, *settings) for settings in TRACES])
    exponent = float(start.growth_rates[1] / start.growth_rates[0])
    truncated = (finer - coarser) / ((TRACES[1][1] / TRACES[0][1]) ** 2 - 1.0)  # like |q|^2 where a trace ends
    return Separatrix(float(finer + truncated), float(abs(truncated)), exponent, saddle, int(axes[0]), int(axes[1]))


def selection_probability(separatrix: Separatrix, start: RandomStart, N: float) -> float:
    """Chance that the slower feature wins at large N, by quadrature over the amplitudes.

    Parameters
    ----------
    separatrix : Separatrix
        Separatrix of the same problem.
    start : RandomStart
    N : float

    Notes
    -----
    Exact as N -> infinity, where it goes to 0. Corrections are of relative order 1/N, with a large factor: paths that
    are close to the separatrix escape along both features at once, and then noise of order 1/sqrt(N) pushes them to
    either side. `langevin_outcomes` has them.
    """
    fast, slow = np.sqrt(np.diag(start.covariance))
    p = separatrix.exponent
    height = separatrix.K * N ** ((1 - p) / 2) * fast**p / slow
    density = 2.0 / np.sqrt(2 * np.pi)
    return float(quad(lambda y: density * np.exp(-0.5 * y * y) * 2 * ndtr(-height * y**p), 0.0, np.inf)[0])


def _check(start: RandomStart) -> None:
    start.check_grows()
    if start.field.features != 2 or start.growing != 2:
        raise InputError(
            f"features: {start.growing} of {start.field.features} grow from a random start, but a separatrix is "
            "between two that both grow; use limit_outcomes, which takes any number"
        )
    if not is_reflected(sign_symmetries(start.field)):
        raise InputError(
            "features.hidden: the sign of an overlap matters, so that quadrants have separatrices of their own; use "
            "limit_outcomes, or hidden laws that are symmetric and independent"
        )


def _trace(
    start: RandomStart, axes: FloatArray, saddle: FloatArray, away: float, least: float, tolerance: float
) -> float:
    """Logarithm of K by the stable manifold of the saddle, backward in log q; NaN if it does not lead to q = 0."""
    field = start.field
    exponent = start.growth_rates[1] / start.growth_rates[0]
    values, vectors = np.linalg.eig(field.jacobian(saddle))
    stable = vectors[:, values.real.argmin()].real
    stable *= np.sign(-stable @ saddle) * away

    def backward(t: float, logs: FloatArray) -> FloatArray:
        q = np.exp(np.maximum(logs, np.log(least) - 1.0))  # a smaller |q_k| makes no difference to b_k/q_k but rounding
        return np.asarray(-field(q) / q)

    def is_near(t: float, logs: FloatArray) -> float:
        return float(logs.max() - np.log(least))

    longest = 1e4 / float(start.growth_rates[1])
    begin = np.log(saddle + stable)
    both = Tolerance(tolerance, tolerance)
    path = solve_ode(backward, begin, (0.0, longest), both, integrator="DOP853", stops=[is_near])
    if path.stopped_by is None:
        return np.nan
    return float(path.end[axes[1]] - exponent * path.end[axes[0]])
