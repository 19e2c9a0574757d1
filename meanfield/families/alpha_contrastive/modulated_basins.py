"""Basins of a pattern that gets a bonus from other places: theorem 6 and equation 155 of the paper.

For A(w) = sum_l g(u_l.w) u_l u_l^T with orthonormal u_l and g(y) = a y + b, and a bonus c u_1 u_1^T, the coordinates
y_l = u_l.w of a unit filter move by dy_l/dt = a y_l^2 + c y_l [l = 1], up to what goes along y: b drops out, so that
basins depend on c/a alone. Equation 155 is the chance that Y_1 > 0 and Y_1 + eps is the largest of all Y_l, for Y
uniform in the cube [-1, 1]^d. For d = 2 it is exact on the sphere, where the edge of the basin is y_2 - y_1 = c/a, with
eps = c |Y|/a; eps = c sqrt(d/3)/a is that of the usual length of Y.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.arguments import wrong
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

USUAL = tuple(np.linspace(-1.5, 1.5, 25).tolist())


def chance_of_pattern(advantage: FloatArray, d: int) -> FloatArray:
    """Chance that Y_1 > 0 and Y_1 + advantage > Y_l for all l, Y uniform in [-1, 1]^d (paper, equation 155)."""
    eps = np.clip(advantage, -2.0, 1.0)
    ahead = 0.5 * (1.0 + np.maximum(eps, -1.0))  # the others stay below 0 + eps with this chance each
    up = (1.0 - ahead**d) / d + 0.5 * eps
    down = ((1.0 + 0.5 * eps) ** d - ahead**d) / d
    return np.where(eps >= 0.0, up, down)


@solver
def modulated_basins(problem: Problem, advantages: Sequence[float] = USUAL) -> Solved:
    """Share of random filters that come to a pattern whose place gets a bonus from others, and the chance of (155).

    Parameters
    ----------
    problem : Problem
        Of which the number of coordinates of a filter counts, and `critical_points.starts` and `critical_points.seed`
        of the filters that are followed, uniform in a cube and divided by their length.
    advantages : sequence of float
        eps of equation 155, increasing; the bonus of a unit filter is c/a = eps sqrt(3/d).

    Returns
    -------
    xarray.Dataset
        Along `advantage`: `bonus`, `chance`, `basin_share` and `basin_share_error`, its standard error.

    Raises
    ------
    InputError
        If the advantages do not increase.

    Notes
    -----
    Source: alpha_contrastive.md, section 6.

    Examples
    --------
    >>> import meanfield
    >>> problem = meanfield.load_problem("data/problems/nine_points.toml")
    >>> basins = meanfield.alpha_contrastive.modulated_basins(problem, [0.0, 0.5])
    >>> print(basins["chance"].values)
    [0.375   0.46875]
    """
    check_problem(problem, Problem)
    eps = np.asarray(advantages, dtype=float)
    if eps.ndim != 1 or not eps.size or not np.all(np.isfinite(eps)) or np.any(np.diff(eps) <= 0.0):
        raise wrong("advantages", advantages, "give one or more numbers that increase, such as [-0.5, 0.0, 0.5]")
    d, starts = problem.shape[2], problem.critical_points.starts
    first = np.random.default_rng(problem.critical_points.seed).uniform(-1.0, 1.0, (starts, d))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    bonus = eps * np.sqrt(3.0 / d)
    share = np.array([np.mean(_end(first, c)[:, 0] > np.sqrt(0.5)) for c in bonus])
    arrays = {
        "advantage": eps,
        "bonus": bonus,
        "chance": chance_of_pattern(eps, d),
        "basin_share": share,
        "basin_share_error": np.sqrt(share * (1.0 - share) / starts),
    }
    return Solved("modulated_basins", arrays)


def _end(y: FloatArray, bonus: float) -> FloatArray:
    """Where filters come to rest, by Runge-Kutta steps that follow each at its own rate."""
    y, active = y.copy(), np.arange(len(y))
    for _ in range(600):  # by then deviations near the edge of a basin have grown by e^30
        part = y[active]
        dt = 0.2 / (np.abs(part).max(axis=1, keepdims=True) + abs(bonus))  # by the fastest rate
        k1 = _rate(part, bonus)
        k2 = _rate(part + 0.5 * dt * k1, bonus)
        k3 = _rate(part + 0.5 * dt * k2, bonus)
        k4 = _rate(part + dt * k3, bonus)
        moved = part + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        y[active] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
        active = active[y[active].max(axis=1) < 1.0 - 1e-3]  # patterns attract from there, for a bonus above -1
        if not len(active):
            break
    return y


def _rate(y: FloatArray, bonus: float) -> FloatArray:
    force = y * y
    force[:, 0] += bonus * y[:, 0]
    return np.asarray(force - np.sum(force * y, axis=1, keepdims=True) * y)
