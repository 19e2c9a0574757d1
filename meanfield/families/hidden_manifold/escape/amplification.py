"""Growth of small differences between students along the trajectory on which they are alike.

Students and teachers can be permuted there, so that perturbations of r whose rows and columns add up to 0 keep their
pattern: the overlap of each student with a teacher of its own. What changes is their profile over eigenvalues.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from meanfield.families.hidden_manifold.fixed_points.search import symmetrised
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import System, packed, start_of, unpacked
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.ode import Solution, Tolerance, solve_ode
from meanfield.typing import FloatArray

STEP = 1e-5
"""Step of central differences: their errors are about 1e-10 and rounding about 1e-11."""


class Amplification(NamedTuple):
    """Path on which students are alike, and the size of what tells them apart, at output times.

    Parameters
    ----------
    states : ndarray, shape (times, n)
    part : ndarray, shape (times,)
        Length of the part of R whose rows and columns add up to 0; for a random start sqrt(N) times the standard
        deviation of each of its independent numbers.
    rate : ndarray, shape (times,)
        Logarithmic derivative of that in time.
    status : str
    """

    states: FloatArray
    part: FloatArray
    rate: FloatArray
    status: str


def amplification(problem: Problem, system: System, times: FloatArray, step: float) -> Amplification:
    """Follow the path from the start of a problem with students made alike, and the propagator of profiles along it.

    Parameters
    ----------
    problem : Problem
        With units that can be permuted.
    system : System
    times : ndarray, shape (times,)
    step : float
        Tolerance of a step.
    """
    start, n = _alike(system, start_of(problem, system)), len(system.rho)
    pattern = _pattern(system)
    B = np.empty((n, n))

    def rate(_: float, y: FloatArray) -> FloatArray:
        change = np.empty(len(y))
        linearised(y[: len(start)], system, pattern, change[: len(start)], B)
        change[len(start) :] = (B @ y[len(start) :].reshape(n, n)).ravel()
        return change

    found: Solution = solve_ode(
        rate,
        np.append(start, np.eye(n)),
        times,
        Tolerance(step, step),
        integrator="DOP853",
        label="escape",
    )
    factors = _profiles(problem, system)
    measure = float(system.chance @ (system.slope * system.scale)) * system.weight
    part, growth = np.full(len(times), np.nan), np.full(len(times), np.nan)
    for i, y in enumerate(found.values):
        if np.isfinite(y).all():
            along = measure @ y[len(start) :].reshape(n, n) @ factors
            moved = measure @ rate(0.0, y)[len(start) :].reshape(n, n) @ factors
            part[i] = np.linalg.norm(along)
            growth[i] = along @ moved / (along @ along)
    return Amplification(found.values[:, : len(start)], part, growth, found.status)


def _alike(system: System, y: FloatArray) -> FloatArray:
    """State with students and teachers made alike."""
    y = symmetrised(system, y)
    state, M = unpacked(system, y), system.teachers
    r = state.r.copy()
    r[..., :M] = r[..., :M].mean(axis=-1, keepdims=True)
    return packed(state._replace(r=r))


def _pattern(system: System) -> FloatArray:
    """Perturbation of r with rows and columns that add up to 0, of length 1, shape (students, teachers)."""
    pattern = np.zeros((system.students, system.teachers))
    pattern[:2, :2] = [[0.5, -0.5], [-0.5, 0.5]]
    return pattern


def _profiles(problem: Problem, system: System) -> FloatArray:
    """Profiles of the pattern at the start in columns: that of an informed one, or independent ones of a random one.

    The profile of weights that are drawn independently of the teacher is at each node the mean of products of normal
    numbers over its eigenvectors, of which there are D times its weight; sqrt(N) times its standard deviation is given.
    """
    T, X = problem.teacher_overlap, problem.initial_on_teacher
    share = system.t[:, 0, 0] / T[0, 0] * (T[0, 0] - T[0, 1])
    if problem.student.initial == "random":
        variance = problem.student.rest[0, 0] * system.rho * share / (system.aspect_ratio * system.weight)
        return np.diag(np.sqrt(variance))
    apart = X - X.mean(axis=0) - X.mean(axis=1, keepdims=True) + X.mean()
    return np.asarray((np.linalg.norm(apart) * system.rho * share)[:, None])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def linearised(y, system, pattern, dy, B):  # type: ignore[no-untyped-def]
    """Write the rates of a state, and the matrix that moves profiles of a pattern, by central differences."""
    K, L = system.students, system.t.shape[1]
    ahead, behind, at = np.empty(y.size), np.empty(y.size), y.copy()
    call(rates, at, system, dy)
    for j in range(system.rho.size):
        _shift(at, y, j * K * (L + K), STEP, pattern)
        call(rates, at, system, ahead)
        _shift(at, y, j * K * (L + K), -STEP, pattern)
        call(rates, at, system, behind)
        _shift(at, y, j * K * (L + K), 0.0, pattern)
        for i in range(system.rho.size):
            B[i, j] = 0.0
            for k in range(pattern.shape[0]):
                for m in range(pattern.shape[1]):
                    place = i * K * (L + K) + m * K + k
                    B[i, j] += pattern[k, m] * (ahead[place] - behind[place]) / (2.0 * STEP)


@numba.njit(inline="always", error_model="numpy")
def _shift(at, y, node, step, pattern):  # type: ignore[no-untyped-def]
    """Write r at a node, moved along the pattern."""
    K = pattern.shape[0]
    for k in range(K):
        for m in range(pattern.shape[1]):
            at[node + m * K + k] = y[node + m * K + k] + step * pattern[k, m]
