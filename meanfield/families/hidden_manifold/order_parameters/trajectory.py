"""Trajectories of the order parameters to a tolerance that the problem file names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from meanfield.errors import InputError
from meanfield.families.hidden_manifold.expectations.choice import CLOSED, QUADRATURE, kind_of_expectations
from meanfield.families.hidden_manifold.initial_state import OwnStart
from meanfield.families.hidden_manifold.order_parameters.averaging.trajectory import averaged
from meanfield.families.hidden_manifold.order_parameters.companions import averages_along, with_companions
from meanfield.families.hidden_manifold.order_parameters.fluctuations import fluctuations, has_fluctuations
from meanfield.families.hidden_manifold.order_parameters.integration import Path, follow
from meanfield.families.hidden_manifold.order_parameters.legs import Leg, driven, legs_of, observed
from meanfield.families.hidden_manifold.order_parameters.system import (
    State,
    System,
    check_means,
    make_system,
    own_system,
    start_of,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.regimes import (
    check_averages,
    check_closes,
    check_remembers_nothing,
    has_fast_means,
)
from meanfield.families.hidden_manifold.variables import AVERAGES
from meanfield.ingredients.schedules.shapes import CHECKED_TIMES
from meanfield.numerics.refinement import change_of, missed, refine
from meanfield.problems.base import check_problem, corners_of
from meanfield.problems.phases import Piece, pieces_of
from meanfield.problems.problem_keys import at_time
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

FEWEST_NODES, LOWEST_ORDER = 4, 4
"""Nodes of the spectrum, and points of a quadrature over a field, of the first solution, besides those for digits."""

MORE, MORE_POINTS = 1.5, 1.25
"""Factors of nodes and points from a solution to the next: the cost of points grows with their fourth power."""

STEP_SHARE = 0.1
"""Tolerance of a step of the first solution in units of that of the result: errors of some steps add up."""

SMALLER_STEPS = 0.1
"""Factor of the tolerance of a step from a solution to the next."""

MOST_FIELDS = 8
"""Largest number of units of student and teacher whose expectations are found by quadrature: the number of integrals
over four fields grows with its fourth power."""

COMPARED = ("Q", "R", "v", "generalisation_error")


@solver
def solve_order_parameters(problem: Problem) -> Solved:
    """Order parameters from the ODEs at the eigenvalues of the features, and the generalisation error.

    The solution is repeated with 1.5 times the nodes and tighter steps until two of them agree to
    `order_parameters.tolerance`; the last is returned, and its difference from the one before estimates the errors.

    Where inputs have a mean of length sqrt(N), along which fields of the student move within single steps, the ODEs are
    averaged over the stationary law of these fields, by sampling; errors are three standard errors then.

    Parameters
    ----------
    problem : Problem
        Problem in which the mean of inputs is the same for all of them (hidden_manifold.md, section 4).

    Returns
    -------
    xarray.Dataset
        `Q`, `R`, `v`, `generalisation_error` with their errors, with `training.average_rate` those of the average of
        weights (`Q_average` and others), `Omega`, `Sigma`, and `r`, `sigma` at the nodes `rho`,
        as `meanfield.families.hidden_manifold.results` describes them. For spectra of few eigenvalues `Q_covariance`,
        `R_covariance`, `v_covariance` and `generalisation_error_variance` are N times those over runs of SGD to leading
        order, with their errors, unless expectations take a quadrature or means point away from the teacher. Of sampled
        fields `field_mean_quantile` is the law of their means, and `relaxation_steps` the time that they need to come
        to rest, in steps of SGD. The attribute `status` is `complete`, `interrupted` or `failed: ...`; output times
        that were not reached are NaN. The attribute `warning` says so where the tolerance was not met, or
        `particles.dimension` is too small for averages.

    Raises
    ------
    InputError
        If every latent has a mean, so that means of inputs differ, or a linear student overshoots along the mean.

    Notes
    -----
    All quantities are dimensionless. Source: hidden_manifold.md, sections 2 to 4.
    """
    check_order_parameters(problem)
    fast = has_fast_means(problem)  # in all phases or in none, which was checked
    times = problem.time.outputs_at
    if fast:
        system, path, found, warning = averaged(problem, times)
    else:
        system, path, found, warning = refined(problem, times, problem.training.average_rate)
    arrays = order_parameter_arrays(problem, system, path.state) | found
    if path.status == "complete" and not fast:
        nodes = len(system.rho)
        legs = legs_of(driven(problem), lambda each: system_of(each, nodes, LOWEST_ORDER, problem))
        if has_fluctuations(problem, legs):
            arrays |= fluctuations(problem, legs, times)
    return Solved("order_parameters", arrays, path.status, warning, {"nodes": len(system.rho)})


def order_parameter_arrays(problem: Problem, system: System, state: State) -> dict[str, FloatArray]:
    """Variables of a result besides those that are compared: times, nodes and what lies there, components."""
    arrays = {
        "time": problem.time.outputs_at,
        "T": problem.teacher_overlap,
        "r": state.r[..., : system.teachers],
        "sigma": state.sigma,
        "rho": system.rho,
        "rho_weight": system.weight,
    }
    laws = [piece.problem.inputs.gaussians for piece in pieces_of(problem)]
    if len(system.chance) > 1 and laws.count(laws[0]) == len(laws):
        arrays |= {"component_weight": system.chance, "component_scale": system.scale}
    return arrays


def check_order_parameters(problem: Problem) -> None:
    """Refuse problems whose order parameters do not close; see `solve_order_parameters`."""
    check_problem(problem, Problem)
    pieces = pieces_of(problem)
    fast = [has_fast_means(piece.problem) for piece in pieces]
    if not any(fast):
        return check_trajectory(problem)
    if not all(fast):
        raise InputError(
            f"phases[{fast.index(not fast[0])}].set: inputs have a mean, which moves the student within single steps, "
            "in some phases and not in others; set inputs.centered to true, or solve by particles"
        )
    if (average := problem.training.average_rate) is not None:
        raise InputError(
            f"training.average_rate = {average:g}: the means of inputs move the student within single steps, over "
            "which averages know no moving ones; remove it, set inputs.centered to true, or solve by particles"
        )
    if problem.initial is not None:
        raise InputError(
            f"initial.from = '{problem.initial.path}': averages over the means of inputs begin with a start by keys; "
            "set inputs.centered to true, or solve by particles"
        )
    for piece in pieces:
        _check_fast(piece)


def _check_fast(piece: Piece[Problem]) -> None:
    """Refuse a phase in which inputs have a mean, and averages over its moves do not close."""
    training = piece.problem.training
    check_remembers_nothing(training)
    ends = [piece.start, *(time for time in corners_of(piece.problem) if piece.start < time < piece.stop), piece.stop]
    for start, stop in itertools.pairwise(ends):
        times = np.linspace(start, np.nextafter(stop, start), CHECKED_TIMES)
        eta, eta_v = training.limits_at(times)[:2]
        if not eta.any() and eta_v.any():
            raise InputError(
                f"training.learning_rate is 0 from t = {start:g} to {stop:g}: the student's fields stand where the "
                "means of inputs left them, which differs from run to run, and its second layer learns from that; "
                "let output_learning_rate be 0 there too, set inputs.centered to true, or solve by particles"
            )
        check_averages(at_time(piece.problem, float(times[eta.argmax()])))


def check_trajectory(problem: Problem) -> None:
    """Refuse problems without an ODE for order parameters alone."""
    check_problem(problem, Problem)
    if problem.initial is not None:
        check_means(problem)
    for piece in pieces_of(problem):
        _check_piece(piece.problem)


def _check_piece(problem: Problem) -> None:
    check_closes(problem)
    activations = problem.student.activation_functions, problem.teacher.activation_functions
    kind = kind_of_expectations(*activations)
    units = problem.students + problem.teachers
    if kind == QUADRATURE and units > MOST_FIELDS:
        raise InputError(
            f"student.activation = '{problem.student.activation}' with teacher.activation = "
            f"'{problem.teacher.activation}' has no closed form here, and quadrature over the fields of {units} units "
            f"takes hours; take at most {MOST_FIELDS} units of student and teacher together, or one of "
            f"{', '.join(CLOSED)} for both"
        )


def refined(
    problem: Problem, times: FloatArray, average_rate: float | None = None
) -> tuple[System, Path, dict[str, FloatArray], str]:
    """Solution to the tolerance of the problem, its observables with estimated errors, and a warning.

    With a rate the observables have those of an average of the weights.
    """
    stretches = driven(problem)

    def prepared(nodes: int, order: int) -> tuple[list[Leg], FloatArray]:
        legs = legs_of(stretches, lambda each: system_of(each, nodes, order, problem))
        return legs, start_of(problem, legs[0].system)

    system, path, found, warning = to_tolerance(problem, times, prepared, average_rate)
    state = problem.initial and problem.initial.atoms.at_nodes
    of_start = dict(state.errors) if state else {}
    of_start |= {f"{name.removesuffix('_error')}_average_error": error for name, error in of_start.items()}
    return system, path, found | {name: found[name] + of_start[name] for name in of_start if name in found}, warning


def to_tolerance(
    problem: Problem,
    times: FloatArray,
    prepared: Callable[[int, int], tuple[list[Leg], FloatArray]],
    average_rate: float | None = None,
) -> tuple[System, Path, dict[str, FloatArray], str]:
    """Solution to a tolerance, of equations and a start that `prepared` makes for numbers of nodes and of points."""
    tolerance = problem.order_parameters.tolerance
    compared = COMPARED if average_rate is None else (*COMPARED, *AVERAGES)

    def solve(level: tuple[int, int, float]) -> tuple[System, Path, dict[str, FloatArray]]:
        nodes, order, step = level
        legs, start = prepared(nodes, order)
        system = legs[0].system
        b, step = problem.training.momentum_rate, max(step, 1e-13)  # rounding is not much below 1e-13
        if b is not None:
            path, averages = with_companions(legs, start, times, average_rate, b, step)
        else:
            path = follow(legs, start, times, step)
            averages = averages_along(legs, start, times, path, average_rate, step) if average_rate is not None else {}
        return system, path, observed(legs, times, path.state) | {"generalisation_error": path.errors} | averages

    found = refine(
        levels_of(tolerance),
        solve,
        lambda coarse, fine: change_of(coarse[2], fine[2], compared),
        tolerance,
        lambda result: result[1].status,
    )
    system, path, seen = found.result
    if found.interrupted:
        path = path._replace(status="interrupted")
    warning = ""
    if path.status == "complete":
        what = "Q, R, v and the generalisation error"
        warning = missed(what, found.change.largest, "order_parameters.tolerance", tolerance)
    return system, path, seen | found.change.errors, warning


def system_of(problem: Problem, nodes: int, order: int, run: Problem | None = None) -> System:
    """Equations with some nodes of the spectrum, and points of a quadrature over a field; see `make_system`.

    Those of a start from single runs have their eigenvalues as nodes.
    """
    if problem.initial is not None and problem.initial.atoms.own:
        return own_system(problem, OwnStart.mean_of(problem.initial.atoms.own), order, run)[0]
    return make_system(problem, problem.inputs.eigenvalues.nodes(nodes), order, run)


def levels_of(tolerance: float) -> Iterator[tuple[int, int, float]]:
    """Nodes of the spectrum, points of a quadrature and tolerances of a step, from coarse to fine."""
    digits = math.ceil(-math.log10(tolerance))
    # Points of a quadrature over a field for each digit, besides one node of the spectrum.
    nodes, order, step = FEWEST_NODES + digits, LOWEST_ORDER + 4 * digits, STEP_SHARE * tolerance
    yield nodes, order, step
    # More than 512 nodes would not help, and with more than 64 points of a quadrature four fields take minutes.
    while nodes <= 512 and order <= 64:
        nodes, order, step = math.ceil(MORE * nodes), math.ceil(MORE_POINTS * order), SMALLER_STEPS * step
        yield nodes, order, step
