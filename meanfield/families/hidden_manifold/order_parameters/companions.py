"""Order parameters of students with others beside them: moving averages of their weights, and velocities that last.

All of them have the equations of students, with no gain and no decay of their own. Averages W' and velocities P have

    dW'/dt = a (W - W'),    dW/dt = b P,    dP/dt = -b P

besides, from W' = W and P = 0 on, and the same of v. P has the gains and the noise of the student then, and its weight
decay. Moves that are linear in the weights act on their overlaps by a matrix alone. Source: update_rules.md, section 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanfield.errors import BlowUpError
from meanfield.families.hidden_manifold.expectations.choice import expectations
from meanfield.families.hidden_manifold.order_parameters.integration import Path
from meanfield.families.hidden_manifold.order_parameters.legs import Leg, errors_along, observed, train_at
from meanfield.families.hidden_manifold.order_parameters.rates import fields_at, rates_of_expectations
from meanfield.families.hidden_manifold.order_parameters.system import State, System, packed, unpacked
from meanfield.numerics.ode import Rate, Tolerance, solve_in_stretches
from meanfield.typing import FloatArray


def with_companions(
    legs: Sequence[Leg], start: FloatArray, times: FloatArray, a: float | None, b: float | None, step: float
) -> tuple[Path, dict[str, FloatArray]]:
    """Path of the trained students, and `Q_average` and others; NaN at output times that were not reached.

    Parameters
    ----------
    legs : sequence of Leg
        Equations of the trained students in time.
    start : ndarray, shape (n,)
        Their state at the first time.
    times : ndarray, shape (times,)
        Two or more.
    a, b : float or None
        Rates of the average and of the velocity, where there are such.
    step : float
        Largest error of a step, relative and absolute.
    """
    K, groups = legs[0].system.students, 1 + (a is not None) + (b is not None)
    systems = [leg.system._replace(students=groups * K, training=leg.system.training.copy()) for leg in legs]
    wide = [leg._replace(system=system) for leg, system in zip(legs, systems, strict=True)]
    first = unpacked(legs[0].system, start)
    begins = np.kron([1.0, *[1.0] * (a is not None), *[0.0] * (b is not None)], np.eye(K)).T
    both = State(*(begins @ part for part in first))
    both = State(both.r, both.sigma @ begins.T, both.Omega @ begins.T, both.v)
    stretches = [
        (np.unique([low, *times[(low <= times) & (times <= high)], high]), _rate(leg, each.system, a, b))
        for leg, each in zip(legs, wide, strict=True)
        if (low := max(leg.start, times[0])) < (high := min(leg.stop, times[-1]))
    ]
    tolerance = Tolerance(relative=step, absolute=step)
    options: dict[str, Any] = {"check": _fault, "label": "order parameters", "interruptible": True}
    found = solve_in_stretches(stretches, packed(both), times, tolerance, **options)
    state = unpacked(wide[0].system, found.values)
    trained = _of(state, slice(K))
    path = Path(trained, errors_along(legs, times, packed(trained)), found.status)
    if a is None:
        return path, {}
    own, seen = _of(state, slice(K, 2 * K)), observed(wide, times, state)
    return path, {
        "Q_average": seen["Q"][..., K : 2 * K, K : 2 * K],
        "R_average": seen["R"][..., K : 2 * K, :],
        "v_average": own.v,
        "generalisation_error_average": errors_along(legs, times, packed(own)),
        "overlap_average": state.Omega[..., :K, K : 2 * K],
    }


def averages_along(
    legs: Sequence[Leg], start: FloatArray, times: FloatArray, path: Path, a: float, step: float
) -> dict[str, FloatArray]:
    """`Q_average` and others beside a path without velocities; NaN at output times that it does not reach."""
    reached = max(int(np.isfinite(path.errors).sum()), 2)  # a path that ends at once has no second one, nor averages
    _, found = with_companions(legs, start, times[:reached], a, None, step)
    missing = len(times) - reached
    return {name: np.concatenate([each, np.full((missing, *each.shape[1:]), np.nan)]) for name, each in found.items()}


def _fault(t: float, y: FloatArray) -> BlowUpError | None:
    """Error of students that could not be followed up to an output time."""
    if np.isfinite(y).all():
        return None
    remedy = "lower training.learning_rate or training.output_learning_rate"
    return BlowUpError(t, "the student's weights become infinite", remedy)


def _of(state: State, k: slice) -> State:
    """State of some students alone."""
    return State(state.r[..., k, :], state.sigma[..., k, k], state.Omega[..., k, k], state.v[..., k])


def _rate(leg: Leg, wide: System, a: float | None, b: float | None) -> Rate:
    """Rate of change of all students together."""
    system = leg.system
    K = system.students
    sizes, others = (len(system.chance), K, K + system.teachers), wide.students - K
    none, learns = (0, 0), (0, others) if b is None else (others, 0)  # students before and behind those with gains

    def rate(t: float, y: FloatArray) -> FloatArray:
        train_at(leg, t)
        eta, eta_v, _, _, decay = wide.training[:] = system.training
        wide.training[4] = 0.0  # which is one of the moves below
        state = unpacked(wide, y)
        A, H, G, D = np.zeros(sizes), np.zeros((*sizes[:2], K)), np.zeros(sizes[:2]), np.zeros(sizes[:2])
        C, m, u = fields_at(system, packed(_of(state, slice(K))))
        for q in range(sizes[0]):
            expectations(system.kind, K, C[q], m[q], u, system.training[3], system.rule, A[q], H[q], G[q], D[q])
        gains = np.insert(np.pad(A, (none, learns, none)), [K] * others, 0.0, axis=2)  # on the fields of all
        both, means, _ = fields_at(wide, y)
        change = np.empty(len(y))
        noise, of_means, of_outputs = np.pad(H, (none, learns, learns)), *(np.pad(x, (none, learns)) for x in (G, D))
        rates_of_expectations(wide, y, both, means, gains, noise, of_means, of_outputs, change)
        P, P_v = _moves(a, b, eta * decay, K), _moves(a, b, eta_v * decay, K)
        sigma, Omega = P @ state.sigma, P @ state.Omega
        return change + packed(State(P @ state.r, sigma + sigma.swapaxes(1, 2), Omega + Omega.T, P_v @ state.v))

    return rate


def _moves(a: float | None, b: float | None, decay: float, K: int) -> FloatArray:
    """Matrix of the moves of all students that are linear in their weights: trained, averages, velocities."""
    groups = 1 + (a is not None) + (b is not None)
    found = np.zeros((groups, groups))
    found[-1 if b is not None else 0, 0] -= decay
    if a is not None:
        found[1, :2] = a, -a
    if b is not None:
        found[0, -1], found[-1, -1] = b, -b
    return np.asarray(np.kron(found, np.eye(K)), dtype=float)
