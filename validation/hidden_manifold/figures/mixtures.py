"""Gaussian mixtures of the paper: their law (17), standardisation (19), and distance from a normal law (16).

The paper draws the means of m components from [-alpha, alpha), all of variance 1, and does not print their weights;
here they are alike. It does not print either whether each latent draws a component of its own, or one component is
drawn for all latents of a sample; in the second reading a mean is a vector with an entry for each latent.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import leggauss

FloatArray = np.ndarray

PANEL, NODES = 0.25, leggauss(8)
"""Width of a panel of the integral in `divergence`, and its Gauss-Legendre rule."""

REACH = 9.0
"""Standard deviations beyond which a component has no probability to the accuracy of numbers."""


def standardisation(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of mixtures, whose components are along the first axis."""
    return means.mean(axis=0), np.sqrt(1.0 + means.var(axis=0))


def divergence(means: FloatArray, spread: float = 1.0) -> float:
    """KL(P, N(0, 1)) of a mixture of N(mean, spread^2) on a line, by Gauss-Legendre panels.

    Parameters
    ----------
    means : ndarray, shape (components,)
    spread : float
    """
    first, last = means.min() - REACH * spread, means.max() + REACH * spread
    edges = np.linspace(first, last, int(np.ceil((last - first) / (PANEL * spread))) + 1)
    half = 0.5 * np.diff(edges)[:, None]
    x = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * NODES[0]
    exponents = -0.5 * ((x[..., None] - means) / spread) ** 2
    largest = exponents.max(axis=-1)
    log_density = largest + np.log(np.exp(exponents - largest[..., None]).mean(axis=-1) / spread)
    density = np.exp(log_density) / np.sqrt(2.0 * np.pi)
    return float((half * NODES[1] * density * (log_density + 0.5 * x**2)).sum())
