"""Fixed points of the order parameters with their eigenvalues, unstable directions and errors.

Trajectories are followed until they hardly move, then by Newton's method.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from meanfield.ensembles.momentum import check_no_velocity
from meanfield.families.hidden_manifold.initial_state import check_no_file
from meanfield.families.hidden_manifold.order_parameters.integration import follow
from meanfield.families.hidden_manifold.order_parameters.jacobian import coordinates_of, jacobian_at, rates_at
from meanfield.families.hidden_manifold.order_parameters.legs import steadily
from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import (
    State,
    System,
    observables,
    packed,
    start_of,
    unpacked,
)
from meanfield.families.hidden_manifold.order_parameters.trajectory import (
    COMPARED,
    check_trajectory,
    levels_of,
    system_of,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.ingredients.spectra import interpolated
from meanfield.numerics.continuation.roots import newton
from meanfield.numerics.growth_rates import sorted_rates, verdict_of
from meanfield.results.solved import Solved, solver
from meanfield.results.states import stacked
from meanfield.typing import FloatArray

MODES = 6
"""Number of leading eigenvalues that results hold."""

MARGINAL = 1e-7
"""Largest growth rate that is zero to the accuracy of eigenvalues."""


def check_fixed_points(problem: Problem) -> None:
    """Refuse problems without an ODE for order parameters alone, or with a start from a file."""
    check_trajectory(problem)
    check_no_velocity(problem.training, "order parameters, density and SGD")
    check_no_file(problem, "searches for fixed points")


@solver
def find_fixed_points(problem: Problem) -> Solved:
    """Fixed points by which the trajectory of the problem passes, and that of a student whose units are alike.

    Each is followed until it comes to rest at a stable one. The second leads to the symmetric plateau: units that start
    alike stay alike, while any difference between them may grow.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    xarray.Dataset
        Order parameters of each state with their errors, leading eigenvalues, number of unstable directions, and the
        change of R along the one that grows fastest, as `meanfield.families.hidden_manifold.results` describes them.
        States come in the order of their generalisation error.

    Raises
    ------
    InputError
        If the inputs have a mean of length sqrt(N).

    Notes
    -----
    Source: hidden_manifold.md, section 5.
    """
    check_fixed_points(problem)
    levels = islice(levels_of(problem.order_parameters.tolerance), 2)
    coarse, fine = (system_of(problem, nodes, order) for nodes, order, _ in levels)
    start = start_of(problem, coarse)
    rows: list[dict[str, Any]] = []
    for found in chain.from_iterable(fixed_points_along(coarse, y) for y in (start, symmetrised(coarse, start))):
        better = fixed_point_from(fine, carried_over(coarse, fine, found))
        if better is None:
            continue
        row = _described(fine, better) | _errors(coarse, found, fine, better)
        if not any(_same(row, other) for other in rows):
            rows.append(row)
    rows.sort(key=lambda row: float(row["generalisation_error"]))
    arrays = stacked(rows, "fixed_points", problem) | {"T": problem.teacher_overlap}
    return Solved("fixed_points", arrays, warning="" if rows else NOTHING_AT_REST, effort={"nodes": len(fine.rho)})


NOTHING_AT_REST = (
    "no trajectory comes to rest within t = 10000/eta; raise training.learning_rate, or solve the order parameters to "
    "see where they go"
)


def _observed(system: System, y: FloatArray) -> dict[str, Any]:
    error = rates(y, system, np.empty(len(y)))
    found = observables(system, unpacked(system, y))
    return {name: found[name] for name in ("Q", "R", "Omega", "Sigma", "v")} | {"generalisation_error": error}


def _described(system: System, y: FloatArray) -> dict[str, Any]:
    """Variables of a fixed point."""
    coordinates = coordinates_of(system)
    values, vectors = np.linalg.eig(jacobian_at(system, coordinates, y))
    leading = sorted_rates(values)
    direction = coordinates.moved(np.zeros(len(y)), vectors[:, np.argmax(values.real)].real)
    change = observables(system, unpacked(system, direction))["R"]
    scale = change.flat[np.argmax(np.abs(change))]
    shown = np.full(MODES, np.nan, dtype=complex)
    shown[: min(MODES, len(leading))] = leading[:MODES]
    return _observed(system, y) | {
        "residual": np.abs(rates_at(system, y)[coordinates.place]).max(),
        "growth_rate": leading[0].real,
        "unstable_directions": int(np.count_nonzero(leading.real > MARGINAL)),
        "stability": verdict_of(float(leading[0].real), MARGINAL),
        "eigenvalue_real": shown.real,
        "eigenvalue_imag": shown.imag,
        "leading_direction": change / scale if abs(scale) > MARGINAL * np.abs(direction).max() else 0.0 * change,
    }


def _errors(coarse: System, found: FloatArray, fine: System, better: FloatArray) -> dict[str, Any]:
    first, second = _observed(coarse, found), _observed(fine, better)
    return {f"{name}_error": np.abs(second[name] - first[name]) for name in COMPARED}


def _same(row: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two fixed points are one, but for the order of the students."""
    cost = np.abs(row["R"][:, None] - other["R"][None]).sum(axis=-1) + np.abs(row["v"][:, None] - other["v"][None])
    _, order = linear_sum_assignment(cost)
    again = {"Q": other["Q"][np.ix_(order, order)], "R": other["R"][order], "v": other["v"][order]}
    # Fixed points as close as that are one.
    return all(np.abs(row[name] - (other | again)[name]).max() <= 1e-6 for name in COMPARED)


