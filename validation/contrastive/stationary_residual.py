"""Residual of a stationary state by quadrature of its explicit density, independent of the library's.

P(w|u) ~ exp((2/Lambda)(G w^2/2 - u.g w - tau Phi(w))) must have E[u w] = q and E[w^2] = 1 (theory.md, section 6).
Gauss-Legendre panels in w end at the kinks of the prior and cover where the density is not negligible. Those in u are
graded towards u = 0, where the mean weight may jump from one well of the potential into another; a rule with fewer
panels tells the error that is left.
"""

from __future__ import annotations

import itertools

import numpy as np
import xarray as xr
from scipy.stats import laplace, norm, uniform

from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.laws import CoordinateLaw
from meanfield.ingredients.priors import potential_of
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray

PANELS_IN_U = {1: (120, 80), 2: (14, 10)}
"""Numbers of panels of a smooth coordinate law, and of the coarser rule, by the number of smooth laws."""

LAWS = {
    "gaussian": (norm(), 9.0),
    "uniform": (uniform(-(3**0.5), 2 * 3**0.5), 3**0.5),
    "laplace": (laplace(0, 0.5**0.5), 20.0),
}
"""Smooth laws of a coordinate, with the point beyond which they have no probability to speak of."""

GRADING = 7.0
"""Logarithm of the ratio of the widest panel in u to the narrowest, about."""

NEGLIGIBLE = -60.0
"""Logarithm of a density, relative to its largest value, below which it is left out."""

SCAN = np.sinh(np.linspace(-12.0, 12.0, 4801))
"""Weights at which the range of a density is looked for."""

PANELS = 400
_X, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def stationary_residual(problem: Problem, state: xr.Dataset) -> tuple[float, float]:
    """Largest of |E[u w] - q| and |E[w^2] - 1| of one stationary state, and the error of the quadrature over u.

    Parameters
    ----------
    problem : Problem
        With one or two features.
    state : xarray.Dataset
        Result of the stationary solver at one state.
    """
    smooth = sum(feature.coordinate.law in LAWS for feature in problem.features)
    fine, coarse = (_equations(problem, state, panels) for panels in PANELS_IN_U[max(smooth, 1)])
    return float(np.abs(fine).max()), float(np.abs(fine - coarse).max())


def _equations(problem: Problem, state: xr.Dataset, panels: int) -> FloatArray:
    """E[u w] - q and E[w^2] - 1 in one vector."""
    q, g = np.atleast_1d(state["q"].values), np.atleast_1d(state["g"].values)
    rules = [_rule(feature.coordinate, panels) for feature in problem.features]
    u = np.array(list(itertools.product(*(nodes for nodes, _ in rules))))
    weight = np.array([np.prod(part) for part in itertools.product(*(weights for _, weights in rules))])
    mean, square = np.zeros(len(u)), np.zeros(len(u))
    tilts, places = np.unique(u @ g, return_inverse=True)
    for k, tilt in enumerate(tilts):
        mean[places == k], square[places == k] = _moments(problem, state, float(tilt))
    return np.array([*((weight * mean) @ u - q), weight @ square - 1.0])


def _rule(law: CoordinateLaw, panels: int) -> tuple[FloatArray, FloatArray]:
    if law.law not in LAWS:
        return law.quadrature(3)
    density, reach = LAWS[law.law]
    u, weight = _gauss(reach * np.sinh(GRADING * np.linspace(-1.0, 1.0, panels + 1)) / np.sinh(GRADING))
    weight *= density.pdf(u)
    return u, weight / weight.sum()


def _gauss(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Legendre panels."""
    half = 0.5 * np.diff(edges)[:, None]
    return (0.5 * (edges[1:] + edges[:-1])[:, None] + half * _X).ravel(), (half * _WEIGHTS).ravel()


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
    w, weight = _gauss(np.unique([*np.linspace(low, high, PANELS + 1), *kinks]))
    values = exponent(w)
    density = weight * np.exp(values - values.max())
    density /= density.sum()
    return float(density @ w), float(density @ (w * w))
