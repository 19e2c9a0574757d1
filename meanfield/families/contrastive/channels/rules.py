"""Law of one sample of a problem of several channels, and rules for its Gaussian directions of rising accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import product

import numpy as np
from scipy.special import ndtri

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.kinks import PanelRule
from meanfield.families.contrastive.channels.one_sample import OneSample, Rule
from meanfield.families.contrastive.channels.randomised import LEAST_UNIFORM
from meanfield.families.contrastive.closures.closure import noise_of
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.quadrature import gaussian_trapezoid, tensor_rule
from meanfield.typing import FloatArray

TRAPEZOIDS = (16, 24, 32, 48, 64, 96, 128)
"""Nodes per direction of the trapezoidal rules."""

SOBOL = (2**11, 2**13, 2**15)
"""Numbers of Sobol points, for more directions than tensor products resolve."""

MOST_NODES = 400_000
"""Largest number of nodes of one sample: an average then takes some 50 ms."""


def one_sample_of(problem: Problem, moments: float = 1.0) -> OneSample:
    """Law of one sample of a problem.

    Parameters
    ----------
    problem : Problem
    moments : float
        Factor on the order of the moments that P, D and Lambda take, for averages of higher powers.

    Raises
    ------
    InputError
        If a hidden law lacks the moments that averages need, or one sample takes too many nodes.
    """
    settings = problem.decorrelation
    growth = problem.model.activation_functions.growth
    squares = settings is not None and settings.strength > 0 and settings.penalty == "square"
    power = max(2.0, 8 * growth - 2 if squares else 4 * growth - 2, 2 * growth)
    parts = [law.components(moments * power) for law in problem.hidden_laws]
    v11, v12, v22 = noise_of(problem)
    V = np.array([[v11, v12], [v12, v22]])
    d2 = problem.model.channels
    views = 2 if V.any() else 1
    # Both views have the same noise, up to rounding.
    directions = d2 if np.ptp(V) <= 1e-12 * np.abs(V).max() else 2 * d2
    count = math.prod(len(part[0]) for part in parts)
    nodes = count * SOBOL[1]
    if nodes > MOST_NODES:
        raise InputError(
            f"features.hidden: one sample of model.channels = {d2} has {directions} Gaussian directions and {count:,} "
            f"components of the hidden variables, which takes {nodes:,} nodes or more "
            f"({nodes * 192 / 1e9:.3g} GB), and {MOST_NODES:,} are the most; use fewer features, or laws "
            "with fewer values, or SGD"
        )
    probability = np.array([math.prod(p) for p in product(*(part[0] for part in parts))])
    mean = np.array([np.concatenate(m) for m in product(*(part[1] for part in parts))])
    variance = np.array([np.concatenate(v) for v in product(*(part[2] for part in parts))])
    likely = probability > 0
    return OneSample(probability[likely], mean[likely], variance[likely], V, views, directions)


def rules_for(law: OneSample, kinks: tuple[float, ...]) -> Iterator[Rule | PanelRule]:
    """Rules for the Gaussian directions of one sample, each more accurate than the one before, as far as they fit.

    Between the kinks of the activation there are Gauss-Legendre panels, where they fit. Else tensor products come
    first, then scrambled Sobol points where finer tensor products take too many nodes.
    """
    most = MOST_NODES // law.probability.size
    directions = law.directions
    if kinks and (6 * 16) ** directions <= most:  # usually six panels in a direction, each with up to 16 nodes
        for count in (8, 10, 12, 16):
            x, weight = np.polynomial.legendre.leggauss(count)
            yield PanelRule(x, weight, np.array(kinks))
        return
    # Products of degree 14, as the square penalty makes of quadratic outputs, are exact by the first rule, those of
    # cubic outputs by the second.
    for count in (8, 12):
        if count**directions <= most:
            yield _tensor(*_gauss(count), directions)
    for count in TRAPEZOIDS:
        # A ball of the Gaussian directions is left; the cube around it must not fill the memory meanwhile.
        if count**directions <= 4 * most:
            rule = _tensor(*gaussian_trapezoid(count), directions)
            if rule.weights.size <= most:
                yield rule
    if TRAPEZOIDS[-1] ** directions > most:
        from scipy.stats import qmc  # imported where it is used: it takes longer than most scripts run

        for count in SOBOL:
            if count <= most:
                points = qmc.Sobol(directions, rng=np.random.default_rng(count)).random(count)
                normals = ndtri(np.clip(points, LEAST_UNIFORM, 1.0 - LEAST_UNIFORM))
                yield Rule(np.ascontiguousarray(normals.T), np.full(count, 1.0 / count), np.array([0, count]))


@lru_cache
def _gauss(count: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Hermite nodes and probabilities; branches of states ask for them at every value of a parameter."""
    x, weight = np.polynomial.hermite_e.hermegauss(count)
    return x, weight / weight.sum()


def _tensor(x: FloatArray, weight: FloatArray, directions: int) -> Rule:
    nodes, weights = tensor_rule([(x, weight)] * directions, 1e-22)
    return Rule(np.ascontiguousarray(nodes.T), weights, np.array([0, weights.size]))
