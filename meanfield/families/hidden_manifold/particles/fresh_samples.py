"""Generalisation error of trained weights on samples that they have never seen.

It is measured, because formulas of the limit would hide inputs that are not what the limit assumes. All outputs of a
run are measured on the same samples: their errors are unbiased at each time, and move together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from meanfield.families.hidden_manifold.particles.latents import Mixture, draw_latents
from meanfield.families.hidden_manifold.particles.plain import SAMPLES, InputBuffers
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.matrix_products import multiply
from meanfield.numerics.compiled.scalar_functions import evaluate
from meanfield.typing import FloatArray

FEWEST_SAMPLES, MOST_SAMPLES = 1000, 4000
"""Numbers of samples: as many as steps, so that measuring costs as much as training, but between these."""


class FreshSamples(NamedTuple):
    """Samples of a replica's own features.

    Parameters
    ----------
    inputs : ndarray, shape (samples, N)
    outputs : ndarray, shape (samples,)
        Of the teacher.
    """

    inputs: FloatArray
    outputs: FloatArray


def count_fresh(problem: Problem) -> int:
    """Number of samples."""
    steps = round(problem.time.stop * problem.particles.dimension)
    return min(max(steps, FEWEST_SAMPLES), MOST_SAMPLES)


def draw_fresh(
    problem: Problem, inputs: InputBuffers, mixture: Mixture, teacher: FloatArray, key: FloatArray, replica: int
) -> FreshSamples:
    """Samples of a replica; arguments as those of `plain_steps`."""
    N, f = problem.particles.dimension, problem.inputs.function.value
    x = np.empty((count_fresh(problem), N))
    fields = np.empty((count_fresh(problem), len(teacher)))
    for first in range(0, len(x), SAMPLES):
        count = min(SAMPLES, len(x) - first)
        # A run takes fewer than 2^40 steps, whose samples come before these in its streams.
        draw_latents(mixture, teacher, key, replica, 2**40 + first, count, inputs.tiles, fields[first : first + count])
        multiply(inputs.panels, inputs.tiles, count, inputs.products)
        values = evaluate(f, inputs.products[:count, :N])
        x[first : first + count] = (values - inputs.shift) * inputs.factor
    outputs = problem.teacher.activation_functions.values(fields) @ np.array(problem.teacher.output_weights)
    return FreshSamples(x, outputs)


def measured_errors(problem: Problem, fresh: FreshSamples, W: FloatArray, v: FloatArray) -> Mapping[str, FloatArray]:
    """Generalisation error of one student, and its standard error."""
    own = problem.student.activation_functions.values(fresh.inputs @ W.T / math.sqrt(W.shape[1])) @ v
    errors = 0.5 * (own - fresh.outputs) ** 2
    return {
        "generalisation_error": errors.mean(keepdims=True),
        "generalisation_error_error": errors.std(ddof=1, keepdims=True) / math.sqrt(len(errors)),
    }
