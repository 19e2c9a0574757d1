"""SGD on the weights with one vector of normals per step, whatever batch size, noise and prior.

Given what a batch adds in the span of features U and weights w, the rest is one Gaussian vector orthogonal to them: a
vector of independent normals whose components in the span are taken away (theory.md, section 3). The law is that of
plain SGD at every N. Work is done in blocks that stay in the first-level cache.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.ensembles.streams import VECTOR, fill_normals
from meanfield.families.contrastive.sgd.batch import add_batch, numbers_for, population_means, room_for, squared
from meanfield.families.contrastive.sgd.training import draw_numbers, steps_at_once, steps_together
from meanfield.numerics.compiled.array_operations import add, dot, scale
from meanfield.numerics.compiled.scalar_functions import call_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba

BLOCK = 512
"""Number of coordinates that are worked on at once, an even number."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def projected_steps(  # type: ignore[no-untyped-def]
    training, outputs, pull, force, strength, key, replica, first, steps, level, w, U, g, state, escape
):
    """Take steps `first`, `first` + 1, ... of one replica, changing its state in place.

    Parameters
    ----------
    training : Training
    outputs : MeanOutputs
        Gives the population mean of the outputs.
    pull : float
        phi(w)/w with its strength if phi is linear; then `force` is not called.
    force : int
        Address of the loop of phi of unit strength; 0 if phi is linear.
    strength : float
    key, replica
        Of the random streams.
    first, steps : int
    level : float
        Square of the overlap |q| that counts as escape.
    w : ndarray, shape (N,)
        Weights up to a common factor.
    U : ndarray, shape (d1, N)
        Features, one in each row, with U U^T = N I.
    g : ndarray, shape (N + N % 2,)
        Working space.
    state : ndarray, shape (d1 + 1,)
        q, then the factor of the weights.
    escape : ndarray of int, shape (1,)
        Receives the step after which |q|^2 first reached `level`, where it is still negative.

    Returns
    -------
    int
        The step after which the weights were still finite: first + steps unless they blew up.
    """
    d1 = U.shape[0]
    some = steps_at_once(training)
    numbers, room, inside = numbers_for(training, some), room_for(training), np.empty(d1 + 1)
    work = np.empty(d1 + 1), np.empty(d1), np.empty(d1 + 1), np.empty(BLOCK), np.empty(BLOCK)
    for chunk in range(first, first + steps, some):
        last = min(chunk + some, first + steps)
        draw_numbers(training, key, replica, chunk, last - chunk, numbers)
        together = steps_together(training, last - chunk)
        for step in range(chunk, last, together):
            means = population_means(training.centering, outputs, state[:d1])
            reached = call(
                _steps, training, pull, force, strength, key, replica, chunk, step, step + together, level, w, U, g,
                state, means, escape, numbers, room, inside, work,
            )  # fmt: skip
            if reached < step + together:
                return reached
    return first + steps


@without_reference_counts()
def _steps(  # type: ignore[no-untyped-def]
    training, pull, force, strength, key, replica, chunk, first, end, level, w, U, g, state, means, escape, numbers,
    room, inside, work,
):  # fmt: skip
    """Steps `first` to `end` - 1; their numbers are among those that begin with step `chunk`."""
    q = state[:-1]
    for step in range(first, end):
        if not call(
            _step, training, pull, force, strength, key, replica, step, step - chunk, w, U, g, state, means, numbers,
            room, inside, work,
        ):  # fmt: skip
            return step
        if escape[0] < 0 and squared(q) >= level:
            escape[0] = step + 1
    return end


@without_reference_counts()
def _step(  # type: ignore[no-untyped-def]
    training, pull, force, strength, key, replica, step, place, w, U, g, state, means, numbers, room, inside, work
):
    """One step; false if the weights are no longer finite."""
    (d1, N), root = U.shape, math.sqrt(training.dimension)
    q, factor = state[:d1], state[d1]
    of_g, of_U, products = work[0], work[1], work[2]
    s = math.sqrt(max(1.0 - squared(q), 1e-30))  # rounding may leave nothing
    S = add_batch(training, key, replica, step, place, q, s, means, numbers, room, inside)
    _draw_vector(key, replica, step, w, U, g, of_g)
    # The vector's component along p = (w - U q)/(s sqrt(N)), and what p then gives to the weights and the features.
    along = factor * of_g[d1]
    for k in range(d1):
        along -= q[k] * of_g[k]
    along /= s * root
    tau, share = training.rates[0], training.rates[1]
    rate, deviation = tau / (training.batch_size * root), math.sqrt(S)
    of_p = rate * (inside[d1] - deviation * along) / (s * root)
    for k in range(d1):
        of_U[k] = rate / root * (inside[k] - deviation * of_g[k] / root) - of_p * q[k]
    of_w = factor * (1.0 + of_p - tau * (share * pull) / N)
    of_force = -tau * (share * strength) / N
    _move(w, U, g, of_w, of_U, rate * deviation, factor, force, of_force, products, work[3], work[4])
    scale = root / math.sqrt(products[d1])
    if not (scale > 0.0 and math.isfinite(scale)):  # also where the length is not finite
        return False
    for k in range(d1):
        q[k] = scale * products[k] / N
    state[d1] = scale
    return True


@without_reference_counts()
def _draw_vector(key, replica, step, w, U, g, products):  # type: ignore[no-untyped-def]
    """Draw the vector g of a step, and its products with all features and with the stored weights."""
    d1, N = U.shape
    products[:] = 0.0
    for low in range(0, g.size, BLOCK):
        high = min(low + BLOCK, g.size)
        call(fill_normals, key, replica, VECTOR, step * g.size + low, g[low:high])
        high = min(high, N)
        for k in range(d1):
            products[k] += dot(U[k, low:high], g[low:high])
        products[d1] += dot(w[low:high], g[low:high])


@without_reference_counts()
def _move(w, U, g, of_w, of_U, of_g, factor, force, of_force, products, x, forces):  # type: ignore[no-untyped-def]
    """Update w <- of_w w + of_g g + U^T of_U + of_force phi(factor w), with products of the new w with U and itself."""
    d1, N = U.shape
    products[:] = 0.0
    for low in range(0, N, BLOCK):
        high = min(low + BLOCK, N)
        part = w[low:high]
        if force != 0:
            scale(part, factor, x[: part.size])
            call_loop(force, x[: part.size], forces)
        _combine(part, of_w, g[low:high], of_g)
        for k in range(d1):
            add(part, of_U[k], U[k, low:high])
        if force != 0:
            add(part, of_force, forces)
        for k in range(d1):
            products[k] += dot(U[k, low:high], part)
        products[d1] += dot(part, part)


@without_reference_counts(fastmath={"contract"})
def _combine(x, of_x, y, of_y):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        x[i] = of_x * x[i] + of_y * y[i]
