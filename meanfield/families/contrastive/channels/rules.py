"""Law of a batch of a problem of several channels, and averages over it by a rule that is fine enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.kinks import PanelRule
from meanfield.families.contrastive.channels.one_sample import BatchLaw, OneSample, Rule
from meanfield.families.contrastive.closures.closure import noise_of
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.quadrature import gaussian_trapezoid, normal_numbers, sobol_points, tensor_rule
from meanfield.typing import FloatArray

TRAPEZOIDS = (16, 24, 32, 48, 64, 96, 128)
"""Nodes per direction of the trapezoidal rules."""

SOBOL = (2**11, 2**13, 2**15)
"""Numbers of Sobol points, for more directions than tensor products resolve."""

MOST_NODES = 400_000
"""Largest number of nodes of one sample: an average then takes some 50 ms."""


ACCURATE = 1e-9
"""Change of the averages by a finer rule, relative to their size, below which a rule is taken as it is."""

LARGEST_CHANGE = 1e-2
"""Largest change by a finer rule of averages that are taken at all."""

Vector = Callable[[FloatArray, FloatArray], FloatArray]
"""Function from q and M to P, D and Lambda / tau^2 in one vector."""

Method = Callable[[Rule, FloatArray, FloatArray], FloatArray]
"""Function from a rule for one sample, q and M to that vector."""


class Quadrature(NamedTuple):
    """Rule that was chosen for averages.

    Parameters
    ----------
    rule : Rule or PanelRule
    error : float
        Change of the averages by a finer rule, relative to their size.
    compared : Rule or PanelRule, optional
        Another rule, coarser if there is one; None where the first is accurate to rounding.
    """

    rule: Rule | PanelRule
    error: float
    compared: Rule | PanelRule | None


def batch_law_of(problem: Problem, noisy: bool = False) -> BatchLaw:
    """Law of a batch of a problem; see `one_sample_of` for what it refuses."""
    model = problem.model
    sample = one_sample_of(problem, noisy=noisy)
    V = sample.noise
    return BatchLaw(
        sample,
        model.activation_functions.addresses,
        model.batch_size,
        model.centering != "none",
        model.centering == "batch",
        np.array([1 + V[0, 0], 1 + V[1, 1], 1 + V[0, 1]]) / model.batch_size,
    )


def one_sample_of(problem: Problem, moments: float = 1.0, noisy: bool = False) -> OneSample:
    """Law of one sample of a problem.

    Parameters
    ----------
    moments : float
        Factor on the order of the moments that P, D and Lambda take, for averages of higher powers.
    noisy : bool
        Whether views differ at other times, so that there are two of them here as well.

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
    views = 2 if noisy or V.any() else 1
    # Both views have the same noise, up to rounding.
    directions = d2 if np.ptp(V) <= 1e-12 * np.abs(V).max() and not noisy else 2 * d2
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


def refined(
    method: Method,
    law: OneSample,
    kinks: tuple[float, ...],
    states: Sequence[tuple[FloatArray, FloatArray]],
    accurate: float,
    worst: float,
) -> Quadrature:
    """The first rule by which averages do not change any more by a finer one, or the finest that there is.

    Parameters
    ----------
    kinks : tuple of float
        Pre-activations at which the averages have kinks.
    states : sequence of (ndarray, ndarray)
        Overlaps q and M at which rules are compared.
    accurate : float
        Change, relative to the size of the averages, below which a rule is taken.
    worst : float
        Change in one state above which a rule is not tried in the others.
    """
    vectors: list[Vector] = []

    @cache
    def values(k: int, state: int) -> FloatArray:
        return vectors[k](*states[state])

    def change(k: int) -> float:
        largest = 0.0
        for state in range(len(states)):
            before = values(k - 1, state)
            # A change that is no number stays the largest.
            largest = float(np.maximum(largest, np.abs(values(k, state) - before).max() / np.abs(before).max()))
            if not largest <= worst:
                break
        return largest

    rules: list[Rule | PanelRule] = []
    error = np.inf
    for k, rule in enumerate(rules_for(law, kinks)):
        rules.append(rule)
        vectors.append(vector_by(rule, method, law))
        if k:
            error = change(k)
        if error <= accurate:
            compared = None if error <= ACCURATE else rules[k - 2 if k > 1 else k]
            return Quadrature(rules[k - 1], error, compared)
    return Quadrature(rules[-1], error, rules[-2] if len(rules) > 1 else None)


def vector_by(rule: Rule | PanelRule, method: Method, law: OneSample) -> Vector:
    """Averages by a rule."""
    return lambda q, M: method(rule.at(law, q, M), q, M)


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
        for count in SOBOL:
            if count <= most:
                normals = normal_numbers(sobol_points(count, directions, seed=count))
                yield Rule(np.ascontiguousarray(normals.T), np.full(count, 1.0 / count), np.array([0, count]))


@lru_cache
def _gauss(count: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Hermite nodes and probabilities; branches of states ask for them at every value of a parameter."""
    x, weight = np.polynomial.hermite_e.hermegauss(count)
    return x, weight / weight.sum()


def _tensor(x: FloatArray, weight: FloatArray, directions: int) -> Rule:
    nodes, weights = tensor_rule([(x, weight)] * directions, 1e-22)
    return Rule(np.ascontiguousarray(nodes.T), weights, np.array([0, weights.size]))