def fixed_point_from(system: System, y: FloatArray) -> FloatArray | None:
    """Fixed point by Newton's method from a state near it."""
    coordinates = coordinates_of(system)

    def equations(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        state = coordinates.moved(y, x)
        return rates_at(system, state)[coordinates.place], jacobian_at(system, coordinates, state)

    # Rounding of central differences is not much below 1e-11.
    found = newton(equations, y[coordinates.place], tolerance=1e-11)
    return None if found is None else coordinates.moved(y, found)


def fixed_points_along(system: System, start: FloatArray) -> Iterator[FloatArray]:
    """Fixed points that a trajectory passes by, up to the stable one at which it comes to rest."""
    y, before = start, 0.0
    for stage in (10.0, 100.0, 1000.0, 10000.0):  # in units of 1/eta
        times = np.array([before, stage / system.training[0]])
        path = follow(steadily(system), y, times, 1e-8, "fixed points")
        if path.status == "interrupted":
            raise KeyboardInterrupt
        if path.status != "complete":
            return
        y = packed(State(*(part[-1] for part in path.state)))
        before = float(times[1])
        found = fixed_point_from(system, y)
        # Newton's method may leave the trajectory by 0.3 of 1 plus the largest number.
        if found is None or np.abs(found - y).max() > 0.3 * (1.0 + np.abs(y).max()) or not is_possible(system, found):
            continue
        yield found
        growth = np.linalg.eigvals(jacobian_at(system, coordinates_of(system), found)).real.max()
        if growth <= MARGINAL:
            return


def is_possible(system: System, y: FloatArray) -> bool:
    """Whether products of weights are those of vectors."""
    state = unpacked(system, y)
    matrices = [state.Omega, *state.sigma]
    return all(np.linalg.eigvalsh(matrix)[0] >= -1e-8 * (1.0 + np.abs(matrix).max()) for matrix in matrices)


def symmetrised(system: System, y: FloatArray) -> FloatArray:
    """Average of a state over permutations of the students: trajectories from there keep students alike."""
    state, K = unpacked(system, y), system.students
    same = np.eye(K, dtype=bool)

    def alike(matrices: FloatArray) -> FloatArray:
        diagonal = matrices[..., same].mean(axis=-1)[..., None, None]
        other = matrices[..., ~same].mean(axis=-1)[..., None, None] if K > 1 else diagonal
        return np.asarray(np.where(same, diagonal, other))

    r = np.repeat(state.r.mean(axis=-2, keepdims=True), K, axis=-2)
    return packed(State(r, alike(state.sigma), alike(state.Omega), np.full(K, state.v.mean())))


def carried_over(coarse: System, fine: System, y: FloatArray) -> FloatArray:
    """State at other nodes, by the polynomial through those of a Gauss rule."""
    state = unpacked(coarse, y)
    if len(coarse.rho) == len(fine.rho):
        return y
    r, sigma = (interpolated(coarse.rho, part, fine.rho) for part in (state.r, state.sigma))
    return packed(State(r, sigma, state.Omega, state.v))
