"""Residual of a stationary state by quadrature of its explicit density, independent of the library's.

P(w|u) ~ exp((2/Lambda)(G w^2/2 - u.g w - tau Phi(w))) must have E[u w] = q and E[w^2] = 1 (theory.md, section 6).
Gauss-Legendre panels in w end at the kinks of the prior and cover where the density is not negligible; u has rules of
more nodes than the library takes.
"""

from __future__ import annotations

import itertools

import numpy as np
import xarray as xr

from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.priors import potential_of
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray

NODES = {1: 161, 2: 61}
"""Number of nodes of a smooth coordinate law by the number of features."""

NEGLIGIBLE = -60.0
"""Logarithm of a density, relative to its largest value, below which it is left out."""

SCAN = np.sinh(np.linspace(-12.0, 12.0, 4801))
"""Weights at which the range of a density is looked for."""

PANELS = 400
_X, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def stationary_residual(problem: Problem, state: xr.Dataset) -> float:
    """Largest of |E[u w] - q| and |E[w^2] - 1| of one stationary state.

    Parameters
    ----------
    problem : Problem
        With one or two features.
    state : xarray.Dataset
        Result of the stationary solver at one state.
    """
    q, g = np.atleast_1d(state["q"].values), np.atleast_1d(state["g"].values)
    rules = [feature.coordinate.quadrature(NODES[len(q)]) for feature in problem.features]
    u = np.array(list(itertools.product(*(nodes for nodes, _ in rules))))
    weight = np.array([np.prod(part) for part in itertools.product(*(weights for _, weights in rules))])
    mean, square = np.zeros(len(u)), np.zeros(len(u))
    tilts, places = np.unique(u @ g, return_inverse=True)
    for k, tilt in enumerate(tilts):
        mean[places == k], square[places == k] = _moments(problem, state, float(tilt))
    return float(max(np.abs((weight * mean) @ u - q).max(), abs(weight @ square - 1.0)))


def _moments(problem: Problem, state: xr.Dataset, tilt: float) -> tuple[float, float]:
    """E[w] and E[w^2] at one tilt u.g."""

    def exponent(w: FloatArray) -> FloatArray:
        potential = problem.prior.strength * evaluate(potential_of(problem.prior.functions), w)
        inner = 0.5 * float(state["multiplier"]) * w * w - tilt * w - problem.model.learning_rate * potential
        return np.asarray(2.0 / float(state["Lambda"]) * inner)

    scanned = exponent(SCAN)
    inside = np.flatnonzero(scanned > scanned.max() + NEGLIGIBLE)
    low, high = SCAN[max(inside[0] - 1, 0)], SCAN[min(inside[-1] + 1, len(SCAN) - 1)]
    kinks = [kink for kink in problem.prior.functions.kinks if low < kink < high]
    edges = np.unique([*np.linspace(low, high, PANELS + 1), *kinks])
    half = 0.5 * np.diff(edges)[:, None]
    w = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * _X).ravel()
    values = exponent(w)
    density = (half * _WEIGHTS).ravel() * np.exp(values - values.max())
    density /= density.sum()
    return float(density @ w), float(density @ (w * w))
