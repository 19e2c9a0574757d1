"""Marginal density of the weights under a linear prior: an exact mixture of Gaussians.

From a Gaussian start w given u stays N(u.q_t, 1 - |q_t|^2), so that P(w) is the law of u.q plus a Gaussian. Gaussian
coordinates add q_k^2 to its variance, discrete ones are sums, and the densities of the others are integrated on panels
over which u q_k moves no further than the Gaussian is wide.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import ndtr

from meanfield.extend import CoordinateLaw
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.quadrature import panel_rule
from meanfield.typing import FloatArray

WIDEST_PANEL = 1.0
"""Largest width of a panel in u: eight nodes integrate the law itself to rounding."""

LAPLACE_END = 20.0
"""Point beyond which a Laplace law has 5e-13 of its probability."""

BLOCK = 500
"""Number of nodes whose Gaussians are added at a time, which bounds the memory that they take."""


def _rule(law: CoordinateLaw, width: float) -> tuple[FloatArray, FloatArray]:
    """Nodes and probabilities of a coordinate law that is not Gaussian, on panels of this width at most."""
    if law.law not in ("uniform", "laplace"):
        return law.quadrature(3)
    end = math.sqrt(3.0) if law.law == "uniform" else LAPLACE_END
    half = np.linspace(0.0, end, 1 + math.ceil(end / min(width, WIDEST_PANEL)))
    return panel_rule(np.concatenate([-half[:0:-1], half]), law.density)


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
    laws = [feature.coordinate for feature in problem.features]
    gaussian = np.array([law.law == "gaussian" for law in laws])
    spread = math.sqrt(1.0 - float(q @ q) + float(np.sum(q[gaussian] ** 2)))
    rules = []
    for law, overlap in zip(laws, q, strict=True):
        if law.law != "gaussian":
            nodes, probability = _rule(law, spread / max(abs(float(overlap)), spread))
            rules.append((overlap * nodes, probability))
    *first, (shift, chance) = rules or [(np.zeros(1), np.ones(1))]
    below = np.zeros(len(edges))
    for part in itertools.product(*(zip(*rule, strict=True) for rule in first)):
        mean, weight = sum(m for m, _ in part), math.prod(p for _, p in part)
        for n in range(0, len(shift), BLOCK):
            gaussians = ndtr((edges[:, None] - mean - shift[n : n + BLOCK]) / spread)
            below += weight * (gaussians @ chance[n : n + BLOCK])
    return np.asarray(np.diff(below) / np.diff(edges))
