"""Inputs whose means differ: moments of f for each input where all latents have a mean.

With latents of mean mu the product U_i has the mean mu sum_r F_ri/sqrt(D), a number of order 1 that differs from
input to input, so that the fields of the student take other moments of f from each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss

from meanfield.families.hidden_manifold.expectations.quadrature import FARTHEST_NORMAL
from meanfield.families.hidden_manifold.particles.latents import Mixture
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.ingredients.nonlinearities import Nonlinearity
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray

NODES, WEIGHTS = leggauss(8)


class InputMoments(NamedTuple):
    """Moments of f(centre + scale u) for u ~ N(0, 1), shape (inputs,) each: E[f], E[u f] and E[f^2]."""

    mean: FloatArray
    slope: FloatArray
    square: FloatArray


class Latents(NamedTuple):
    """Law of the latents in one of the Gaussians that they are: means and variances, shape (D,) each."""

    mean: FloatArray
    variance: FloatArray

    @property
    def deviation(self) -> float:
        """Standard deviation of the products U_i, to which all latents contribute alike."""
        return float(np.sqrt(self.variance.mean()))


OwnMoments = tuple[Latents, InputMoments]
"""One of the Gaussians that latents are, and moments of f for each input in it."""


def own_moments(problem: Problem, mixture: Mixture, F: FloatArray) -> list[OwnMoments]:
    """Moments of inputs in each of the Gaussians that the latents of a replica are, with its features (D, N)."""
    weight = np.diff(np.append(0.0, np.minimum(mixture.cumulated, 1.0)))
    if mixture.per_coordinate:
        mean = weight @ mixture.mean
        variance = weight @ (mixture.scale**2 + mixture.mean**2) - mean**2
        gaussians = [Latents(mean, variance)]
    else:
        gaussians = [Latents(mean, scale**2) for mean, scale in zip(mixture.mean, mixture.scale, strict=True)]
    function = problem.inputs.function
    return [(each, input_moments(function, F.T @ each.mean / np.sqrt(len(F)), each.deviation)) for each in gaussians]


def standardisation(problem: Problem, own: Sequence[OwnMoments] | None) -> tuple[FloatArray, FloatArray]:
    """What is subtracted from f of each input, and by what the rest is multiplied, shape (N,) each.

    Parameters
    ----------
    own : sequence of OwnMoments, optional
        Of inputs whose means differ; others share their moments in the limit.
    """
    inputs = problem.inputs
    if own is None or inputs.standardise != "inputs":
        N = problem.particles.dimension
        return np.full(N, inputs.shift), np.full(N, inputs.factor)
    # Components that own means belong to are of equal weight.
    mean, square = (np.mean([getattr(moments, name) for _, moments in own], axis=0) for name in ("mean", "square"))
    return mean, (square - mean**2) ** -0.5


def input_moments(function: Nonlinearity, centres: FloatArray, scale: float) -> InputMoments:
    """Moments of f for each input, by Gauss-Legendre panels between its kinks."""
    # On panels of the argument of f that are 0.5 wide 8 nodes give functions such as tanh to 1e-10; a law wider than
    # 512 of them needs no more digits.
    panels = min(max(int(np.ceil(2 * FARTHEST_NORMAL * max(scale, 1.0) / 0.5)), 1), 512)
    parts = np.array_split(centres, -(-len(centres) // 64))  # 64 inputs at once, for the sake of memory
    return InputMoments(*np.concatenate([_moments(function, part, scale, panels) for part in parts], axis=1))


def _moments(function: Nonlinearity, centres: FloatArray, scale: float, panels: int) -> FloatArray:
    """Moments at some centres, shape (3, centres)."""
    kinks = (np.array([-np.inf, *function.kinks, np.inf]) - centres[:, None]) / scale
    ends = np.sort(np.clip(kinks, -FARTHEST_NORMAL, FARTHEST_NORMAL), axis=1)
    edges = ends[:, :-1, None] + np.diff(ends)[:, :, None] * np.linspace(0.0, 1.0, panels + 1)
    half = 0.5 * np.diff(edges)
    middle = 0.5 * (edges[..., 1:] + edges[..., :-1])
    u = (middle[..., None] + half[..., None] * NODES).reshape(len(centres), -1)
    weight = (half[..., None] * WEIGHTS).reshape(u.shape) * np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
    value = evaluate(function.value, centres[:, None] + scale * u)
    return np.array([(weight * g).sum(axis=1) for g in (value, u * value, value * value)])
