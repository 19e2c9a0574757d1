"""Growth of small differences between students along the trajectory on which they are alike.

Students and teachers can be permuted there, so that perturbations of r whose rows and columns add up to 0 keep their
pattern: the overlap of each student with a teacher of its own. What changes is their profile over eigenvalues.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.interpolate import make_interp_spline

from meanfield.families.hidden_manifold.fixed_points.search import symmetrised
from meanfield.families.hidden_manifold.order_parameters.fluctuations.step_noise import sampled_steps
from meanfield.families.hidden_manifold.order_parameters.integration import follow
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import System, packed, start_of, unpacked
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.numerics.compiled.separate_calls import call
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

DIFFERENCE_STEP = 1e-5
"""Step of central differences: their errors are about 1e-10 and rounding about 1e-11."""


GROUPS, SAMPLES = 4, 512
"""Number of groups of sampled steps, which give the error by sampling, and of steps in each at a time."""


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
    status : str
    """

    states: FloatArray
    part: FloatArray
    sampling: FloatArray
    rate: FloatArray
    status: str


def amplification(problem: Problem, system: System, times: FloatArray, step: float) -> Amplification:
    """Follow the path from the start of a problem with students made alike, and the covariance of profiles along it.

    That of a random start is the covariance over runs times N, which grows by the noise of steps; that of an informed
    one is the square of its profile.

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
    pattern, size = _pattern(system), len(start)
    noise = _noise(problem, system, start, times) if problem.student.initial == "random" else _no_noise(n)
    shape, B, profiles = (GROUPS, n, n), np.empty((n, n)), _profiles(problem, system)
    unit = float(profiles.max()) or 1.0  # of the covariance, so that the tolerance of a step is one of relative errors

    def rate(t: float, y: FloatArray) -> FloatArray:
        change = np.empty(len(y))
        linearised(y[:size], system, pattern, change[:size], B)
        moved = B @ y[size:].reshape(shape)
        change[size:] = (moved + moved.swapaxes(1, 2) + noise(t) / unit).ravel()
        return change

    first = np.tile(profiles / unit, (GROUPS, 1, 1))
    # Errors of the covariance double with the growth of profiles, so that its steps are finer.
    tolerance = Tolerance(0.1 * step, 0.1 * step)
    found = solve_ode(rate, np.append(start, first), times, tolerance, integrator="DOP853", label="escape")
    measure = float(system.chance @ (system.slope * system.scale)) * system.weight
    along = unit * np.einsum("i,tgij,j->tg", measure, found.values[:, size:].reshape(-1, *shape), measure)
    variance, growth = along.mean(axis=1), np.full(len(times), np.nan)
    for i in np.flatnonzero(variance > 0.0):
        change = rate(times[i], found.values[i])[size:].reshape(shape).mean(axis=0)
        growth[i] = 0.5 * unit * (measure @ change @ measure) / variance[i]
    part = np.sqrt(np.maximum(variance, 0.0))
    spread = along.std(axis=1, ddof=1) / math.sqrt(GROUPS)
    sampling = np.divide(spread, 2.0 * part, out=np.zeros(len(times)), where=part > 0.0)
    return Amplification(found.values[:, :size], part, sampling, growth, found.status)


def _noise(problem: Problem, system: System, start: FloatArray, times: FloatArray) -> Callable[[float], FloatArray]:
    """Covariance over profiles of a step of the pattern by each group of samples, as a function of time."""
    nodes = np.expm1(np.linspace(0.0, np.log1p(times[-1]), 16))  # 16 times at which steps are sampled
    path = follow(system, start, nodes, 1e-6)  # the noise is known less accurately
    numbers = np.random.default_rng([problem.particles.seed, 2])  # these samples' stream of the seed
    pattern, found = _pattern(system), np.zeros((len(nodes), GROUPS, len(system.rho), len(system.rho)))
    for i, y in enumerate(packed(path.state)):
        if np.isfinite(y).all():
            r = unpacked(system, sampled_steps(problem, system, y, GROUPS * SAMPLES, numbers)).r
            along = np.einsum("snkm,km->sn", r[..., : system.teachers], pattern).reshape(GROUPS, SAMPLES, -1)
            away = along - along.mean(axis=1, keepdims=True)
            found[i] = away.swapaxes(1, 2) @ away / (SAMPLES - 1)
    return make_interp_spline(nodes, found, k=1)  # type: ignore[no-any-return]


def _no_noise(nodes: int) -> Callable[[float], FloatArray]:
    return lambda _: np.zeros((GROUPS, nodes, nodes))


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
    ahead, behind, at = np.empty(y.size), np.empty(y.size), y.copy()
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
