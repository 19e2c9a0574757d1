"""SGD as a Markov chain of the order parameters, for linear phi: any N at the cost of a few numbers per sample.

What a batch adds orthogonally to features and weights is Gaussian in N - d1 - 1 dimensions, and under a linear phi it
enters through its length alone: a chi-squared variable. The chain of (q, s) has the law of plain SGD at every N
(theory.md, section 3).
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.ensembles.gamma_variables import chi_squared
from meanfield.families.contrastive.sgd.batch import add_batch, numbers_for, population_means, room_for, squared
from meanfield.families.contrastive.sgd.training import (
    draw_numbers,
    first_slot,
    steps_at_once,
    steps_together,
)
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba


@numba.njit(cache=True, nogil=True, error_model="numpy")
def chain_steps(  # type: ignore[no-untyped-def]
    training, outputs, pull, key, first_replica, first, steps, level, q, s, escape, reached
):
    """Take steps `first`, `first` + 1, ... of several replicas, changing their states in place.

    Parameters
    ----------
    training : Training
    outputs : MeanOutputs
        Gives the population mean of the outputs.
    pull : float
        phi(w)/w, strength included.
    key : ndarray, shape (2,)
        Of the random streams.
    first_replica, first, steps : int
    level : float
        Square of the overlap |q| that counts as escape.
    q : ndarray, shape (replicas, d1)
    s : ndarray, shape (replicas,)
        sqrt(1 - |q|^2), kept because it has digits where |q| is close to 1.
    escape : ndarray of int, shape (replicas,)
        Receives the step after which |q|^2 first reached `level`, where it is still negative.
    reached : ndarray of int, shape (replicas,)
        Receives the step after which the state was still finite: first + steps unless it blew up, now or earlier.
    """
    some = steps_at_once(training)
    numbers, room, inside = numbers_for(training, some), room_for(training), np.empty(q.shape[1] + 1)
    for i in range(s.size):
        for chunk in range(first, first + steps, some):
            if not math.isfinite(s[i]):
                break
            last = min(chunk + some, first + steps)
            draw_numbers(training, key, first_replica + i, chunk, last - chunk, numbers)
            together = steps_together(training, last - chunk)
            for step in range(chunk, last, together):
                means = population_means(training.centering, outputs, q[i])
                reached[i] = call(
                    _steps, training, pull, key, first_replica, chunk, step, step + together, level, q, s, means,
                    escape, i, numbers, room, inside,
                )  # fmt: skip
                if reached[i] < step + together:
                    break


@without_reference_counts()
def _steps(  # type: ignore[no-untyped-def]
    training, pull, key, first_replica, chunk, first, end, level, q, s, means, escape, i, numbers, room, inside
):
    """Steps `first` to `end` - 1 of replica i; their numbers are among those that begin with step `chunk`."""
    for step in range(first, end):
        s[i] = chain_step(
            training, pull, key, first_replica + i, step, step - chunk, q[i], s[i], means, numbers, room, inside
        )
        if not math.isfinite(s[i]):
            return step
        if escape[i] < 0 and squared(q[i]) >= level:
            escape[i] = step + 1
    return end


@numba.njit(inline="always", error_model="numpy")
def chain_step(training, pull, key, replica, step, place, q, s, means, numbers, room, inside):  # type: ignore[no-untyped-def]
    """Take one step of one replica, changing `q` in place, and return the new s; NaN if it is not finite.

    The numbers of the step are those at `place`; other parameters are those of `chain_steps` and `add_batch`.
    """
    d1, N = q.size, training.dimension
    S = add_batch(training, key, replica, step, place, q, s, means, numbers, room, inside)
    outside = chi_squared(
        N - d1 - 1,
        numbers[0][place * training.normals + training.spare_normal],
        numbers[1][place * training.uniforms + training.spare_uniform],
        key,
        replica,
        first_slot(training, step + 1) - 1,
    )
    tau, strength = training.rates[0], training.rates[1]
    rate = tau / (training.batch_size * N)
    shrink = 1.0 - tau * (strength * pull) / N
    along = shrink * s + rate * inside[d1]
    rest = along * along + rate * rate * S * outside
    length = rest
    for k in range(d1):
        q[k] = shrink * q[k] + rate * inside[k]
        length += q[k] * q[k]
    scale = 1.0 / math.sqrt(length)
    if not (scale > 0.0 and math.isfinite(scale)):  # also where the length is not finite
        return math.nan
    for k in range(d1):
        q[k] *= scale
    return math.sqrt(rest) * scale
