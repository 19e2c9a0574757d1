"""Plain SGD, step by step as in hidden_manifold.md, section 1.

The inputs of a step do not depend on the weights. So the products F^T C of some samples are computed at once, at the
speed of the arithmetic: with one at a time a step would wait for F to come from memory.

Products of features and latents are of single precision, at twice the speed. They differ in the eighth digit, which the
law of SGD does not notice. Where the sign alone matters, it is that of double precision: products that are smaller than
the largest error that they may have are computed again, one of some thousand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.ensembles.arrays import Array
from meanfield.ensembles.streams import fill_normals
from meanfield.families.hidden_manifold.particles.latents import draw_latents
from meanfield.families.hidden_manifold.particles.networks import LABELS, add_sample, is_in_place, row_of
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.ingredients.nonlinearities import NONLINEARITIES, Nonlinearity
from meanfield.numerics.compiled.array_operations import add, copy, dot, scale
from meanfield.numerics.compiled.matrix_products import VECTORS_PER_TILE, multiply, pack, relative_error, tiles_for
from meanfield.numerics.compiled.scalar_functions import call_loop, compile_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.vectors import WIDE_LANES
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

SAMPLES = 8 * VECTORS_PER_TILE
"""Number of samples whose inputs are computed at once: F is read for all of them, and they fit into the caches."""


class InputBuffers(NamedTuple):
    """Feature matrix and nonlinearity, for compiled code.

    Parameters
    ----------
    panels : ndarray
        F/sqrt(D), packed as for `meanfield.numerics.compiled.matrix_products.multiply`.
    loop : int
        Address of the loop of f.
    shift, factor : ndarray, shape (N,)
        Subtracted from f of each input, and by what the rest is multiplied.
    tiles, products : ndarray
        Working arrays: latents C, and F^T C/sqrt(D).
    single : SinglePrecision
        The same panels, to multiply with.
    """

    panels: FloatArray
    loop: int
    shift: FloatArray
    factor: FloatArray
    tiles: FloatArray
    products: FloatArray
    single: SinglePrecision


def inputs_of(problem: Problem, F: FloatArray, shift: FloatArray, factor: FloatArray) -> InputBuffers:
    """Inputs of a problem with a feature matrix, shape (D, N); shift and factor as of `InputBuffers`."""
    panels = pack(F / np.sqrt(len(F)))
    tiles = tiles_for(SAMPLES, len(F))
    products = np.empty((SAMPLES, panels.shape[0] * panels.shape[2]))
    f = problem.inputs.function
    single = single_precision_for(f, panels, tiles, products)
    return InputBuffers(panels, compile_loop(f.value), shift, factor, tiles, products, single)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def plain_steps(  # type: ignore[no-untyped-def]
    networks, inputs, mixture, teacher, key, replica, first, start, stop, W, v, velocity
):
    """Take steps `first`, `first` + 1, ..., until samples are used up, changing W and v in place.

    Parameters
    ----------
    networks : Networks
    inputs : InputBuffers
    mixture : Mixture
    teacher : ndarray, shape (teachers, D)
        Wt/sqrt(D).
    key, replica
        Address of the random streams.
    first : int
    start, stop : int
        Number of the first of the samples, counted from the first one of the run, and of the first after them.
    W : ndarray, shape (students, N)
    v : ndarray, shape (students,)
    velocity : ndarray, shape (students, N + 1)
        Last move of W, and of v beside it, which is updated; empty without momentum.

    Returns
    -------
    int
        The step after which everything was still finite: the last one unless it blew up.
    """
    tiles = inputs.tiles
    products = inputs.products
    fields = np.empty((SAMPLES, teacher.shape[0]))
    x = np.empty(products.shape[1])
    own = np.empty(v.size)
    gains = np.empty(v.size)
    labels = np.zeros(2 * SAMPLES)
    in_place = velocity.size == 0
    for row in range(networks.steps.shape[0]):
        in_place = in_place and is_in_place(networks.steps, row)
    new_W = W if in_place else np.empty_like(W)
    new_v = v if in_place else np.empty_like(v)
    step, end, row = first - 1, start, 0
    for chunk in range(start, stop, SAMPLES):
        count = min(SAMPLES, stop - chunk)
        if networks.noisy:
            call(fill_normals, key, replica, LABELS, 2 * chunk, labels)
        call(draw_latents, mixture, teacher, key, replica, chunk, count, tiles, fields)
        call(multiply_in_single, inputs.single, inputs.panels, tiles, count, products)
        for i in range(count):
            call_loop(inputs.loop, products[i], x)
            if chunk + i == end:
                step += 1
                row = row_of(networks, step)
                end += int(networks.steps[row, 5])
                if not in_place:
                    scale(W.ravel(), networks.steps[row, 2], new_W.ravel())
                    scale(v, networks.steps[row, 3], new_v)
            if not _add_sample(
                networks, row, inputs.shift, inputs.factor, fields[i], labels[2 * i], x[: W.shape[1]],
                W, v, new_W, new_v, own, gains,
            ):  # fmt: skip
                return step
            if chunk + i == end - 1 and not in_place:
                if velocity.size > 0:
                    _keep_moving(networks.momentum, W, v, velocity, new_W, new_v)
                copy(new_W.ravel(), W.ravel())
                copy(new_v, v)
    return step + 1


@without_reference_counts()
def _keep_moving(momentum, W, v, velocity, new_W, new_v):  # type: ignore[no-untyped-def]
    """Move new weights on by a share of the move before, and write the move of both."""
    N = W.shape[1]
    for k in range(v.size):
        for i in range(N):
            velocity[k, i] = momentum * velocity[k, i] + (new_W[k, i] - W[k, i])
            new_W[k, i] = W[k, i] + velocity[k, i]
        velocity[k, N] = momentum * velocity[k, N] + (new_v[k] - v[k])
        new_v[k] = v[k] + velocity[k, N]


@numba.njit(inline="always", error_model="numpy")
def _add_sample(  # type: ignore[no-untyped-def]
    networks, row, shift, factor, teacher_fields, noise, x, W, v, new_W, new_v, own, gains
):
    """Add to new weights what the sample f(U) = x does; false if training blew up before."""
    N = x.size
    for i in range(N):
        x[i] = (x[i] - shift[i]) * factor[i]
    for k in range(v.size):
        own[k] = dot(x, W[k]) / math.sqrt(N)
    if not add_sample(networks, row, N, own, teacher_fields, noise, v, new_v, gains):
        return False
    for k in range(v.size):
        add(new_W[k], gains[k], x)
    return True


class SinglePrecision(NamedTuple):
    """A matrix in single precision, for compiled code.

    Parameters
    ----------
    panels : ndarray of float32
        The packed matrix.
    error : ndarray
        Largest error of a product with each column, in units of the length of the vector; empty where signs may err.
    tiles, products : ndarray of float32
        Working arrays.
    """

    panels: Array
    error: FloatArray
    tiles: Array
    products: Array


def depends_on_sign(f: Nonlinearity) -> bool:
    """Whether a function depends on the sign of its argument alone."""
    return f in (NONLINEARITIES["sign"], NONLINEARITIES["step"])


def single_precision_for(
    f: Nonlinearity, panels: FloatArray, tiles: FloatArray, products: FloatArray
) -> SinglePrecision:
    """Arrays in single precision for inputs f(products), as large as those of float64."""
    signs = panels if depends_on_sign(f) else panels[:0]
    lengths = np.sqrt(np.einsum("prl,prl->pl", signs, signs)).ravel()
    return SinglePrecision(
        panels.astype(np.float32),
        lengths * relative_error(panels.shape[1]),
        np.zeros_like(tiles, np.float32),
        np.empty_like(products, np.float32),
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def multiply_in_single(single, panels, tiles, vectors, out):  # type: ignore[no-untyped-def]
    """Write products to `out`; other arguments as those of `multiply`."""
    for t in range((vectors + VECTORS_PER_TILE - 1) // VECTORS_PER_TILE):
        for r in range(tiles.shape[1]):
            for k in range(VECTORS_PER_TILE):
                single.tiles[t, r, k] = tiles[t, r, k]
    call(multiply, single.panels, single.tiles, vectors, single.products)
    squares = np.empty(VECTORS_PER_TILE)
    for i in range(vectors):
        tile = tiles[i // VECTORS_PER_TILE]
        place = i % VECTORS_PER_TILE
        products = single.products[i]
        for j in range(out.shape[1]):
            out[i, j] = products[j]
        if single.error.size > 0:
            if place == 0:
                _square_lengths(tile, squares)
            _correct_signs(single.error, math.sqrt(squares[place]), panels, tile, place, out[i])


@without_reference_counts()
def _square_lengths(tile, squares):  # type: ignore[no-untyped-def]
    """Write the squares of the lengths of all vectors of a tile."""
    for k in range(VECTORS_PER_TILE):
        squares[k] = 0.0
    for r in range(tile.shape[0]):
        for k in range(VECTORS_PER_TILE):
            squares[k] += tile[r, k] * tile[r, k]


@without_reference_counts()
def _correct_signs(error, length, panels, tile, place, out):  # type: ignore[no-untyped-def]
    """Compute products with one vector again whose signs may err; those of the columns that fill up panels are 0."""
    unsure = 0
    for j in range(out.size):  # a loop without branches vectorises
        unsure += abs(out[j]) < length * error[j]
    if unsure == 0:
        return
    for j in range(out.size):
        if abs(out[j]) < length * error[j]:
            panel = panels[j // WIDE_LANES]
            lane = j % WIDE_LANES
            total = 0.0
            for r in range(panel.shape[0]):
                total += panel[r, lane] * tile[r, place]
            out[j] = total
