"""Inputs whose means differ: moments of f for each input where all latents have a mean.

With latents of mean mu the product U_i has the mean mu sum_r F_ri/sqrt(D), a number of order 1 that differs from
input to input, so that the fields of the student take other moments of f from each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss

from meanfield.families.hidden_manifold.expectations.quadrature import FARTHEST_NORMAL
from meanfield.ingredients.nonlinearities import Nonlinearity
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray

NODES, WEIGHTS = leggauss(8)


class InputMoments(NamedTuple):
    """Moments of f(centre + scale u) for u ~ N(0, 1), shape (inputs,) each: E[f], E[u f] and E[f^2]."""

    mean: FloatArray
    slope: FloatArray
    square: FloatArray


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
