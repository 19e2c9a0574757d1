"""Latents C of samples at finite N, from random-access streams."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.ensembles.streams import NORMALS, UNIFORMS, fill_normals, fill_uniforms
from meanfield.families.hidden_manifold.inputs import number_of
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.array_operations import dot
from meanfield.numerics.compiled.matrix_products import VECTORS_PER_TILE
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray


class Mixture(NamedTuple):
    """Law of the latents, for compiled code.

    Parameters
    ----------
    cumulated : ndarray, shape (components,)
        Cumulated weights of the components but for the last, which is 2.
    scale, mean : ndarray, shape (components, D)
        Standard deviations and means of latents.
    per_coordinate : bool
        Whether each latent draws its own component.
    """

    cumulated: FloatArray
    scale: FloatArray
    mean: FloatArray
    per_coordinate: bool


def mixture_of(problem: Problem, mean: FloatArray) -> Mixture:
    """Law of the latents of a problem with means E[C] besides those that all have, shape (components, D)."""
    inputs = problem.inputs
    components, drawn = inputs.mixture, inputs.random_means
    cumulated = np.cumsum([component.weight for component in components])
    cumulated[-1] = 2.0  # no uniform number is above it, whatever rounding did to the sum
    scale = np.repeat([[component.scale] for component in components], mean.shape[1], axis=1)
    mean = mean + np.array([[number_of(component)] for component in components])
    if drawn is not None and drawn.each == "latent":
        own = drawn.drawn(mean.shape[1])
        if inputs.standardise == "latents":
            deviation = np.sqrt(1.0 + own.var(axis=0))
            own = (own - own.mean(axis=0)) / deviation
            scale /= deviation
        mean += own
    return Mixture(cumulated, scale, mean, inputs.components_drawn == "coordinate" and len(components) > 1)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def draw_latents(mixture, teacher, key, replica, first, samples, tiles, fields):  # type: ignore[no-untyped-def]
    """Draw the latents of samples `first`, `first` + 1, ... and the teacher's fields.

    Parameters
    ----------
    mixture : Mixture
    teacher : ndarray, shape (teachers, D)
        Wt/sqrt(D).
    key, replica
        Address of the streams.
    first, samples : int
    tiles : ndarray, shape (tiles, D, VECTORS_PER_TILE)
        Receives C, as factors of a product.
    fields : ndarray, shape (samples, teachers)
        Receives nu = Wt.C/sqrt(D).
    """
    D = teacher.shape[1]
    even = D + D % 2
    chances = even if mixture.per_coordinate else 2
    C, uniforms = np.empty(even), np.empty(chances)
    for i in range(samples):
        call(fill_normals, key, replica, NORMALS, (first + i) * even, C)
        if mixture.cumulated.size > 1:
            call(fill_uniforms, key, replica, UNIFORMS, (first + i) * chances, uniforms)
        if mixture.per_coordinate:
            for r in range(D):
                q = component(mixture.cumulated, uniforms[r])
                C[r] = mixture.mean[q, r] + mixture.scale[q, r] * C[r]
        else:
            q = component(mixture.cumulated, uniforms[0]) if mixture.cumulated.size > 1 else 0
            for r in range(D):
                C[r] = mixture.mean[q, r] + mixture.scale[q, r] * C[r]
        tile, place = tiles[i // VECTORS_PER_TILE], i % VECTORS_PER_TILE
        for r in range(D):
            tile[r, place] = C[r]
        for m in range(teacher.shape[0]):
            fields[i, m] = dot(teacher[m], C)


@numba.njit(inline="always", error_model="numpy")
def component(cumulated, uniform):  # type: ignore[no-untyped-def]
    """First component whose cumulated weight reaches a uniform number, by bisection: a file may hold thousands."""
    q, last = 0, cumulated.size - 1
    while q < last:
        middle = (q + last) // 2
        if cumulated[middle] < uniform:
            q = middle + 1
        else:
            last = middle
    return q
