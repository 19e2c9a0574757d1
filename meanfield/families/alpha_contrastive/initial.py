"""Weights of a network at the start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from meanfield.ensembles.stepper import replica_generator
from meanfield.families.alpha_contrastive.filters import FanInStart, FourierStart, GivenStart, RandomStart
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.results.initial_state import first_weights, seed_of
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


def initial_weights(problem: Problem, rng: Generator, run: int = 0) -> Weights:
    """Weights at the start of a run; laws without a seed of their own draw from `rng`."""
    start = problem.filters.start
    shape = problem.shape
    model = problem.model
    outputs = model.outputs if model.layers == 2 else 0
    if problem.initial is not None:
        return _from_file(problem, rng, run)
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


def _from_file(problem: Problem, rng: Generator, run: int) -> Weights:
    """Weights of a run of a file, or filters that are drawn from its density."""
    assert problem.initial is not None
    state, model = problem.initial.atoms, problem.model
    if state.law is not None:
        return Weights(state.law.sample(rng, problem.filters.count)[None], np.zeros((0, problem.filters.count)))
    assert state.filters is not None
    assert state.top is not None
    filters, top = state.filters[run % state.runs], state.top[run % state.runs]
    if model.unit_filters:
        filters = _of_length_one(filters, 1)
    return Weights(filters, _of_length_one(top, 2) if len(top) and model.unit_top else top)


def _of_length_one(weights: FloatArray, dims: int) -> FloatArray:
    """Weights divided by their length, but for those of a run that goes on with them as they are."""
    divided = unit(weights, dims)
    return weights if np.allclose(divided, weights, rtol=0.0, atol=1e-12) else divided  # rounding of a length


def few_filters(problem: Problem) -> int:
    """Number of filters of a trial: more of them cost, and have weights, in proportion."""
    filters = problem.filters.count
    given = isinstance(problem.filters.start, GivenStart)
    in_file = problem.initial is not None and problem.initial.atoms.filters is not None
    return filters if given or in_file else min(filters, 4096)


def common_weights(problem: Problem) -> Weights:
    """Weights at the start of replica 0, and of the exact flow."""
    return initial_weights(problem, replica_generator(seed_of(problem), 0))


def start_of(result: Result) -> FloatArray | None:
    """See `meanfield.extend.Family.start`."""
    problem = result.problem
    if result.method == "best_network":
        return np.empty(0)
    single = result.method == "population"
    if problem.initial is not None:
        return first_weights(result, "weights", "top") if single or not result.is_prediction else None
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
