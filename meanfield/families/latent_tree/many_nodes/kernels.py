"""Kernels of infinitely many nodes per latent at a uniform random start (latent_tree.md, section 3.3).

Given two configurations of the leaves, the pre-activations of a random node have second moments that add over children.
From level 2 on they are Gaussian; at level 1, with few uniform weights, averages of two activations are integrals of
splines. Biases have the variance that they have for as many nodes as the problem has.
"""

from __future__ import annotations

from functools import cache
from math import comb, factorial
from typing import NamedTuple

import numpy as np

from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.settings import UniformStart
from meanfield.families.latent_tree.tables import Tables
from meanfield.typing import FloatArray

WEIGHT_VARIANCE = 1.0 / 3.0
"""Variance of uniform weights times the number of inputs."""

LEAVES = (0.0, 1.0)
"""Values of leaves for which averages at level 1 are splines in one variable."""


class WideLimit(NamedTuple):
    """Infinitely many nodes per latent at the start.

    Parameters
    ----------
    correlation : ndarray, shape (latents,)
        Root mean square of the correlation of a random node with its latent, the root first; NaN where trees are large.
    growth : float
        d log|Delta|/dt for as many nodes per latent as the problem has and few outputs.
    """

    correlation: FloatArray
    growth: float


class Kernels(NamedTuple):
    """Averages over nodes of a level for pairs of configurations, shape (configurations, configurations).

    Parameters
    ----------
    active : ndarray
        E[psi psi'] of activations.
    slopes : ndarray
        E[psi' psi'] of their slopes.
    tangent : ndarray
        Tangent kernel of a pre-activation.
    """

    active: FloatArray
    slopes: FloatArray
    tangent: FloatArray


def wide_limit(problem: Problem) -> WideLimit | None:
    """Limit of infinitely many nodes at the start; None for starts that are not uniform or leaves but 0 and 1."""
    if problem.data is not None or problem.initial is not None:
        return None
    tree, shape = problem.tree, problem.shape
    uniform = isinstance(problem.network.initial, UniformStart)
    # Splines of more than 8 leaves of a latent lose digits.
    if not uniform or tree.leaves != LEAVES or shape.children[0] > 8:
        return None
    tables = Tables(problem)
    correlations = []
    growth = np.nan
    kernels: Kernels | None = Kernels(np.diag(LEAVES), np.zeros((2, 2)), np.zeros((2, 2)))
    for level in shape.levels:
        if kernels is None or len(tables.given_parent) < level:
            correlations.append(np.full(shape.latents[level], np.nan))
            continue
        p = tables.chances[level]
        Q = tables.given_parent[level - 1].reshape(len(p), shape.children[level - 1], p.shape[1], -1)
        correlations.append(_correlations(Q, kernels.active, p))
        if level == shape.depth:
            growth = _growth(problem, Q[0], kernels)
        else:
            kernels = _above(problem, level, kernels)
    return WideLimit(np.concatenate(correlations[::-1]), growth)


def _correlations(Q: FloatArray, kernel: FloatArray, p: FloatArray) -> FloatArray:
    """Root mean square correlations of nodes whose children have a kernel.

    Parameters
    ----------
    Q : ndarray, shape (latents, children, values, configurations of a child)
        P(c|z).
    p : ndarray, shape (latents, values)
    """
    mean = np.einsum("lz,lkzc->lkc", p, Q)
    off = Q - mean[:, :, None]
    squares = np.einsum("lz,lkzc,cd,lkzd->l", p, off, kernel, off, optimize=True)
    spread = np.einsum("lkc,c->l", mean, np.diag(kernel)) - np.einsum("lkc,cd,lkd->l", mean, kernel, mean)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(squares / spread))


def _growth(problem: Problem, Q: FloatArray, kernels: Kernels) -> float:
    """2 p0 p1 times the tangent kernel of Delta, for one of few outputs; NaN of a root with more than two values."""
    if Q.shape[1] > 2:
        return np.nan
    gap, shape = Q[:, 1] - Q[:, 0], problem.shape
    nodes = shape.width(shape.depth - 1)
    tangent = nodes * kernels.active + WEIGHT_VARIANCE / shape.children[-1] * kernels.slopes * kernels.tangent
    return float(2.0 * np.prod(problem.tree.root) * np.einsum("kc,cd,kd", gap, tangent, gap))


