"""Outputs of teacher and student, and what a sample adds to a step of SGD, for compiled code.

A step decays the weights and adds the mean over its batch of what samples add, each at the weights before the step. So
it writes new weights beside the old ones, but where there is one sample and no decay. What a step multiplies with may
change from step to step, and so may the number of its samples, which are counted from the first one of a run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.families.hidden_manifold.problem import Problem
from meanfield.ingredients.schedules.shapes import Schedule
from meanfield.numerics.compiled.scalar_functions import call_scalar
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.typing import FloatArray, IntArray


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
    steps : ndarray, shape (steps, 6)
        Of each step from `first` on, or of all where there is one row: eta/tau and eta_v/tau; 1 - kappa eta/N and
        1 - kappa eta_v/N, the shares of the weights that decay leaves; sigma_y, the standard deviation of the noise on
        the teacher's output; and tau.
    first : int
    noisy : bool
        Whether there is noise on the teacher's output in any step.
    momentum : float
        mu, the share of a step that the next one repeats; steps with a velocity that lasts have shorter ones.
    """

    value: int
    slope: int
    teacher_value: int
    teacher_weights: FloatArray
    steps: FloatArray
    first: int
    noisy: bool
    momentum: float


LABELS = 5
"""Purpose of the random numbers of label noise, besides those of `meanfield.ensembles.streams`: a pair per sample."""


STEPS_AT_ONCE = 1 << 17
"""Largest number of steps whose numbers are in memory: 6 megabytes."""


def networks_of(problem: Problem) -> Networks:
    """Networks of a problem, with the numbers of the first step."""
    value, slope = problem.student.activation_functions.addresses
    teacher_value, _ = problem.teacher.activation_functions.addresses
    weights = np.array(problem.teacher.output_weights, dtype=float)
    noise = problem.training.label_noise
    return Networks(
        value=value,
        slope=slope,
        teacher_value=teacher_value,
        teacher_weights=weights,
        steps=numbers_of_steps(problem, np.zeros(1, dtype=np.int64)),
        first=0,
        noisy=isinstance(noise, Schedule) or noise > 0.0,
        momentum=problem.training.shares(problem.particles.dimension)[1],
    )


def numbers_of_steps(problem: Problem, steps: IntArray) -> FloatArray:
    """What steps multiply with; see `Networks.steps`."""
    N = problem.particles.dimension
    eta, eta_v, batch, noise, decay = problem.training.numbers_at(steps / N)
    share, _ = problem.training.shares(N)
    eta, eta_v = share * eta, share * eta_v
    kept = 1.0 - eta * decay / N, 1.0 - eta_v * decay / N
    return np.column_stack([eta / batch, eta_v / batch, *kept, np.sqrt(noise), batch])


def count_samples(problem: Problem, first: int, end: int) -> int:
    """Number of samples of the steps from `first` to `end` - 1."""
    batch = problem.training.batch_size
    if not isinstance(batch, Schedule):
        return batch * (end - first)
    starts = range(first, end, STEPS_AT_ONCE)
    N = problem.particles.dimension
    return sum(int(batch.values_at(np.arange(k, min(k + STEPS_AT_ONCE, end)) / N).sum()) for k in starts)


@without_reference_counts(inline="always")
def row_of(networks, step):  # type: ignore[no-untyped-def]
    """Row of `Networks.steps` with the numbers of a step."""
    return max(min(step - networks.first, networks.steps.shape[0] - 1), 0)


@without_reference_counts(inline="always")
def is_in_place(steps, row):  # type: ignore[no-untyped-def]
    """Whether a step needs no new weights beside the old ones."""
    return steps[row, 5] == 1.0 and steps[row, 2] == 1.0 and steps[row, 3] == 1.0


@without_reference_counts(inline="always")
def add_sample(networks, row, N, student_fields, teacher_fields, noise, v, new_v, gains):  # type: ignore[no-untyped-def]
    """Update the second layer, and write the multiples of the input by which the first changes to `gains`.

    Parameters
    ----------
    networks : Networks
    row : int
        Of `networks.steps`.
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
    error = -networks.steps[row, 4] * noise
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
        gains[k] = (
            -networks.steps[row, 0] / math.sqrt(N) * weight * error * call_scalar(networks.slope, student_fields[k])
        )
        new_v[k] -= networks.steps[row, 1] / N * error * output
    return True
