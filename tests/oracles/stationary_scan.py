"""All stationary states of one feature by a scan over the overlap q, independent of the library's search.

At every q of a grid the multiplier G is found by Brent's method, so that P(w|u) ~ exp((2/Lambda)(G w^2/2 - u g w -
tau Phi(w))) has E[w^2] = 1 (theory.md, section 6); where F(q) = E[u w] - q changes its sign there is a state. Averages
over w are trapezoidal sums in arsinh w, and those over u are Gauss-Legendre panels graded towards u = 0, where the mean
weight may jump from one well of the potential into another. Laws of u and priors are even: states come in pairs +-q,
and one half of u is enough. Weights with rare u fall between its nodes as they do in the search; and at small noise,
where E[w|u] jumps within 1e-3 or so, the sums over u err by up to 3e-3 in q.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq

from meanfield.extend import CoordinateLaw
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.priors import potential_of
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray
from validation.contrastive.stationary_residual import LAWS

OVERLAPS = 0.5 + 0.5 * np.tanh(np.linspace(-5.0, 5.0, 81))
"""Grid of q, from 4.5e-5 to 1 - 4.5e-5 and dense towards both."""

PANELS_IN_U, NODES_IN_U = 20, 6
"""Panels of a coordinate with a density, and nodes of each."""

GRADING = 7.0
"""Logarithm of the ratio of the widest panel in u to the narrowest, about."""

REACH = 11.0
"""Value of arsinh w up to which densities are summed: |w| = 30 000."""

TERMS = 400_000
"""Number of terms of the double sum over u and w."""

ESCAPED = 1e-6
"""Largest part of E[w^2] = 1 beyond half of all |w|: where more is held there, there is no density of unit norm."""

HALVINGS = 12
"""Number of halvings of the interval of the grid in which densities cease to exist."""

RESOLUTION = 1e-6
"""Distance of overlaps between which a change of sign is not looked at closer."""


class Scan:
    """F(q) = E[u w] - q of one feature.

    Parameters
    ----------
    problem : Problem
        With one feature, and an even prior.
    terms : int
        Number of terms of the double sum over u and w, which tells its error.
    """

    def __init__(self, problem: Problem, terms: int = TERMS) -> None:
        u, chance = _rule_of(problem.features[0].coordinate)
        chance = np.where(u > 0.0, 2.0, np.where(u < 0.0, 0.0, 1.0)) * chance
        self._u, self._chance = u[chance > 0.0], chance[chance > 0.0]
        count = 2 * (terms // (2 * len(self._u))) + 1
        x = np.linspace(-REACH, REACH, count)
        self._w, self._log_cell = np.sinh(x), np.log(np.cosh(x))
        self._far = np.abs(self._w) > 0.5 * self._w[-1]
        strength = problem.model.learning_rate * problem.prior.strength
        self._potential = strength * evaluate(potential_of(problem.prior.functions), self._w)
        self._closure = Closure(problem, tabulated=False)
        self._last = 0.0

    def __call__(self, q: float) -> float:
        """F(q); NaN where no density has E[w^2] = 1."""
        (g,), diffusion = self._closure(np.array([q]))
        if not diffusion > 0.0:
            return math.nan
        square, tilt = self._w**2, np.outer(self._u, g * self._w)

        def density(G: float) -> FloatArray:
            """Probabilities of all w given each u."""
            exponent = 2.0 / diffusion * (0.5 * G * square - self._potential - tilt) + self._log_cell
            P = np.exp(exponent - exponent.max(axis=1, keepdims=True))
            return np.asarray(P / P.sum(axis=1, keepdims=True))

        def excess(G: float) -> float:
            return float(np.log(self._chance @ (density(G) @ square)))

        G = self._multiplier(excess, diffusion)
        P = density(G)
        if self._chance @ (P[:, self._far] @ square[self._far]) > ESCAPED:
            return math.nan
        self._last = G
        return float((self._chance * self._u) @ (P @ self._w) - q)

    def _multiplier(self, excess: Callable[[float], float], diffusion: float) -> float:
        """Multiplier of unit norm, near that of the last overlap."""
        step = diffusion + 1e-3 * abs(self._last)
        low = high = self._last
        if excess(low) > 0:
            while excess(low) > 0:
                low, high, step = low - step, low, 4.0 * step
        else:
            while excess(high) <= 0:
                low, high, step = high, high + step, 4.0 * step
        return float(brentq(excess, low, high, xtol=1e-9 * diffusion, rtol=1e-12))


def _rule_of(law: CoordinateLaw) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of a coordinate law; panels of one with a density are graded towards u = 0."""
    if law.law not in LAWS:
        return law.quadrature(3)
    density, reach = LAWS[law.law]
    edges = reach * np.sinh(GRADING * np.linspace(-1.0, 1.0, PANELS_IN_U + 1)) / np.sinh(GRADING)
    x, weight = np.polynomial.legendre.leggauss(NODES_IN_U)
    half = 0.5 * np.diff(edges)[:, None]
    u = (edges[:-1, None] + half * (1.0 + x)).ravel()
    chance = (half * weight).ravel() * density.pdf(u)
    return u, chance / chance.sum()


def scanned_overlaps(problem: Problem, terms: int = TERMS) -> list[float]:
    """Overlaps q >= 0 of all states that the scan sees: 0 where there is a density, and where F changes its sign."""
    residual = Scan(problem, terms)
    found = [0.0] if math.isfinite(residual(0.0)) else []
    values = _with_border(residual, [(q, residual(q)) for q in OVERLAPS.tolist()])
    brackets = [(low, high) for (low, at_low), (high, at_high) in pairwise(values) if at_low * at_high < 0]
    return found + [q for low, high in brackets if math.isfinite(q := _root(residual, low, high))]


def _root(residual: Scan, low: float, high: float) -> float:
    """Place of a change of sign by bisection; NaN where it is a gap without densities that F jumps over."""
    positive = residual(low) > 0
    while high - low > RESOLUTION:
        middle = 0.5 * (low + high)
        value = residual(middle)
        if math.isnan(value):
            return math.nan
        low, high = (middle, high) if (value > 0) == positive else (low, middle)
    return 0.5 * (low + high)


def _with_border(residual: Scan, values: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Values with those at the last overlap beside each border beyond which there is no density."""
    more = []
    for (low, at_low), (high, at_high) in pairwise(values):
        if math.isfinite(at_low) == math.isfinite(at_high):
            continue
        inside, outside = (low, high) if math.isfinite(at_low) else (high, low)
        for _ in range(HALVINGS):
            middle = 0.5 * (inside + outside)
            inside, outside = (middle, outside) if math.isfinite(residual(middle)) else (inside, middle)
        more.append((inside, residual(inside)))
    return sorted([*values, *more])
