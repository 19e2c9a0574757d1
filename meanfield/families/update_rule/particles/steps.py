"""Rule, data and prior for compiled steps of SGD, and what steps with vectors and those of the chain share.

The numbers of a sample but for its fields, the values of the rule, and what these add to side variables and, along the
vectors Z, to students: W <- A Z + what samples add, before the constraint (update_rules.md, eq-rule-step).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.ensembles.hidden_variables import HiddenDraws, draw_hidden, hidden_draws
from meanfield.ensembles.streams import NORMALS, UNIFORMS, fill_normals, fill_uniforms
from meanfield.families.update_rule.particles.constraints import CONSTRAINTS
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.system import System
from meanfield.ingredients.schedules.shapes import values_of
from meanfield.numerics.compiled.scalar_functions import compile_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

BUFFERED = 1024
"""Least number of random numbers that are drawn at once: enough to vectorise, few enough for the first-level cache."""


class Steps(NamedTuple):
    """Steps of SGD, for compiled code.

    Parameters
    ----------
    dimension, batch_size, features, students : int
        N, m, M and K.
    update : int
        Address of the functions of a row.
    width, constants, outputs : int
        Numbers of columns of a row, of constants, and of values.
    moves, side : int
        How many of the values are those of B, and of H.
    hidden : HiddenDraws
    normals : int
        Number of normal numbers that the rule reads.
    coins : ndarray
        Probabilities.
    signal, projected : bool
        Whether inputs have hidden variables, and whether the noise has no part along features.
    deviation : float
        Standard deviation of the noise.
    deviations : ndarray, shape (dimension,) or (0,)
        Standard deviations by which those of coordinates differ, if they do.
    observed : float
        Share of the coordinates that a mask keeps.
    scales_noise, scales_signal : ndarray of int
        Columns of a row by whose product the noise, or the signal, is multiplied.
    constraint : int
        A value of `CONSTRAINTS`.
    lengths : ndarray, shape (students,)
        Q_kk at the start.
    force : int
        Address of the loop of phi; 0 if phi is linear.
    numbers : ndarray, shape (steps, parameters + 1)
        Of each step from `first` on, or of all where there is one row: parameters, and the strength of phi, with
        phi(1) if it is linear.
    first : int
    """

    dimension: int
    batch_size: int
    features: int
    students: int
    update: int
    width: int
    constants: int
    outputs: int
    moves: int
    side: int
    hidden: HiddenDraws
    normals: int
    coins: FloatArray
    signal: bool
    projected: bool
    deviation: float
    deviations: FloatArray
    observed: float
    scales_noise: IntArray
    scales_signal: IntArray
    constraint: int
    lengths: FloatArray
    force: int
    numbers: FloatArray
    first: int


def steps_of(problem: Problem, system: System) -> Steps:
    """Steps of a problem, with the numbers of the first one."""
    (draw,), (kind,), prior = system.draws, problem.kinds, problem.prior.functions
    update, side = draw.update.call, len(system.side)
    return Steps(
        dimension=problem.particles.dimension,
        batch_size=draw.batch_size,
        features=system.features,
        students=system.students,
        update=update.address,
        width=update.width,
        constants=update.constants,
        outputs=update.outputs,
        moves=update.outputs - system.students - side,
        side=side,
        hidden=hidden_draws(kind.laws),
        normals=draw.normals,
        coins=np.array(draw.coins, dtype=float),
        signal=problem.data.signal != "none",
        projected=problem.data.signal == "orthogonal",
        deviation=float(np.sqrt(problem.data.noise)),
        deviations=np.sqrt(variances_of(problem)),
        observed=draw.observed,
        scales_noise=np.array(draw.scales_noise, dtype=np.int64),
        scales_signal=np.array(draw.scales_signal, dtype=np.int64),
        constraint=CONSTRAINTS[system.constraints[0][0]],
        lengths=np.diag(problem.initial_Q).copy(),
        force=0 if prior.linear else compile_loop(prior.unit_force),
        numbers=numbers_of_steps(problem, np.zeros(1, dtype=np.int64)),
        first=0,
    )


def variances_of(problem: Problem) -> FloatArray:
    """Eigenvalues of the coordinates, increasing: those of the limit at shares (i + 1/2)/N; none where all are 1.

    Rows of features and students are exchangeable, so that the order of the eigenvalues does not matter.
    """
    spectrum, N = problem.data.spectrum, problem.particles.dimension
    return np.empty(0) if spectrum is None else spectrum.quantiles((np.arange(N) + 0.5) / N).rho


def numbers_of_steps(problem: Problem, steps: IntArray) -> FloatArray:
    """Parameters and strength of the prior in some steps; see `Steps.numbers`."""
    times = steps / problem.particles.dimension
    prior = problem.prior.functions
    unit = float(prior.unit_force(1.0)) if prior.linear else 1.0
    columns = [values_of(value, times) for value in problem.model.rule_parameters.values()]
    return np.column_stack([*columns, unit * values_of(problem.prior.strength, times)])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def room_for(steps, own_normals, own_uniforms):  # type: ignore[no-untyped-def]
    """Random numbers of some steps, and working arrays.

    Parameters
    ----------
    own_normals, own_uniforms : int
        Numbers that a step takes behind those of its samples.

    Returns
    -------
    tuple
        Number of steps, and how many normals and uniforms each has; these numbers; rows of samples, values of the
        rule, and constants; then the inner numbers of `draw_rows`, and A, shape (students, features + students).
    """
    m, vectors = steps.batch_size, steps.features + steps.students
    normals = m * (steps.hidden.normals[-1] + steps.normals) + own_normals
    uniforms = m * (steps.hidden.uniforms[-1] + steps.coins.size) + own_uniforms
    normals, uniforms = normals + normals % 2, uniforms + uniforms % 2
    some = max(1, BUFFERED // (normals + uniforms + 1))
    return (
        (some, normals, uniforms),
        np.empty(some * normals),
        np.empty(some * uniforms),
        np.empty((m, steps.width)),
        np.empty((m, steps.outputs)),
        np.empty(steps.constants),
        np.empty(m, np.int64),
        np.empty((steps.hidden.mean.shape[1], m)),
        np.empty((steps.students, vectors)),
    )


@without_reference_counts()
def draw_numbers(key, replica, step, count, sizes, normals, uniforms):  # type: ignore[no-untyped-def]
    """Draw the numbers of `count` steps from one on."""
    call(fill_normals, key, replica, NORMALS, step * sizes[1], normals[: count * sizes[1]])
    call(fill_uniforms, key, replica, UNIFORMS, step * sizes[2], uniforms[: count * sizes[2]])


@without_reference_counts(inline="always")
def first_slot(steps, step):  # type: ignore[no-untyped-def]
    """First of the slots for rejections that belong to a step: one per group and sample, and one per student."""
    return step * (steps.batch_size * steps.hidden.box.size + steps.students)


@without_reference_counts()
def draw_rows(steps, key, replica, step, normals, uniforms, chosen, c, rows):  # type: ignore[no-untyped-def]
    """Write what rows show before the fields: hidden variables, normal numbers and coins of all samples of a step."""
    m, variables = steps.batch_size, c.shape[0]
    draw_hidden(steps.hidden, key, replica, first_slot(steps, step), uniforms, normals, chosen, c)
    first_normal, first_uniform = steps.hidden.normals[-1] * m, steps.hidden.uniforms[-1] * m
    for b in range(m):
        for j in range(variables):
            rows[b, j] = c[j, b]
        for j in range(steps.normals):
            rows[b, variables + j] = normals[first_normal + j * m + b]
        for j in range(steps.coins.size):
            heads = uniforms[first_uniform + j * m + b] <= steps.coins[j]
            rows[b, variables + steps.normals + j] = 1.0 if heads else 0.0


@without_reference_counts(inline="always")
def scale_of(columns, row):  # type: ignore[no-untyped-def]
    """Product of some numbers of a row: factor of the noise or of the signal of a sample."""
    product = 1.0
    for column in columns:
        product *= row[column]
    return product


@without_reference_counts(inline="always")
def row_of(steps, step):  # type: ignore[no-untyped-def]
    """Row of `Steps.numbers` with the numbers of a step."""
    return min(step - steps.first, steps.numbers.shape[0] - 1)


@without_reference_counts()
def write_constants(steps, step, side, overlaps, constants):  # type: ignore[no-untyped-def]
    """Write what all samples of a step share, in the order of `System.constants`.

    Parameters
    ----------
    side : ndarray, shape (side variables,)
    overlaps : ndarray, shape (students, features + students)
        R and Q side by side.
    """
    parameters, row = steps.numbers.shape[1] - 1, row_of(steps, step)
    constants[0] = step / steps.dimension
    for j in range(parameters):
        constants[1 + j] = steps.numbers[row, j]
    place = 1 + parameters
    for j in range(steps.side):
        constants[place + j] = side[j]
    place += steps.side
    M, K = steps.features, steps.students
    for k in range(K):
        for j in range(M):
            constants[place + k * M + j] = overlaps[k, j]
        for j in range(K):
            constants[place + K * M + k * K + j] = overlaps[k, M + j]


@without_reference_counts()
def add_values(steps, step, values, side, A):  # type: ignore[no-untyped-def]
    """Write A, by which students become combinations of all vectors, and take the step of side variables."""
    m, N, M, K = steps.batch_size, steps.dimension, steps.features, steps.students
    kept = 1.0
    if steps.force == 0:
        kept -= steps.numbers[row_of(steps, step), steps.numbers.shape[1] - 1] / N
    for k in range(K):
        for j in range(M + K):
            A[k, j] = kept if j == M + k else 0.0
    for b in range(m):
        if steps.moves == 1:  # of a single student the factor of itself
            A[0, M] += values[b, K] / (m * N)
        elif steps.moves > 1:
            for j in range(M + K):
                for k in range(K):
                    A[k, j] += values[b, K + j * K + k] / (m * N)
        for j in range(steps.side):
            side[j] += values[b, K + steps.moves + j] / (m * N)