def _above(problem: Problem, level: int, below: Kernels) -> Kernels | None:
    """Kernels of a level from those of the level below it; None where there are too many configurations."""
    shape, bias = problem.shape, problem.network.bias
    if shape.configurations[level] > 1024:  # the kernel has a number for each pair of them
        return None
    count = shape.children[level - 1]
    inner = shape.width(level - 1) * below.active + WEIGHT_VARIANCE / count * below.slopes * below.tangent
    tangent = _sum(inner, count) + float(bias)
    if level == 1:
        active, slopes = _of_uniform_weights(count, bias)
    else:
        of_bias = WEIGHT_VARIANCE / shape.inputs[level - 1] if bias else 0.0
        active, slopes = _of_gaussian(_sum(WEIGHT_VARIANCE / count * below.active, count) + of_bias)
    return Kernels(active, slopes, tangent)


def _sum(kernel: FloatArray, children: int) -> FloatArray:
    """Sum over children for pairs of configurations of all of them."""
    total = kernel
    for _ in range(children - 1):
        size = len(total) * len(kernel)
        total = (total[:, None, :, None] + kernel[None, :, None, :]).reshape(size, size)
    return total


def _of_gaussian(second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E[psi psi'] and E[psi' psi'] of Gaussian pairs with second moments, those of the arc-cosine kernels."""
    length = np.sqrt(np.diag(second))
    product = np.outer(length, length)
    there = product > 0.0
    cosine = np.clip(np.divide(second, product, out=np.zeros_like(second), where=there), -1.0, 1.0)
    angle = np.pi - np.arccos(cosine)
    active = product * (np.sqrt(1.0 - cosine**2) + angle * cosine) / (2.0 * np.pi)
    return active, np.where(there, angle / (2.0 * np.pi), 0.0)


def _of_uniform_weights(children: int, bias: bool) -> tuple[FloatArray, FloatArray]:
    """E[psi psi'] and E[psi' psi'] of nodes with uniform weights on leaves 0 and 1."""
    x = np.indices((2,) * children).reshape(children, -1)
    both = x.T @ x
    active, slopes = np.empty(both.shape), np.empty(both.shape)
    for i, j in np.ndindex(both.shape):
        found = _of_counts(int(both[i, j]) + bias, int(both[i, i] - both[i, j]), int(both[j, j] - both[i, j]))
        active[i, j], slopes[i, j] = found[0] / children, found[1]  # bounds of weights are 1/sqrt(children)
    return active, slopes


@cache
def _of_counts(both: int, first: int, second: int) -> tuple[float, float]:
    """E[psi(A + B) psi(A + B')] and that of slopes, for sums A, B and B' of so many uniform weights on [-1, 1]."""
    if both == 0:
        a, weight = np.zeros(1), np.ones(1)
    else:
        degree = both + first + second + 2
        nodes, weights = np.polynomial.legendre.leggauss(degree // 2 + 1)
        left = np.arange(-both, both)[:, None]
        a = (left + 0.5 * (1.0 + nodes)).ravel()
        weight = np.tile(0.5 * weights, 2 * both)
        weight = weight * _spline(a, both, both - 1)
    active = weight @ (_spline(a, first, first + 1) * _spline(a, second, second + 1))
    slopes = weight @ (_spline(a, first, first) * _spline(a, second, second))
    return float(active), float(slopes)


def _spline(x: FloatArray, count: int, power: int) -> FloatArray:
    """Density of a sum of so many uniform numbers, its distribution, or the integral of that, by the power."""
    terms = [
        (-1) ** k * comb(count, k) * np.where(x + count > 2 * k, np.maximum(x + count - 2 * k, 0.0) ** power, 0.0)
        for k in range(count + 1)
    ]
    return np.asarray(sum(terms) / (2.0**count * factorial(power)))
