"""Plain SGD, step by step as in hidden_manifold.md, section 1.

The inputs of a step do not depend on the weights. So the products F^T C of some samples are computed at once, at the
speed of the arithmetic: with one at a time a step would wait for F to come from memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.families.hidden_manifold.particles.latents import draw_latents
from meanfield.families.hidden_manifold.particles.networks import take_step
from meanfield.families.hidden_manifold.particles.single_precision import (
    SinglePrecision,
    multiply_in_single,
    single_precision_for,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.array_operations import add, dot
from meanfield.numerics.compiled.matrix_products import TOGETHER, pack, tiles_for
from meanfield.numerics.compiled.scalar_functions import call_loop, compile_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

SAMPLES = 8 * TOGETHER
"""Number of samples whose inputs are computed at once: F is read for all of them, and they fit into the caches."""


class Inputs(NamedTuple):
    """Feature matrix and nonlinearity, for compiled code.

    Parameters
    ----------
    panels : ndarray
        F/sqrt(D), packed as for `meanfield.numerics.compiled.matrix_products.multiply`.
    loop : int
        Address of the loop of f.
    shift : float
        Subtracted from f.
    tiles, products : ndarray
        Working arrays: latents C, and F^T C/sqrt(D).
    single : SinglePrecision
        The same panels, to multiply with.
    """

    panels: FloatArray
    loop: int
    shift: float
    tiles: FloatArray
    products: FloatArray
    single: SinglePrecision


def inputs_of(problem: Problem, F: FloatArray) -> Inputs:
    """Inputs of a problem with a feature matrix, shape (D, N)."""
    panels, tiles = pack(F / np.sqrt(len(F))), tiles_for(SAMPLES, len(F))
    products, f = np.empty((SAMPLES, panels.shape[0] * panels.shape[2])), problem.inputs.function
    single = single_precision_for(f, panels, tiles, products)
    return Inputs(panels, compile_loop(f.value), problem.inputs.shift, tiles, products, single)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def plain_steps(  # type: ignore[no-untyped-def]
    networks, inputs, mixture, teacher, key, replica, first, steps, W, v
):
    """Take steps `first`, `first` + 1, ..., changing W and v in place.

    Parameters
    ----------
    networks : Networks
    inputs : Inputs
    mixture : Mixture
    teacher : ndarray, shape (teachers, D)
        Wt/sqrt(D).
    key, replica
        Address of the random streams.
    first, steps : int
    W : ndarray, shape (students, N)
    v : ndarray, shape (students,)

    Returns
    -------
    int
        The step after which everything was still finite: first + steps unless it blew up.
    """
    tiles, products, fields = inputs.tiles, inputs.products, np.empty((SAMPLES, teacher.shape[0]))
    x, own, gains = np.empty(products.shape[1]), np.empty(v.size), np.empty(v.size)
    for chunk in range(first, first + steps, SAMPLES):
        samples = min(SAMPLES, first + steps - chunk)
        call(draw_latents, mixture, teacher, key, replica, chunk, samples, tiles, fields)
        call(multiply_in_single, inputs.single, inputs.panels, tiles, samples, products)
        for i in range(samples):
            call_loop(inputs.loop, products[i], x)
            if not _step(networks, inputs.shift, fields[i], x[: W.shape[1]], W, v, own, gains):
                return chunk + i
    return first + steps


@numba.njit(inline="always", error_model="numpy")
def _step(networks, shift, teacher_fields, x, W, v, own, gains):  # type: ignore[no-untyped-def]
    """One step with the sample f(U) = x; false if it blew up before."""
    N = x.size
    if shift != 0.0:
        for i in range(N):
            x[i] -= shift
    for k in range(v.size):
        own[k] = dot(x, W[k]) / math.sqrt(N)
    if not take_step(networks, N, own, teacher_fields, v, gains):
        return False
    for k in range(v.size):
        add(W[k], gains[k], x)
    return True
