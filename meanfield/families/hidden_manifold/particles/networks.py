"""Outputs of teacher and student, and the gains of a step of SGD, for compiled code."""

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
        eta and eta_v.
    """

    value: int
    slope: int
    teacher_value: int
    teacher_weights: FloatArray
    rate: float
    output_rate: float


def networks_of(problem: Problem) -> Networks:
    """Networks of a problem."""
    value, slope = problem.student.activation_functions.addresses
    teacher_value, _ = problem.teacher.activation_functions.addresses
    weights = np.array(problem.teacher.output_weights, dtype=float)
    training = problem.training
    return Networks(value, slope, teacher_value, weights, training.learning_rate, training.second_layer)


@without_reference_counts(inline="always")
def take_step(networks, N, student_fields, teacher_fields, v, gains):  # type: ignore[no-untyped-def]
    """Update the second layer, and write the multiples of the input by which the first changes to `gains`.

    Parameters
    ----------
    networks : Networks
    N : int
    student_fields, teacher_fields : ndarray
        lambda and nu of the sample.
    v : ndarray, shape (students,)
    gains : ndarray, shape (students,)
        Receives -(eta/sqrt(N)) v_k Delta g'(lambda_k), with v before its update.

    Returns
    -------
    bool
        False, and nothing is changed, if the weights had blown up before.
    """
    error = 0.0
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
        v[k] -= networks.output_rate / N * error * output
    return True
