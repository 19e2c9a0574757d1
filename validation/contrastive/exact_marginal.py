"""Marginal density of the weights under a linear prior: an exact mixture of Gaussians.

From a Gaussian start w given u stays N(u.q_t, 1 - |q_t|^2), so that P(w) is the law of u.q plus a Gaussian. Gaussian
coordinates add q_k^2 to its variance, discrete ones are sums, and the densities of the others are integrated by rules
of many nodes.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import ndtr

from meanfield.families.contrastive.problem import Problem
from meanfield.ingredients.laws import CoordinateLaw
from meanfield.typing import FloatArray

NODES = 200
"""Number of nodes of a smooth law, or of half of it: they are denser than any P(w|u) is wide for |q| up to 0.9999."""

LAPLACE_END = 20.0
"""Point beyond which a Laplace law has 5e-13 of its probability."""


def _rule(law: CoordinateLaw) -> tuple[FloatArray, FloatArray]:
    """Nodes and probabilities of a coordinate law that is not Gaussian."""
    if law.law == "uniform":
        x, weight = np.polynomial.legendre.leggauss(NODES)
        return math.sqrt(3.0) * x, 0.5 * weight
    if law.law == "laplace":
        x, weight = np.polynomial.legendre.leggauss(NODES)
        u = 0.5 * LAPLACE_END * (x + 1.0)
        half = 0.25 * LAPLACE_END * weight * math.sqrt(2.0) * np.exp(-math.sqrt(2.0) * u)
        return np.concatenate([-u, u]), np.concatenate([half, half])
    return law.quadrature(3)


def exact_marginal(problem: Problem, q: FloatArray, edges: FloatArray) -> FloatArray:
    """Averages of P(w) over cells, for a linear prior and a Gaussian start.

    Parameters
    ----------
    problem : Problem
    q : ndarray, shape (d1,)
        Overlap at the time in question.
    edges : ndarray, shape (cells + 1,)

    Returns
    -------
    ndarray, shape (cells,)
    """
    variance, rules = 1.0 - float(q @ q), []
    for feature, overlap in zip(problem.features, q, strict=True):
        if feature.coordinate.law == "gaussian":
            variance += float(overlap) ** 2
        else:
            nodes, probability = _rule(feature.coordinate)
            rules.append((overlap * nodes, probability))
    *first, (shift, chance) = rules or [(np.zeros(1), np.ones(1))]
    spread, below = math.sqrt(variance), np.zeros(len(edges))
    for part in itertools.product(*(zip(*rule, strict=True) for rule in first)):
        mean, weight = sum(m for m, _ in part), math.prod(p for _, p in part)
        below += weight * (ndtr((edges[:, None] - mean - shift) / spread) @ chance)
    return np.asarray(np.diff(below) / np.diff(edges))
