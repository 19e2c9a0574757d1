"""Times at which students that start at random, or nearly alike, leave the symmetric plateau."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import chi

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.escape.amplification import Amplification, amplification
from meanfield.families.hidden_manifold.order_parameters.observables import observables
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import System, make_system, unpacked
from meanfield.families.hidden_manifold.order_parameters.trajectory import (
    FEWEST_NODES,
    LOWEST_ORDER,
    MORE,
    SMALLER_STEPS,
    STEP_SHARE,
    check_trajectory,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

ESCAPED = 0.15
"""Size of the antisymmetric part of R from which students count as told apart: the growth is still linear there."""

QUANTILES = np.array([0.1, 0.5, 0.9])
"""Shares of random starts whose escape times results hold."""


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
    Source: hidden_manifold.md, section 5.
    """
    check_escape(problem)
    times, tolerance = problem.time.outputs_at, problem.order_parameters.tolerance
    digits = math.ceil(-math.log10(tolerance))
    step = STEP_SHARE * tolerance
    _, before = _followed(problem, 1.0, digits, step)
    system, found = _followed(problem, MORE, digits, SMALLER_STEPS * step)
    states, scale = found.states, _scale(problem)
    seen = observables(system, unpacked(system, states))
    arrays = {
        "time": times,
        **{name: seen[name] for name in ("Q", "R", "Omega", "Sigma", "v")},
        "generalisation_error": _errors(system, states),
        "antisymmetric_part": scale * found.part,
        # with 3 standard errors of the sampled noise
        "antisymmetric_part_error": scale * (np.abs(found.part - before.part) + 3.0 * found.sampling),
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


def _followed(problem: Problem, factor: float, digits: int, step: float) -> tuple[System, Amplification]:
    """Path with so many times the fewest nodes."""
    nodes = problem.inputs.spectrum.nodes(problem.inputs.aspect_ratio, math.ceil(factor * (FEWEST_NODES + digits)))
    system = make_system(problem, nodes, math.ceil(factor * (LOWEST_ORDER + digits)))
    return system, amplification(problem, system, problem.time.outputs_at, step)


def _errors(system: System, states: FloatArray) -> FloatArray:
    """Generalisation error of each state, NaN of those that were not reached."""
    waste = np.empty(states.shape[1])
    return np.array([rates(y.copy(), system, waste) if np.isfinite(y).all() else np.nan for y in states])


def _scale(problem: Problem) -> float:
    """Factor of what tells students apart: fluctuations of a random start are of order 1/sqrt(N)."""
    return problem.particles.dimension**-0.5 if problem.student.initial == "random" else 1.0


def _sizes(problem: Problem) -> FloatArray:
    """Lengths of the antisymmetric part, in units of what is given, that shares `QUANTILES` of starts exceed.

    That of a random start has (K - 1)(M - 1) independent normal numbers.
    """
    if problem.student.initial != "random":
        return np.ones(len(QUANTILES))
    return np.asarray(chi.isf(QUANTILES, (problem.students - 1) * (problem.teachers - 1)))


def escape_times(times: FloatArray, part: FloatArray, sizes: FloatArray) -> FloatArray:
    """Times at which an antisymmetric part of R that starts with given sizes reaches `ESCAPED`; NaN if it does not."""
    there = np.isfinite(part) & (part > 0.0)
    if not there.any():
        return np.full(len(sizes), np.nan)
    steps = np.arange(there.sum())
    # The logarithm is smooth: 50 times between two outputs are enough to interpolate it.
    fine = np.interp(np.arange(50 * (len(steps) - 1) + 1) / 50, steps, times[there])
    logarithm = np.interp(fine, times[there], np.log(part[there]))
    reached = logarithm[:, None] >= np.log(ESCAPED / sizes)
    return np.asarray(np.where(reached.any(axis=0), fine[np.argmax(reached, axis=0)], np.nan))
