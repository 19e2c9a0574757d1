"""Residual of a stationary state by quadrature of its explicit density, independent of the library's.

P(w|u) ~ exp((2/Lambda)(G w^2/2 - u.g w - tau Phi(w))) must have E[u w] = q and E[w^2] = 1 (theory.md, section 6).
Gauss-Legendre panels in w end at the kinks of the prior and are halved until the exponent varies by little over each,
wherever the density is not negligible: wells may be narrower than any fixed panels. What the moments of w depend on is
the tilt s = u.g alone. Averages over it are adaptive, because the mean weight may jump from one well of the potential
into another near s = 0: coordinates with few values are summed, and of those with a density, one or two, the law of
their part of s and the conditional means E[u|s] are a quadrature of their own. A coordinate with g = 0 says nothing of
w: E[u w] = 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy.integrate import quad_vec
from scipy.stats import laplace, norm, uniform

from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.priors import potential_of
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray

ACCURACY = 1e-11
"""Absolute accuracy that is asked for in averages over the tilt."""

MOST_INTERVALS = 600
"""Largest number of intervals of an adaptive rule, which says what error they leave."""

LAWS = {
    "gaussian": (norm(), 9.0),
    "uniform": (uniform(-(3**0.5), 2 * 3**0.5), 3**0.5),
    "laplace": (laplace(0, 0.5**0.5), 45.0),
}
"""Laws of a coordinate with a density, smooth but at 0 and at the point beyond which it has none to speak of."""

LONGEST_PANEL = 1.0
"""Longest panel in u: twelve nodes leave 2e-16 of a product of two Gaussians over it, wherever it lies."""

LOWEST_LOG_WEIGHT = -60.0
"""Logarithm of a density, relative to its largest value, below which it is left out."""

SCAN = np.sinh(np.linspace(-25.0, 25.0, 501))
"""Ends of panels in w before they are halved, up to 4e10: rare u under a weak prior have weights beyond 1e5."""

VARIATION = 1.0
"""Largest variation of the exponent over a panel in w: twelve nodes leave 1e-14 of exp(-x^2/2) on (-1.4, 1.4)."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
"""Nodes of a panel and their weights."""


def stationary_residual(problem: Problem, state: xr.Dataset) -> tuple[float, float]:
    """Largest of |E[u w] - q| and |E[w^2] - 1| of one stationary state, and the error of the quadrature over u.

    Parameters
    ----------
    problem : Problem
        With no more than two coordinates that have a density.
    state : xarray.Dataset
        Result of the stationary solver at one state.
    """
    q, g = np.atleast_1d(state["q"].values), np.atleast_1d(state["g"].values)
    laws = [feature.coordinate for feature in problem.features]
    spread = [k for k, law in enumerate(laws) if law.law in LAWS and g[k] != 0.0]
    tilts = TiltLaw([laws[k].law for k in spread], g[spread])
    total, error = np.zeros(len(q) + 1), 0.0
    rules = [((0.0,), (1.0,)) if law.law in LAWS else law.quadrature(3) for law in laws]
    for part in itertools.product(*(zip(*rule, strict=True) for rule in rules)):
        rest, chance = np.array([u for u, _ in part]), float(np.prod([weight for _, weight in part]))
        shift = float(rest @ g)

        def integrand(s: float, rest: FloatArray = rest, shift: float = shift) -> FloatArray:
            density, first_moments = tilts(s)
            mean, square = _moments(problem, state, shift + s)
            weighted = rest * density
            weighted[spread] = first_moments
            return np.asarray([*(weighted * mean), density * square])

        value, left = tilts.integral(integrand, -shift) if spread else (integrand(0.0), 0.0)
        total += chance * value
        error += chance * left
    return float(np.abs(total - [*q, 1.0]).max()), float(error)


