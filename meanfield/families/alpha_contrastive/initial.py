"""Weights of a network at the start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from meanfield.ensembles.stepper import replica_generator
from meanfield.families.alpha_contrastive.filters import FanInStart, FourierStart, GivenStart, RandomStart
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.results.result import Result
from meanfield.typing import FloatArray


class Weights(NamedTuple):
    """Weights of a network, with leading dims for several networks.

    Parameters
    ----------
    filters : ndarray, shape (..., places, filters, coordinates)
    top : ndarray, shape (..., outputs, places * filters)
        No outputs for one layer, whose filters are the outputs.
    """

    filters: FloatArray
    top: FloatArray


def initial_weights(problem: Problem, rng: Generator) -> Weights:
    """Weights at the start; laws without a seed of their own draw from `rng`."""
    start = problem.filters.start
    shape = problem.shape
    model = problem.model
    outputs = model.outputs if model.layers == 2 else 0
    if isinstance(start, GivenStart):
        top = np.zeros((0, shape[0] * shape[1])) if start.top is None else np.array(start.top, dtype=float)
        found = Weights(np.array(start.values, dtype=float).reshape(shape), top)
    else:
        if isinstance(start, RandomStart):
            rng = np.random.default_rng(start.seed)
        found = _drawn(start, rng, shape, outputs)
    filters, top = found
    if model.unit_filters or not isinstance(start, FanInStart | GivenStart):
        filters = unit(filters, 1)
    if outputs and (model.unit_top or not isinstance(start, FanInStart | GivenStart)):
        top = unit(top, 2)
    return Weights(filters, top)


def few_filters(problem: Problem) -> int:
    """Number of filters of a trial: more of them cost, and have weights, in proportion."""
    filters = problem.filters.count
    return filters if isinstance(problem.filters.start, GivenStart) else min(filters, 4096)


def common_weights(problem: Problem) -> Weights:
    """Weights at the start of replica 0, and of the exact flow."""
    return initial_weights(problem, replica_generator(problem.particles.seed, 0))


def start_of(result: Result) -> FloatArray | None:
    """See `meanfield.extend.Family.start`."""
    problem = result.problem
    if result.method == "best_network":
        return np.empty(0)
    single = result.method == "population"
    runs = not result.is_prediction and shares_start(problem)
    return np.concatenate([part.ravel() for part in common_weights(problem)]) if single or runs else None


def shares_start(problem: Problem) -> bool:
    """Whether all runs start with the same weights."""
    return problem.particles.common_start or isinstance(problem.filters.start, RandomStart | GivenStart)


def _drawn(start: object, rng: Generator, shape: tuple[int, int, int], outputs: int) -> Weights:
    """Random weights, before they are divided by their length."""
    fan_in = shape[0] * shape[1]
    if isinstance(start, FanInStart):
        filters = rng.uniform(-1.0, 1.0, shape)
        top = rng.uniform(-1.0, 1.0, (outputs, fan_in))
        return Weights(start.scale * filters / np.sqrt(shape[2]), start.scale * top / np.sqrt(fan_in))
    if isinstance(start, FourierStart):
        angle = np.linspace(-np.pi, np.pi, 2**14 + 1)  # angles between which the distribution function is interpolated
        rise = start.distribution(angle) - start.distribution(angle[:1])
        drawn = np.interp(rng.random(shape[:2]), rise, angle)
        return Weights(np.stack([np.cos(drawn), np.sin(drawn)], axis=-1), np.zeros((0, fan_in)))
    return Weights(rng.standard_normal(shape), rng.standard_normal((outputs, fan_in)))


def unit(weights: FloatArray, dims: int) -> FloatArray:
    """Weights divided by their length in the last dims, one or two."""
    axes = tuple(range(-dims, 0))
    return np.asarray(weights / np.sqrt(np.sum(weights * weights, axis=axes, keepdims=True)))


def tangential(slope: FloatArray, weights: FloatArray, dims: int) -> FloatArray:
    """Part of a slope that leaves the length of unit weights, in the last dims, as it is."""
    axes = tuple(range(-dims, 0))
    return np.asarray(slope - np.sum(slope * weights, axis=axes, keepdims=True) * weights)
