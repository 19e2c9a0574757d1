"""Gaussian mixtures of the paper: their law (17), standardisation (19), and distance from a normal law (16).

The paper draws the means of m components from [-alpha, alpha), all of variance 1, and does not print their weights;
here they are alike. It does not print either whether each latent draws a component of its own, or one component is
drawn for all latents of a sample; in the second reading a mean is a vector with an entry for each latent.
"""

from __future__ import annotations

import numpy as np

from meanfield.families.hidden_manifold.discrepancy import mixture_divergence

FloatArray = np.ndarray


def standardisation(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of mixtures, whose components are along the first axis."""
    return means.mean(axis=0), np.sqrt(1.0 + means.var(axis=0))


def divergence(means: FloatArray, spread: float = 1.0) -> float:
    """KL(P, N(0, 1)) of a mixture of N(mean, spread^2) on a line.

    Parameters
    ----------
    means : ndarray, shape (components,)
    spread : float
    """
    ones = np.ones(len(means))
    return mixture_divergence(ones / len(means), means, spread * ones)
