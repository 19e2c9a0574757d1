"""Rule, data and prior for compiled steps of SGD, and what steps with vectors and those of the chain share.

The numbers of a sample but for its fields, the values of the rule, and what these add to side variables and, along the
vectors Z, to students: W <- A Z + what samples add, before the constraint (update_rules.md, eq-rule-step).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meanfield.ensembles.hidden_variables import HiddenDraws, draw_hidden, hidden_draws
from meanfield.ensembles.streams import NORMALS, UNIFORMS, fill_normals, fill_uniforms
from meanfield.families.update_rule.particles.constraints import CONSTRAINTS
from meanfield.families.update_rule.particles.means import Means, means_of
from meanfield.families.update_rule.particles.side_by_side import Draws, side_by_side
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.system import System
from meanfield.ingredients.schedules.shapes import values_of
from meanfield.numerics.compiled.scalar_functions import compile_loop
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.compiled.without_reference_counts import without_reference_counts
from meanfield.numerics.gaussian_moments.rules import Rule
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray, IntArray

BUFFERED = 1024
"""Least number of random numbers that are drawn at once: enough to vectorise, few enough for the first-level cache."""


class Steps(NamedTuple):
    """Steps of SGD, for compiled code.

    Parameters
    ----------
    dimension, features, students : int
        N, M and K.
    draws : Draws
    samples, inputs : int
        Largest batch size of all draws, and number of inputs of a step.
    width, constants, outputs : int
        Largest numbers of columns of a row, of constants, and of values.
    side : int
        How many of the values are those of H.
    hidden : HiddenDraws
        Of all draws side by side.
    deviation : float
        Standard deviation of the noise in the first input of the first draw.
    deviations : ndarray, shape (dimension,) or (0,)
        Standard deviations by which those of coordinates differ, if they do.
    constraints : ndarray of int, shape (groups,)
        Values of `CONSTRAINTS`.
    groups : ndarray of int, shape (groups + 1,)
        Where the students of each group begin.
    lengths : ndarray, shape (students,)
        Q_kk at the start.
    force : int
        Address of the loop of phi; 0 if phi is linear.
    numbers : ndarray, shape (steps, parameters + 1)
        Of each step from `first` on, or of all where there is one row: parameters, and the strength of phi, with
        phi(1) if it is linear.
    first : int
    means : Means
    """

    dimension: int
    features: int
    students: int
    draws: Draws
    samples: int
    inputs: int
    width: int
    constants: int
    outputs: int
    side: int
    hidden: HiddenDraws
    deviation: float
    deviations: FloatArray
    constraints: IntArray
    groups: IntArray
    lengths: FloatArray
    force: int
    numbers: FloatArray
    first: int
    means: Means


def steps_of(problem: Problem, system: System, means: Sequence[Rule]) -> Steps:
    """Steps of a problem, with the numbers of the first one, and rules of quadrature for averages that it reads."""
    pairs = [(draw, kind) for draw, kind in zip(system.draws, problem.kinds, strict=True) if kind.acts]
    draws, kinds = zip(*(pairs or [(system.draws[0], problem.kinds[0])]), strict=True)
    prior, updates = problem.prior.functions, [draw.update.call for draw in draws]
    return Steps(
        dimension=problem.particles.dimension,
        features=system.features,
        students=system.students,
        draws=side_by_side(draws, kinds),
        samples=max(draw.batch_size for draw in draws),
        inputs=sum(draw.batch_size * draw.inputs for draw in draws),
        width=max(update.width for update in updates),
        constants=updates[0].constants,
        outputs=max(update.outputs for update in updates),
        side=len(system.side),
        hidden=hidden_draws([law for kind in kinds for law in kind.laws]),
        deviation=float(np.sqrt(draws[0].noise_covariance[0, 0])),
        deviations=np.sqrt(variances_of(problem)),
        constraints=np.array([CONSTRAINTS[name] for name, _ in system.constraints]),
        groups=np.array([0, *(students.stop for _, students in system.constraints)]),
        lengths=np.diag(problem.initial_Q).copy(),
        force=0 if prior.linear else compile_loop(prior.unit_force),
        numbers=numbers_of_steps(problem, np.zeros(1, dtype=np.int64)),
        first=0,
        means=means_of(system, means),
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
        Number of steps, and how many normals and uniforms each has; these numbers; rows of samples and their values,
        those of each draw from a multiple of the largest batch size on, and constants; then the inner numbers of
        `draw_rows`, and A, shape (students, features + students).
    """
    m, D, vectors = steps.samples, steps.draws.inputs.size, steps.features + steps.students
    normals = m * (steps.hidden.normals[-1] + steps.draws.normals[-1]) + own_normals
    uniforms = m * (steps.hidden.uniforms[-1] + steps.draws.coins.size) + own_uniforms
    normals, uniforms = normals + normals % 2, uniforms + uniforms % 2
    some = max(1, BUFFERED // (normals + uniforms + 1)) if steps.means.outputs.size == 0 else 1
    return (
        (some, normals, uniforms),
        np.empty(some * normals),
        np.empty(some * uniforms),
        np.empty((D * m, steps.width)),
        np.empty((D * m, steps.outputs)),
        np.empty(steps.constants),
        np.empty(m, np.int64),
        np.empty((steps.hidden.mean.shape[1], m)),
        np.empty((steps.students, vectors)),
    )


@without_reference_counts(inline="always")
def sources_of(steps):  # type: ignore[no-untyped-def]
    """Number of vectors of noise that a step draws."""
    total = 0
    for d in range(steps.draws.inputs.size):
        total += steps.draws.batch_size[d] * (steps.draws.sources[d + 1] - steps.draws.sources[d])
    return total


@without_reference_counts(inline="always")
def masks_of(steps):  # type: ignore[no-untyped-def]
    """Number of masks that a step draws."""
    total = 0
    for d in range(steps.draws.inputs.size):
        total += steps.draws.batch_size[d] * steps.draws.samples_masks[d]
    return total


@without_reference_counts()
def draw_numbers(key, replica, step, count, sizes, normals, uniforms):  # type: ignore[no-untyped-def]
    """Draw the numbers of `count` steps from one on."""
    call(fill_normals, key, replica, NORMALS, step * sizes[1], normals[: count * sizes[1]])
    call(fill_uniforms, key, replica, UNIFORMS, step * sizes[2], uniforms[: count * sizes[2]])


@without_reference_counts(inline="always")
def first_slot(steps, step):  # type: ignore[no-untyped-def]
    """First of the slots for rejections that belong to a step: one per group and sample, and one per student."""
    return step * (steps.samples * steps.hidden.box.size + steps.students)


@without_reference_counts()
def draw_rows(steps, key, replica, step, normals, uniforms, chosen, c, rows):  # type: ignore[no-untyped-def]
    """Write what rows show before the fields: hidden variables, normal numbers and coins of all samples of a step."""
    m, draws = steps.samples, steps.draws
    draw_hidden(steps.hidden, key, replica, first_slot(steps, step), uniforms, normals, chosen, c)
    first_normal, first_uniform = steps.hidden.normals[-1] * m, steps.hidden.uniforms[-1] * m
    for d in range(draws.inputs.size):
        first, variables = draws.variables[d], draws.variables[d + 1] - draws.variables[d]
        numbers, tossed = draws.normals[d + 1] - draws.normals[d], draws.tossed[d + 1] - draws.tossed[d]
        for b in range(draws.batch_size[d]):
            row = rows[d * m + b]
            for j in range(variables):
                row[j] = c[first + j, b]
            for j in range(numbers):
                row[variables + j] = normals[first_normal + (draws.normals[d] + j) * m + b]
            for j in range(tossed):
                coin = draws.tossed[d] + j
                heads = uniforms[first_uniform + coin * m + b] <= draws.coins[coin]
                row[variables + numbers + j] = 1.0 if heads else 0.0


@without_reference_counts(inline="always")
def first_field(steps, d):  # type: ignore[no-untyped-def]
    """First column of a row of a draw that has a field."""
    draws = steps.draws
    before = draws.variables[d + 1] - draws.variables[d] + draws.normals[d + 1] - draws.normals[d]
    return before + draws.tossed[d + 1] - draws.tossed[d]


@without_reference_counts(inline="always")
def vector_of(steps, d, variable, number):  # type: ignore[no-untyped-def]
    """Vector that a hidden variable of a draw multiplies in an input; -1 if that is one of another sample."""
    draws = steps.draws
    first, together = draws.variables[d], draws.together[d]
    own = variable // ((draws.variables[d + 1] - first) // together) == number % together
    return draws.along[first + variable] if own else -1


@without_reference_counts(inline="always")
def scale_of(columns, row):  # type: ignore[no-untyped-def]
    """Product of some numbers of a row: factor of the noise or of the signal of a sample."""
    product = 1.0
    for column in columns:
        if column >= 0:
            product *= row[column]
    return product


@without_reference_counts(inline="always")
def row_of(steps, step):  # type: ignore[no-untyped-def]
    """Row of `Steps.numbers` with the numbers of a step."""
    return min(step - steps.first, steps.numbers.shape[0] - 1)


@without_reference_counts()
def write_constants(steps, step, side, overlaps, constants):  # type: ignore[no-untyped-def]
    """Write what all samples of a step share, in the order of `System.constants`, but for averages.

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
    N, M, K, draws = steps.dimension, steps.features, steps.students, steps.draws
    kept = 1.0
    if steps.force == 0:
        kept -= steps.numbers[row_of(steps, step), steps.numbers.shape[1] - 1] / N
    for k in range(K):
        for j in range(M + K):
            A[k, j] = kept if j == M + k else 0.0
    for d in range(draws.inputs.size):
        m, first, last, gains = draws.batch_size[d], draws.moves[d], draws.moves[d + 1], draws.inputs[d] * K
        for b in range(m):
            value = values[d * steps.samples + b]
            for j in range(first, last):
                A[draws.student[j], draws.vector[j]] += value[gains + j - first] / (m * N)
            for j in range(steps.side):
                side[j] += value[gains + last - first + j] / (m * N)
