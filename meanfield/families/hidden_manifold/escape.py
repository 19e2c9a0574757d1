"""Times at which students that start at random, or nearly alike, leave the symmetric plateau.

Small differences between students grow along the trajectory on which they are alike. Students and teachers can be
permuted there, so that perturbations of r whose rows and columns add up to 0 keep their pattern: the overlap of each
student with a teacher of its own. What changes is their profile over eigenvalues.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.stats import chi

from meanfield.ensembles.momentum import check_no_velocity
from meanfield.errors import InputError
from meanfield.families.hidden_manifold.escape_noise import GROUPS, no_noise, noise_of_steps, pattern_of
from meanfield.families.hidden_manifold.fixed_points import symmetrised
from meanfield.families.hidden_manifold.initial_state import check_no_file
from meanfield.families.hidden_manifold.order_parameters.legs import (
    Leg,
    driven,
    errors_along,
    legs_of,
    numbers_at,
    observed,
    train_at,
)
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import (
    System,
    make_system,
    packed,
    start_of,
    unpacked,
)
from meanfield.families.hidden_manifold.order_parameters.trajectory import (
    FEWEST_NODES,
    LOWEST_ORDER,
    MORE,
    SMALLER_STEPS,
    STEP_SHARE,
    check_trajectory,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.ode import Rate, Tolerance, first_times, solve_in_stretches
from meanfield.numerics.refinement import largest_of_times
from meanfield.problems.phases import pieces_of
from meanfield.process import own_numba as numba
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

ESCAPED = 0.15
"""Size of the antisymmetric part of R from which students count as told apart: the growth is still linear there."""

QUANTILES = np.array([0.1, 0.5, 0.9])
"""Shares of random starts whose escape times results hold."""

DIFFERENCE_STEP = 1e-5
"""Step of central differences: their errors are about 1e-10 and rounding about 1e-11."""


@solver
def predict_escape(problem: Problem) -> Solved:
    """Escape from the symmetric plateau: when students that start at random, or nearly alike, are told apart.

    In the limit students of a random start stay alike. At finite N they differ by O(1/sqrt(N)), from the start and by
    the noise of SGD on the way, and this grows along the trajectory at a rate that does not depend on N, until it
    reaches 0.15. The growth rate at the plateau does not give that time: the way there takes long. What an informed
    start tells apart grows at that rate, and the noise, which is smaller than any difference at large N, is left out.

    Parameters
    ----------
    problem : Problem
        With two or more students of equal output weights, and teachers that can be permuted.

    Returns
    -------
    xarray.Dataset
        Order parameters of the trajectory of students alike; `antisymmetric_part`, the length of the part of R that
        tells students apart while it is small (for a random start the standard deviation of each of its numbers at N =
        `particles.dimension`), with its error; its growth rate `antisymmetric_rate`; and the times by which 10, 50 and
        90 % of starts have escaped, NaN if later than the end.

    Raises
    ------
    InputError
        If units cannot be permuted, or inputs have a mean of length sqrt(N).

    Notes
    -----
    Steps of SGD are sampled for their noise, with a standard error of which three are in `antisymmetric_part_error`.
    Schedules and phases are followed: profiles move, and noise is added, at the rates of each time.
    Source: hidden_manifold.md, section 5.
    """
    check_escape(problem)
    times, tolerance = problem.time.outputs_at, problem.order_parameters.tolerance
    digits = math.ceil(-math.log10(tolerance))
    step = STEP_SHARE * tolerance
    _, before = _followed(problem, 1.0, digits, step)
    legs, found = _followed(problem, MORE, digits, SMALLER_STEPS * step)
    system = legs[0].system
    # Fluctuations of a random start are of order 1/sqrt(N).
    states, scale = found.states, problem.particles.dimension**-0.5 if problem.student.initial == "random" else 1.0
    # The part grows exponentially: its change counts relative to its size, and the largest one at any time counts.
    change = np.divide(found.part - before.part, found.part, out=np.zeros_like(found.part), where=found.part > 0.0)
    seen = observed(legs, times, unpacked(system, states))
    arrays = {
        "time": times,
        **{name: seen[name] for name in ("Q", "R", "Omega", "Sigma", "v")},
        "generalisation_error": errors_along(legs, times, states),
        "antisymmetric_part": scale * found.part,
        # with 3 standard errors of the sampled noise
        "antisymmetric_part_error": scale * (found.part * largest_of_times(change) + 3.0 * found.sampling),
        "antisymmetric_rate": found.rate,
        "quantile": QUANTILES,
        "escape_time_quantile": escape_times(times, scale * found.part, _sizes(problem)),
    }
    late = np.isnan(arrays["escape_time_quantile"][1]) and found.status == "complete"
    warning = f"half of the starts escape after t = {times[-1]:g}; raise time.stop to see when" if late else ""
    return Solved("escape", arrays, found.status, warning, {"nodes": len(system.rho)})


def check_escape(problem: Problem) -> None:
    """Refuse problems without a symmetric plateau; see `predict_escape`."""
    check_trajectory(problem)
    check_no_velocity(problem.training, "order parameters, density and SGD")
    check_no_file(problem, "escapes from the symmetric plateau")
    for piece in pieces_of(problem):
        _check_units(piece.problem)


def _check_units(problem: Problem) -> None:
    """Refuse students or teachers that cannot be permuted."""
    for key, count in (("student", problem.students), ("teacher", problem.teachers)):
        if count < 2:
            raise InputError(f"{key}.output_weights has one unit, and no plateau is symmetric; give two or more")
    for key, weights in (("student", problem.student.output_weights), ("teacher", problem.teacher.output_weights)):
        if len(set(weights)) > 1:
            raise InputError(f"{key}.output_weights = {list(weights)}: units differ from the start; make them equal")
    T, M = problem.teacher_overlap, problem.teachers
    if not np.array_equal(T, np.where(np.eye(M, dtype=bool), T[0, 0], T[0, 1])) or T[0, 0] == T[0, 1]:
        raise InputError(
            f"teacher.overlap = {T.tolist()}: teachers cannot be permuted, or are one; give equal numbers on its "
            "diagonal, and equal smaller ones beside it"
        )
    means = problem.component_means
    if np.any(means != means[:, :1]):
        raise InputError(
            f"inputs.components.mean = {means.tolist()}: means tell teachers apart; give equal coefficients, or none"
        )


def _followed(problem: Problem, factor: float, digits: int, step: float) -> tuple[list[Leg], Amplification]:
    """Path with so many times the fewest nodes."""
    nodes = problem.inputs.eigenvalues.nodes(math.ceil(factor * (FEWEST_NODES + digits)))
    order = math.ceil(factor * (LOWEST_ORDER + digits))
    legs = legs_of(driven(problem), lambda each: make_system(each, nodes, order, problem))
    return legs, amplification(problem, legs, problem.time.outputs_at, step)


def _sizes(problem: Problem) -> FloatArray:
    """Lengths of the antisymmetric part, in units of what is given, that shares `QUANTILES` of starts exceed.

    That of a random start has (K - 1)(M - 1) independent normal numbers.
    """
    if problem.student.initial != "random":
        return np.ones(len(QUANTILES))
    return np.asarray(chi.isf(QUANTILES, (problem.students - 1) * (problem.teachers - 1)))


def escape_times(times: FloatArray, part: FloatArray, sizes: FloatArray) -> FloatArray:
    """Times at which an antisymmetric part of R that starts with given sizes reaches `ESCAPED`; NaN if it does not."""
    return first_times(times, np.repeat(part[:, None], len(sizes), axis=1), ESCAPED / sizes)


class Amplification(NamedTuple):
    """Path on which students are alike, and the size of what tells them apart, at output times.

    Parameters
    ----------
    states : ndarray, shape (times, n)
    part : ndarray, shape (times,)
        Length of the part of R whose rows and columns add up to 0; for a random start sqrt(N) times the standard
        deviation of each of its independent numbers.
    sampling : ndarray, shape (times,)
        Standard error of `part`: the noise of steps is sampled.
    rate : ndarray, shape (times,)
        Logarithmic derivative of that in time.
    """

    states: FloatArray
    part: FloatArray
    sampling: FloatArray
    rate: FloatArray
    status: str


def amplification(problem: Problem, legs: list[Leg], times: FloatArray, step: float) -> Amplification:
    """Follow the path from the start of a problem with students made alike, and the covariance of profiles along it.

    That of a random start is the covariance over runs times N, which grows by the noise of steps; that of an informed
    one is the square of its profile.

    Parameters
    ----------
    problem : Problem
        With units that can be permuted.
    legs : list of Leg
    times : ndarray, shape (times,)
    step : float
        Tolerance of a step.
    """
    system = legs[0].system
    start = _alike(system, start_of(problem, system))
    n = len(system.rho)
    pattern, size = pattern_of(system), len(start)
    is_random = problem.student.initial == "random"
    noises = noise_of_steps(problem, legs, start, times) if is_random else [no_noise(n)] * len(legs)
    shape = (GROUPS, n, n)
    B = np.empty((n, n))
    profiles = _profiles(problem, system)
    unit = float(profiles.max()) or 1.0  # of the covariance, so that the tolerance of a step is one of relative errors

    def rate_in(leg: Leg, noise: Callable[[float], FloatArray]) -> Rate:
        def rate(t: float, y: FloatArray) -> FloatArray:
            change = np.empty(len(y))
            train_at(leg, t)
            linearised(y[:size], leg.system, pattern, change[:size], B)
            moved = B @ y[size:].reshape(shape)
            change[size:] = (moved + moved.swapaxes(1, 2) + noise(t) / unit).ravel()
            return change

        return rate

    first = np.tile(profiles / unit, (GROUPS, 1, 1))
    # Errors of the covariance double with the growth of profiles, so that its steps are finer.
    tolerance = Tolerance(0.1 * step, 0.1 * step)
    ends = [*(leg.start for leg in legs[1:]), times[-1]]
    outputs = [
        np.unique([leg.start, *times[(times >= leg.start) & (times <= end)], end])
        for leg, end in zip(legs, ends, strict=True)
    ]
    each = [rate_in(*both) for both in zip(legs, noises, strict=True)]
    found = solve_in_stretches(
        list(zip(outputs, each, strict=True)), np.append(start, first), times, tolerance, integrator="DOP853",
        label="escape",
    )  # fmt: skip
    number = numbers_at(legs, times)
    measures = [float(leg.system.chance @ (leg.system.slope * leg.system.scale)) * leg.system.weight for leg in legs]
    covariances, along = found.values[:, size:].reshape(-1, *shape), np.empty((len(times), GROUPS))
    for k, measure in enumerate(measures):
        along[number == k] = unit * np.einsum("i,tgij,j->tg", measure, covariances[number == k], measure)
    variance, growth = along.mean(axis=1), np.full(len(times), np.nan)
    for i in np.flatnonzero(variance > 0.0):
        measure, rate = measures[number[i]], each[number[i]]
        change = rate(times[i], found.values[i])[size:].reshape(shape).mean(axis=0)
        growth[i] = 0.5 * unit * (measure @ change @ measure) / variance[i]
    part = np.sqrt(np.maximum(variance, 0.0))
    spread = along.std(axis=1, ddof=1) / math.sqrt(GROUPS)
    sampling = np.divide(spread, 2.0 * part, out=np.zeros(len(times)), where=part > 0.0)
    return Amplification(found.values[:, :size], part, sampling, growth, found.status)


def _alike(system: System, y: FloatArray) -> FloatArray:
    """State with students and teachers made alike."""
    y = symmetrised(system, y)
    state, M = unpacked(system, y), system.teachers
    r = state.r.copy()
    r[..., :M] = r[..., :M].mean(axis=-1, keepdims=True)
    return packed(state._replace(r=r))


def _profiles(problem: Problem, system: System) -> FloatArray:
    """Covariance of profiles of the pattern at the start, shape (nodes, nodes): times N of a random one.

    The profile of weights that are drawn independently of the teacher is at each node the mean of products of normal
    numbers over its eigenvectors, of which there are D times its weight.
    """
    T, X = problem.teacher_overlap, problem.initial_on_teacher
    share = system.t[:, 0, 0] / T[0, 0] * (T[0, 0] - T[0, 1])
    if problem.student.initial == "random":
        return np.diag(problem.student.rest[0, 0] * system.rho * share / (system.aspect_ratio * system.weight))
    apart = X - X.mean(axis=0) - X.mean(axis=1, keepdims=True) + X.mean()
    profile = np.linalg.norm(apart) * system.rho * share
    return np.asarray(np.outer(profile, profile))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def linearised(y, system, pattern, dy, B):  # type: ignore[no-untyped-def]
    """Write the rates of a state, and the matrix that moves profiles of a pattern, by central differences."""
    K, L = system.students, system.t.shape[1]
    ahead = np.empty(y.size)
    behind = np.empty(y.size)
    at = y.copy()
    call(rates, at, system, dy)
    for j in range(system.rho.size):
        _shift(at, y, j * K * (L + K), DIFFERENCE_STEP, pattern)
        call(rates, at, system, ahead)
        _shift(at, y, j * K * (L + K), -DIFFERENCE_STEP, pattern)
        call(rates, at, system, behind)
        _shift(at, y, j * K * (L + K), 0.0, pattern)
        for i in range(system.rho.size):
            B[i, j] = 0.0
            for k in range(pattern.shape[0]):
                for m in range(pattern.shape[1]):
                    place = i * K * (L + K) + m * K + k
                    B[i, j] += pattern[k, m] * (ahead[place] - behind[place]) / (2.0 * DIFFERENCE_STEP)


@numba.njit(inline="always", error_model="numpy")
def _shift(at, y, node, step, pattern):  # type: ignore[no-untyped-def]
    """Write r at a node, moved along the pattern."""
    K = pattern.shape[0]
    for k in range(K):
        for m in range(pattern.shape[1]):
            at[node + m * K + k] = y[node + m * K + k] + step * pattern[k, m]