class TiltLaw:
    """Law of s = u.g for one or two coordinates u with a density; of none, s = 0.

    Parameters
    ----------
    laws : list of str
        Laws of the coordinates.
    g : numpy.ndarray
        What each is multiplied by; not 0.
    """

    def __init__(self, laws: list[str], g: FloatArray) -> None:
        self._g = g
        self._laws = [LAWS[law][0] for law in laws]
        self._corners = [np.array([-reach, 0.0, reach]) for _, reach in (LAWS[law] for law in laws)]

    def __call__(self, s: float) -> tuple[float, FloatArray]:
        """Density p of s, and p E[u|s]."""
        if not len(self._g):
            return 1.0, np.zeros(0)
        first, *others = np.argsort(-np.abs(self._g))
        weight, u = np.ones(1), np.zeros((len(self._g), 1))
        for second in others:
            edges = self._edges(s, first, second)
            nodes, weight = _gauss_on(edges[:-1], edges[1:])
            weight, u = weight * self._laws[second].pdf(nodes), np.zeros((2, len(nodes)))
            u[second] = nodes
        u[first] = (s - self._g @ u) / self._g[first]
        weight = weight * self._laws[first].pdf(u[first]) / abs(self._g[first])
        return float(weight.sum()), u @ weight

    def _edges(self, s: float, first: int, second: int) -> FloatArray:
        """Ends of panels of the second coordinate, between which neither density has a corner."""
        low, _, high = self._corners[second]
        others = (s - self._g[first] * self._corners[first]) / self._g[second]
        low, high = max(low, others.min()), min(high, others.max())
        corners = np.unique(np.clip([*self._corners[second], *others], low, high)) if low < high else np.zeros(0)
        pieces = np.ceil(np.diff(corners) / LONGEST_PANEL).astype(int)
        parts = [
            np.linspace(*ends, count, endpoint=False)
            for *ends, count in zip(corners[:-1], corners[1:], pieces, strict=True)
        ]
        return np.concatenate([*parts, corners[-1:]])

    def integral(self, integrand: Callable[[float], FloatArray], layer: float) -> tuple[FloatArray, float]:
        """Integral over s of what may change fast near a place, and its error."""
        sums = [sum(part) for part in itertools.product(*(g * c for g, c in zip(self._g, self._corners, strict=True)))]
        low, high = min(sums), max(sums)
        near = (high - low) * np.geomspace(1e-10, 1.0, 6)  # a rule whose nodes are all outside a layer sees none
        points = np.unique(np.clip([*sums, layer, *(layer - near), *(layer + near)], low, high))
        options = {"epsabs": ACCURACY, "epsrel": 0.0, "norm": "max", "limit": MOST_INTERVALS}
        value, error = quad_vec(integrand, points[0], points[-1], points=points[1:-1], **options)
        return value, float(error)


def _gauss_on(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Legendre panels between lower and upper ends."""
    half = 0.5 * (high - low)[:, None]
    return (0.5 * (high + low)[:, None] + half * NODES).ravel(), (half * WEIGHTS).ravel()


def _moments(problem: Problem, state: xr.Dataset, tilt: float) -> tuple[float, float]:
    """E[w] and E[w^2] at one tilt u.g."""
    multiplier, diffusion = state["multiplier"].item(), state["Lambda"].item()

    def exponent(w: FloatArray) -> FloatArray:
        potential = problem.prior.strength * evaluate(potential_of(problem.prior.functions), w)
        inner = 0.5 * multiplier * w * w - tilt * w - problem.model.learning_rate * potential
        return np.asarray(2.0 / diffusion * inner)

    w, weight = _gauss_on(*_panels(exponent, problem.prior.functions.kinks))
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
        held = most + variation > top + LOWEST_LOG_WEIGHT
        narrow = (variation <= VARIATION) | (high - low < 1e-14 * (1.0 + np.abs(low)))
        done.append(np.array([low, high])[:, held & narrow])
        low, high = low[held & ~narrow], high[held & ~narrow]
        middle = 0.5 * (low + high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    found = np.concatenate(done, axis=1)
    return found[0], found[1]
