"""Search for fixed points: along trajectories until they hardly move, then by Newton's method."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from meanfield.families.hidden_manifold.interpolation import interpolated
from meanfield.families.hidden_manifold.order_parameters.integration import follow
from meanfield.families.hidden_manifold.order_parameters.jacobian import coordinates_of, jacobian_at, rates_at
from meanfield.families.hidden_manifold.order_parameters.system import State, System, packed, unpacked
from meanfield.numerics.continuation.roots import newton
from meanfield.typing import FloatArray

MARGINAL = 1e-7
"""Largest growth rate that is zero to the accuracy of eigenvalues."""


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
        times = np.array([before, stage / system.rates[0]])
        path = follow(system, y, times, 1e-8, "fixed points")
        if path.status == "interrupted":
            raise KeyboardInterrupt
        if path.status != "complete":
            return
        y, before = packed(State(*(part[-1] for part in path.state))), float(times[1])
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
