"""Contribution of a penalty to the averages over a batch, by randomised quasi-Monte Carlo over whole batches.

Any psi, any centring and any number of channels: scrambled Sobol points give the hidden variables and normal numbers of
all samples of a batch. The points stay the same at all overlaps, so that averages are functions of these; several
randomisations tell their standard error. What does not depend on the penalty comes from a quadrature over one sample.
Source: several_channels.md, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.kinks import PanelRule
from meanfield.families.contrastive.channels.one_sample import (
    BatchLaw,
    OneSample,
    Rule,
    covariance_factor,
    fill_nodes,
    fill_outputs,
    means_of,
)
from meanfield.numerics.compiled.scalar_functions import call_scalar
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.quadrature import normal_numbers, sobol_points
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

MOST_NORMALS = 2**22
"""Largest number of normal numbers of a randomisation: 32 MB."""

MOST_BATCHES = 2**13
"""Number of batches of a randomisation where their normal numbers are not too many."""

LEAST_BATCHES = 2**8
"""Smallest number of batches of a randomisation."""

MOST_DIMENSIONS = 21201
"""Largest dimension of Sobol points."""


class Batches(NamedTuple):
    """Random numbers of many batches.

    Parameters
    ----------
    component : ndarray of int, shape (batches, m)
        Component of the hidden variables.
    normals : ndarray, shape (batches, m, directions)
    """

    component: IntArray
    normals: FloatArray


class Points(NamedTuple):
    """Random numbers of many batches, whatever the law of a sample is.

    Parameters
    ----------
    uniform : ndarray, shape (batches, m)
        From them follow components of the hidden variables.
    normals : ndarray, shape (batches, m, directions)
    """

    uniform: FloatArray
    normals: FloatArray

    def of(self, law: OneSample) -> Batches:
        """Batches of samples of a law."""
        component = np.searchsorted(np.cumsum(law.probability)[:-1], self.uniform, side="right")
        return Batches(component, self.normals)


Draw = Callable[[], Points]
"""Function that returns the random numbers of batches, which are drawn when they are first needed."""


def randomisations_of(law: OneSample, batch_size: int) -> tuple[list[Draw], Draw]:
    """What draws independent random numbers of as many batches as the memory allows, and what draws a trial.

    A trial takes ordinary random numbers: averages cost the same, while Sobol points take half a second to import.

    Raises
    ------
    InputError
        If a batch takes too many numbers.
    """
    dimensions = batch_size * (1 + law.directions)
    batches, numbers = MOST_BATCHES, batch_size * law.directions
    while batches > LEAST_BATCHES and batches * numbers > MOST_NORMALS:
        batches //= 2
    if dimensions > MOST_DIMENSIONS or batches * numbers > MOST_NORMALS:
        raise InputError(
            f"model.batch_size = {batch_size}: averages of this penalty are taken over whole batches, and "
            f"{LEAST_BATCHES} of them take {LEAST_BATCHES * numbers:,} normal numbers in {dimensions:,} dimensions, "
            f"where {MOST_NORMALS:,} in {MOST_DIMENSIONS:,} are the most; use the penalty 'square', or smaller batches"
        )
    # from the spread of some independent randomisations standard errors follow
    shape = batches, batch_size, 1 + law.directions
    draws: list[Draw] = [cache(partial(_draw_points, shape, sobol_points, seed)) for seed in range(8)]
    return draws, cache(partial(_draw_points, shape, _random_points, 0))


def _draw_points(shape: tuple[int, int, int], points_of: Callable[[int, int, int], FloatArray], seed: int) -> Points:
    """Points of the unit cube as random numbers of batches."""
    points = points_of(shape[0], shape[1] * shape[2], seed).reshape(shape)
    return Points(points[..., 0].copy(), np.ascontiguousarray(normal_numbers(points[..., 1:])))


def _random_points(count: int, dimensions: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).random((count, dimensions))


@dataclass(frozen=True)
class PenaltyAverages:
    """Contribution of a penalty to the averages by random batches: a function of its strength, q and M.

    Parameters
    ----------
    draw : callable
    penalty_slope : int
        Address of psi'.
    rule : Rule or PanelRule
        For the mean outputs.
    """

    batch_law: BatchLaw
    draw: Draw
    penalty_slope: int
    rule: Rule | PanelRule

    @cached_property
    def batches(self) -> Batches:
        """Random numbers of the law."""
        return self.draw().of(self.batch_law.sample)

    def __call__(self, strength: float, q: FloatArray, M: FloatArray) -> FloatArray:
        """P, D and Lambda / tau^2 in one vector, at a strength lambda."""
        law, means = self.batch_law.sample, np.zeros(self.batch_law.sample.views * q.shape[1])
        if self.batch_law.centred:
            weight, theta, _ = fill_nodes(law, self.rule.at(law, q, M), q, M)
            means = fill_outputs(self.batch_law.activation, theta)[0] @ weight
        return np.asarray(randomised_averages(self.batch_law, self.batches, self.penalty_slope, strength, means, q, M))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def randomised_averages(batch_law, batches, penalty_slope, strength, means, q, M):  # type: ignore[no-untyped-def]
    """Contribution of the penalty to P, D and Lambda / tau^2, in one vector as in `exact_averages`.

    Parameters
    ----------
    batch_law : BatchLaw
    batches : Batches
    penalty_slope : int
        Address of psi'.
    strength : float
        lambda.
    means : ndarray, shape (views d2,)
        What is subtracted from outputs besides the mean of the batch.
    q, M : ndarray, shapes (d1, d2) and (d2, d2)
    """
    d1, d2 = q.shape
    count, m = batches.component.shape
    law, activation = batch_law.sample, batch_law.activation
    views = law.views
    targets = views * d2
    factor = np.empty((law.probability.size, views * (d1 + d2), law.directions))
    mean = np.empty((law.probability.size, views * (d1 + d2)))
    for a in range(law.probability.size):
        factor[a], mean[a] = call(covariance_factor, law, a, q, M), call(means_of, law, a, q)
    scalars = np.empty((m, views * (d1 + d2)))
    y, s = np.empty((m, targets)), np.empty((m, targets))
    coupling = np.empty((d2, d2))
    free, bound = np.empty(targets), np.empty(targets)
    result = np.zeros(d1 * d2 + 2 * d2 * d2)
    second = views - 1
    for batch in range(count):
        for b in range(m):
            a = batches.component[batch, b]
            for row in range(scalars.shape[1]):
                value = mean[a, row]
                for column in range(law.directions):
                    value += factor[a, row, column] * batches.normals[batch, b, column]
                scalars[b, row] = value
            for v in range(targets):
                y[b, v] = call_scalar(activation[0], scalars[b, v]) - means[v]
                s[b, v] = call_scalar(activation[1], scalars[b, v])
        if batch_law.by_batch:
            for v in range(targets):
                total = 0.0
                for b in range(m):
                    total += y[b, v]
                for b in range(m):
                    y[b, v] -= total / m
        for k in range(d2):
            for j in range(d2):
                C = 0.0
                for b in range(m):
                    C += y[b, k] * y[b, second * d2 + j]
                coupling[k, j] = -strength * call_scalar(penalty_slope, C / m) if k != j else 0.0
        for b in range(m):
            for k in range(d2):
                for view in range(views):
                    other = (second - view) * d2 if views == 2 else 0
                    extra = 0.0
                    for j in range(d2):
                        extra += (coupling[k, j] if view == 0 else coupling[j, k]) * y[b, other + j]
                    free[view * d2 + k] = s[b, view * d2 + k] * y[b, other + k]
                    bound[view * d2 + k] = s[b, view * d2 + k] * extra
            _add_sample(scalars[b], free, bound, batch_law.factors, d1, d2, views, result)
    return result / (count * m)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_sample(scalars, free, bound, factors, d1, d2, views, result):  # type: ignore[no-untyped-def]
    """Add what the sensitivities `bound` of a sample to the penalty change besides those without it, `free`."""
    twice = 2.0 / views
    for view in range(views):
        for k in range(d2):
            alpha = twice * bound[view * d2 + k]
            for f in range(d1):
                result[f * d2 + k] += alpha * scalars[views * d2 + view * d1 + f]
            for l in range(d2):  # noqa: E741
                result[d1 * d2 + k * d2 + l] += alpha * scalars[view * d2 + l]
            for other in range(views):
                factor = factors[2] if view != other else factors[view] if views == 2 else factors.sum() + factors[2]
                for l in range(d2):  # noqa: E741
                    v, w = view * d2 + k, other * d2 + l
                    product = bound[v] * (free[w] + bound[w]) + free[v] * bound[w]
                    result[d1 * d2 + d2 * d2 + k * d2 + l] += factor * product
