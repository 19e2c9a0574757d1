"""Quadrature rules for expectations: over a standard Gaussian variable, and over several independent variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from meanfield.typing import FloatArray

LEAST_UNIFORM = 2.0**-53
"""Least value of a uniform variable: Sobol points may lie at 0, whose normal number is infinite."""

PANEL_NODES = 8
"""Nodes of a Gauss-Legendre panel: polynomials of degree 15 are exact."""


def gaussian_trapezoid(nodes: int, cutoff: float = 8.5) -> tuple[FloatArray, FloatArray]:
    """Trapezoidal rule for N(0, 1) on [-cutoff, cutoff], scaled so that mean and variance are exact.

    For an integrand analytic in a strip of half-width d around the real axis the error falls like
    exp(-2 pi d / h) with the spacing h, so exponentially in the number of nodes, where the Gauss
    rule only reaches exp(-c sqrt(nodes)). What the default cutoff drops is 2e-17 of the probability. With few
    nodes the cutoff is lowered to where cutting and spacing cost the same, exp(-cutoff^2/2) = exp(-2 pi^2/h^2).

    Returns
    -------
    x, weight : ndarray, shape (nodes,)
        Equally spaced nodes, exactly symmetric about 0, and weights that add up to one.
    """
    cutoff = min(cutoff, math.sqrt(math.pi * (nodes - 1)))
    x = 2.0 * cutoff / (nodes - 1) * (np.arange(nodes) - 0.5 * (nodes - 1))  # to the last bit symmetric
    weight = np.exp(-0.5 * x * x)
    weight /= weight.sum()
    return x / np.sqrt(weight @ (x * x)), weight


def widest_panel(spacing: FloatArray) -> FloatArray:
    """Widths of panels of `panel_rule` whose neighbouring nodes are no further apart than asked for."""
    points, _ = np.polynomial.legendre.leggauss(PANEL_NODES)
    return np.asarray(2.0 * spacing / np.diff(points).max())


def panel_rule(ends: FloatArray, density: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre rule on panels for a law.

    Unlike a Gauss rule of the law it resolves integrands that vary over the distance of nodes, wherever they do.

    Parameters
    ----------
    ends : ndarray, shape (panels + 1,)
        Increasing ends of the panels, with all points where the density is not smooth.
    density : callable
        Probability density of the law.

    Returns
    -------
    x, weight : ndarray, shape (nodes,)
        Increasing nodes, and weights that add up to one.
    """
    points, weights = np.polynomial.legendre.leggauss(PANEL_NODES)
    left, width = ends[:-1, None], np.diff(ends)[:, None]
    x = (left + 0.5 * width * (points + 1.0)).ravel()
    weight = (width * weights).ravel() * density(x)
    return x, weight / weight.sum()


def tensor_rule(rules: Sequence[tuple[FloatArray, FloatArray]], negligible: float) -> tuple[FloatArray, FloatArray]:
    """Tensor product of rules for independent variables, without nodes of negligible weight.

    Parameters
    ----------
    rules : sequence of (ndarray, ndarray)
        Nodes and weights of each variable; weights are probabilities.
    negligible : float
        Largest weight of a node that is left out.

    Returns
    -------
    x : ndarray, shape (nodes, variables)
    weight : ndarray, shape (nodes,)
        Adding up to one.
    """
    x = np.stack(np.meshgrid(*(points for points, _ in rules), indexing="ij"), axis=-1).reshape(-1, len(rules))
    weight = reduce(np.multiply.outer, (weights for _, weights in rules)).ravel()
    kept = weight > negligible
    return x[kept], weight[kept] / weight[kept].sum()


def sobol_points(count: int, dimensions: int, seed: int) -> FloatArray:
    """Scrambled Sobol points in the unit cube, shape (count, dimensions); `count` is a power of 2."""
    from scipy.stats import qmc  # imported where it is used: it takes longer than most scripts run

    return np.asarray(qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(seed)).random(count))


def normal_numbers(uniform: FloatArray) -> FloatArray:
    """Standard normal numbers from uniform ones."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(uniform, LEAST_UNIFORM, 1.0 - LEAST_UNIFORM)))


def gauss_rules(x: FloatArray, weight: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Gauss rules of several measures of weighted points at once (Stieltjes' procedure, then Golub and Welsch).

    Parameters
    ----------
    x, weight : ndarray, shape (measures, points)

    Returns
    -------
    x, weight : ndarray, shape (measures, nodes)
        Increasing; weights add up to those of each measure.
    """
    mass = weight.sum(axis=1)
    matrix = np.zeros((len(x), nodes, nodes))
    before, now = np.zeros_like(x), np.repeat(1 / np.sqrt(mass)[:, None], x.shape[1], axis=1)
    size = np.zeros(len(x))
    for k in range(nodes):
        matrix[:, k, k] = np.einsum("ij,ij,ij->i", weight, x, now * now)
        rest = (x - matrix[:, k, k][:, None]) * now - size[:, None] * before
        size = np.sqrt(np.einsum("ij,ij->i", weight, rest * rest))
        if k + 1 < nodes:
            matrix[:, k, k + 1] = matrix[:, k + 1, k] = size
        before, now = now, rest / size[:, None]
    values, vectors = np.linalg.eigh(matrix)
    return values, mass[:, None] * vectors[:, 0] ** 2
