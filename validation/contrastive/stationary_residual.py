"""Residual of a stationary state by quadrature of its explicit density, independent of the library's.

P(w|u) ~ exp((2/Lambda)(G w^2/2 - u.g w - tau Phi(w))) must have E[u w] = q and E[w^2] = 1 (theory.md, section 6).
Gauss-Legendre panels in w end at the kinks of the prior and are halved until the exponent varies by little over each,
wherever the density is not negligible: wells may be narrower than any fixed panels. One coordinate with a density is
integrated adaptively; for two, panels are graded towards u = 0, where the mean weight may jump from one well of the
potential into another, and a rule with fewer panels tells the error that is left.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy.integrate import quad_vec
from scipy.stats import laplace, norm, uniform

from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.laws import CoordinateLaw
from meanfield.ingredients.priors import potential_of
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray

PANELS_IN_U = (14, 10)
"""Numbers of panels of a smooth coordinate law, and of the coarser rule, where two laws are smooth."""

ACCURACY_IN_U = 1e-11
"""Absolute accuracy that is asked for where one law is smooth."""

MOST_INTERVALS = 150
"""Largest number of intervals of the adaptive rule, which says what error they leave."""

LAWS = {
    "gaussian": (norm(), 9.0),
    "uniform": (uniform(-(3**0.5), 2 * 3**0.5), 3**0.5),
    "laplace": (laplace(0, 0.5**0.5), 28.0),
}
"""Smooth laws of a coordinate, with the point beyond which they have no probability to speak of."""

GRADING = 7.0
"""Logarithm of the ratio of the widest panel in u to the narrowest, about."""

NEGLIGIBLE = -60.0
"""Logarithm of a density, relative to its largest value, below which it is left out."""

SCAN = np.sinh(np.linspace(-12.0, 12.0, 241))
"""Ends of panels in w before they are halved."""

VARIATION = 1.0
"""Largest variation of the exponent over a panel in w: twelve nodes leave 1e-14 of exp(-x^2/2) on (-1.4, 1.4)."""

NODES_IN_U, NODES_IN_W = 6, 12
"""Nodes of a panel."""


def stationary_residual(problem: Problem, state: xr.Dataset) -> tuple[float, float]:
    """Largest of |E[u w] - q| and |E[w^2] - 1| of one stationary state, and the error of the quadrature over u.

    Parameters
    ----------
    problem : Problem
        With one or two features.
    state : xarray.Dataset
        Result of the stationary solver at one state.
    """
    smooth = [k for k, feature in enumerate(problem.features) if feature.coordinate.law in LAWS]
    if len(smooth) == 1:
        return _adaptive_residual(problem, state, smooth[0])
    fine, coarse = (_equations(problem, state, panels) for panels in PANELS_IN_U)
    return float(np.abs(fine).max()), float(np.abs(fine - coarse).max())


def _adaptive_residual(problem: Problem, state: xr.Dataset, smooth: int) -> tuple[float, float]:
    """Residual and its error where one coordinate law is smooth."""
    q, g = np.atleast_1d(state["q"].values), np.atleast_1d(state["g"].values)
    others = [feature.coordinate.quadrature(3) for k, feature in enumerate(problem.features) if k != smooth]
    law, reach = LAWS[problem.features[smooth].coordinate.law]
    total, error = np.zeros(len(q) + 1), 0.0
    for part in itertools.product(*(zip(*rule, strict=True) for rule in others)):
        rest, chance = [u for u, _ in part], float(np.prod([weight for _, weight in part]))

        def integrand(u: float, rest: list[float] = rest) -> FloatArray:
            both = np.insert(rest, smooth, u)
            mean, square = _moments(problem, state, float(both @ g))
            return np.asarray(law.pdf(u) * np.array([*(both * mean), square]))

        for ends in ((-reach, 0.0), (0.0, reach)):
            value, left = quad_vec(integrand, *ends, epsabs=ACCURACY_IN_U, epsrel=0.0, norm="max", limit=MOST_INTERVALS)
            total += chance * value
            error += chance * left
    return float(np.abs(total - [*q, 1.0]).max()), float(error)


def _equations(problem: Problem, state: xr.Dataset, panels: int) -> FloatArray:
    """E[u w] - q and E[w^2] - 1 in one vector."""
    q, g = np.atleast_1d(state["q"].values), np.atleast_1d(state["g"].values)
    rules = [rule_of(feature.coordinate, panels) for feature in problem.features]
    u = np.array(list(itertools.product(*(nodes for nodes, _ in rules))))
    weight = np.array([np.prod(part) for part in itertools.product(*(weights for _, weights in rules))])
    mean, square = np.zeros(len(u)), np.zeros(len(u))
    tilts, places = np.unique(u @ g, return_inverse=True)
    for k, tilt in enumerate(tilts):
        mean[places == k], square[places == k] = _moments(problem, state, float(tilt))
    return np.array([*((weight * mean) @ u - q), weight @ square - 1.0])


def rule_of(law: CoordinateLaw, panels: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of a coordinate law; panels of one with a density are graded towards u = 0."""
    if law.law not in LAWS:
        return law.quadrature(3)
    density, reach = LAWS[law.law]
    u, weight = _gauss(reach * np.sinh(GRADING * np.linspace(-1.0, 1.0, panels + 1)) / np.sinh(GRADING))
    weight *= density.pdf(u)
    return u, weight / weight.sum()


def _gauss(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Legendre panels."""
    return _gauss_on(edges[:-1], edges[1:], NODES_IN_U)


def _gauss_on(low: FloatArray, high: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Legendre panels between lower and upper ends."""
    x, weights = np.polynomial.legendre.leggauss(nodes)
    half = 0.5 * (high - low)[:, None]
    return (0.5 * (high + low)[:, None] + half * x).ravel(), (half * weights).ravel()


def _moments(problem: Problem, state: xr.Dataset, tilt: float) -> tuple[float, float]:
    """E[w] and E[w^2] at one tilt u.g."""

    def exponent(w: FloatArray) -> FloatArray:
        potential = problem.prior.strength * evaluate(potential_of(problem.prior.functions), w)
        inner = 0.5 * float(state["multiplier"]) * w * w - tilt * w - problem.model.learning_rate * potential
        return np.asarray(2.0 / float(state["Lambda"]) * inner)

    w, weight = _gauss_on(*_panels(exponent, problem.prior.functions.kinks), NODES_IN_W)
    values = exponent(w)
    density = weight * np.exp(values - values.max())
    density /= density.sum()
    return float(density @ w), float(density @ (w * w))


def _panels(exponent: Callable[[FloatArray], FloatArray], kinks: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends of panels that hold a density."""
    ends = np.unique([*SCAN, *kinks])
    low, high = ends[:-1], ends[1:]
    done: list[FloatArray] = []
    top = -np.inf
    while len(low):
        values = exponent(np.array([low, 0.5 * (low + high), high]))
        most, variation = values.max(axis=0), np.ptp(values, axis=0)
        top = max(top, float(most.max()))
        held = most + variation > top + NEGLIGIBLE
        narrow = (variation <= VARIATION) | (high - low < 1e-14 * (1.0 + np.abs(low)))
        done.append(np.array([low, high])[:, held & narrow])
        low, high = low[held & ~narrow], high[held & ~narrow]
        middle = 0.5 * (low + high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    found = np.concatenate(done, axis=1)
    return found[0], found[1]
