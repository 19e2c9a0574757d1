"""Order parameters of a moving average of the student's weights: K more students that follow the K trained ones.

All 2K students have the equations of the trained ones, with no gain and no decay of their own, and

    dW'/dt = a (W - W'),    dv'/dt = a (v - v')

besides, from W' = W and v' = v. Moves that are linear in the weights act on their overlaps by a matrix alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.families.hidden_manifold.expectations.choice import expectations
from meanfield.families.hidden_manifold.order_parameters.legs import Leg, errors_along, observed, set_training
from meanfield.families.hidden_manifold.order_parameters.rates import fields_at, rates_of_expectations
from meanfield.families.hidden_manifold.order_parameters.system import State, System, packed, unpacked
from meanfield.numerics.ode import Rate, Tolerance, solve_in_stretches
from meanfield.typing import FloatArray


def averages_along(
    legs: Sequence[Leg], start: FloatArray, times: FloatArray, reached: int, a: float, step: float
) -> dict[str, FloatArray]:
    """`Q_average` and others at output times; NaN from the first one on that was not reached.

    Parameters
    ----------
    legs : sequence of Leg
        Equations of the trained students in time.
    start : ndarray, shape (n,)
        Their state at the first time.
    times : ndarray, shape (times,)
    reached : int
        Number of output times that they reach.
    a : float
        Rate of the average.
    step : float
        Largest error of a step, relative and absolute.
    """
    K = legs[0].system.students
    systems = [leg.system._replace(students=2 * K, training=leg.system.training.copy()) for leg in legs]
    wide = [leg._replace(system=system) for leg, system in zip(legs, systems, strict=True)]
    first = unpacked(legs[0].system, start)
    both = State(
        np.tile(first.r, (1, 2, 1)), np.tile(first.sigma, (1, 2, 2)), np.tile(first.Omega, (2, 2)), np.tile(first.v, 2)
    )
    values = np.full((len(times), packed(both).size), np.nan)
    if reached > 1:
        inside = times[:reached]
        stretches = [
            (np.unique([low, *inside[(low <= inside) & (inside <= high)], high]), _rate(leg, each.system, a))
            for leg, each in zip(legs, wide, strict=True)
            if (low := leg.start) < (high := min(leg.stop, inside[-1]))
        ]
        tolerance = Tolerance(relative=step, absolute=step)
        found = solve_in_stretches(stretches, packed(both), inside, tolerance, label="averages")
        values[:reached] = found.values
    state = unpacked(wide[0].system, values)
    seen = observed(wide, times, state)
    own = State(state.r[..., K:, :], state.sigma[..., K:, K:], state.Omega[..., K:, K:], state.v[..., K:])
    return {
        "Q_average": seen["Q"][..., K:, K:],
        "R_average": seen["R"][..., K:, :],
        "v_average": state.v[..., K:],
        "generalisation_error_average": errors_along(legs, times, packed(own)),
        "overlap_average": state.Omega[..., :K, K:],
    }


def _rate(leg: Leg, wide: System, a: float) -> Rate:
    """Rate of change of trained and averaged students together."""
    system, numbers = leg.system, leg.drive.room
    K = system.students
    sizes = len(system.chance), K, K + system.teachers

    def rate(t: float, y: FloatArray) -> FloatArray:
        if leg.drive.moves:
            set_training(leg.drive, leg.start, t, numbers, system)
        eta, eta_v, _, _, decay = wide.training[:] = system.training
        wide.training[4] = 0.0  # averages do not decay by themselves
        state = unpacked(wide, y)
        trained = State(state.r[:, :K], state.sigma[:, :K, :K], state.Omega[:K, :K], state.v[:K])
        A, H, G, D = np.zeros(sizes), np.zeros((*sizes[:2], K)), np.zeros(sizes[:2]), np.zeros(sizes[:2])
        C, m, u = fields_at(system, packed(trained))
        for q in range(sizes[0]):
            expectations(system.kind, K, C[q], m[q], u, system.training[3], system.rule, A[q], H[q], G[q], D[q])
        none = ((0, 0), (0, K))
        gains = np.insert(np.pad(A, (*none, (0, 0))), [K] * K, 0.0, axis=2)  # on the fields of all students
        both, means, _ = fields_at(wide, y)
        change = np.empty(len(y))
        rates_of_expectations(
            wide, y, both, means, gains, np.pad(H, (*none, (0, K))), np.pad(G, none), np.pad(D, none), change
        )
        P, P_v = _moves(a, eta * decay, K), _moves(a, eta_v * decay, K)
        sigma, Omega = P @ state.sigma, P @ state.Omega
        return change + packed(State(P @ state.r, sigma + sigma.swapaxes(1, 2), Omega + Omega.T, P_v @ state.v))

    return rate


def _moves(a: float, decay: float, K: int) -> FloatArray:
    """Matrix of the moves of trained and averaged students that are linear in their weights."""
    return np.asarray(np.kron([[-decay, 0.0], [a, -a]], np.eye(K)), dtype=float)
