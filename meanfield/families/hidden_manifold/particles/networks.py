"""Outputs of teacher and student, and what a sample adds to a step of SGD, for compiled code.

A step decays the weights and adds the mean over its batch of what samples add, each at the weights before the step. So
it writes new weights beside the old ones, but where there is one sample and no decay.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.scalar_functions import call_scalar
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.typing import FloatArray


class Networks(NamedTuple):
    """Teacher and student with their training.

    Parameters
    ----------
    value, slope : int
        Addresses of g and g'.
    teacher_value : int
        Address of gt.
    teacher_weights : ndarray, shape (teachers,)
        vt.
    rate, output_rate : float
        eta/tau and eta_v/tau.
    kept, output_kept : float
        1 - kappa eta/N and 1 - kappa eta_v/N, the shares of the weights that decay leaves in a step.
    label_noise : float
        sigma_y, the standard deviation of the noise on the teacher's output.
    batch_size : int
        tau.
    in_place : bool
        Whether a step needs no new weights beside the old ones.
    """

    value: int
    slope: int
    teacher_value: int
    teacher_weights: FloatArray
    rate: float
    output_rate: float
    kept: float
    output_kept: float
    label_noise: float
    batch_size: int
    in_place: bool


LABELS = 5
"""Purpose of the random numbers of label noise, besides those of `meanfield.ensembles.streams`: a pair per sample."""


def networks_of(problem: Problem) -> Networks:
    """Networks of a problem."""
    value, slope = problem.student.activation_functions.addresses
    teacher_value, _ = problem.teacher.activation_functions.addresses
    weights = np.array(problem.teacher.output_weights, dtype=float)
    training, N, batch = problem.training, problem.particles.dimension, problem.training.batch_size
    eta, eta_v = training.learning_rate, training.second_layer
    return Networks(
        value=value,
        slope=slope,
        teacher_value=teacher_value,
        teacher_weights=weights,
        rate=eta / batch,
        output_rate=eta_v / batch,
        kept=1.0 - eta * training.weight_decay / N,
        output_kept=1.0 - eta_v * training.weight_decay / N,
        label_noise=math.sqrt(training.label_noise),
        batch_size=batch,
        in_place=batch == 1 and training.weight_decay == 0.0,
    )


@without_reference_counts(inline="always")
def add_sample(networks, N, student_fields, teacher_fields, noise, v, new_v, gains):  # type: ignore[no-untyped-def]
    """Update the second layer, and write the multiples of the input by which the first changes to `gains`.

    Parameters
    ----------
    networks : Networks
    N : int
    student_fields, teacher_fields : ndarray
        lambda and nu of the sample.
    noise : float
        Of the label, in standard deviations.
    v, new_v : ndarray, shape (students,)
        Before the step, and what is changed, which may be the same array.
    gains : ndarray, shape (students,)
        Receives -(eta/(tau sqrt(N))) v_k Delta g'(lambda_k).

    Returns
    -------
    bool
        False, and nothing is changed, if the weights had blown up before.
    """
    error = -networks.label_noise * noise
    for k in range(v.size):
        gains[k] = call_scalar(networks.value, student_fields[k])
        error += v[k] * gains[k]
    for m in range(teacher_fields.size):
        error -= networks.teacher_weights[m] * call_scalar(networks.teacher_value, teacher_fields[m])
    # One more step takes weights to 1e60 at most, and products of four of them are still finite.
    if not abs(error) < 1e30:
        return False
    for k in range(v.size):
        output, weight = gains[k], v[k]
        gains[k] = -networks.rate / math.sqrt(N) * weight * error * call_scalar(networks.slope, student_fields[k])
        new_v[k] -= networks.output_rate / N * error * output
    return True
