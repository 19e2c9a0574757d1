"""Order parameters of erf networks by fixed Euler steps in NumPy, and by SciPy's integrators.

Euler's steps at all D eigenvalues are what the public code of the model takes, in C++ (S. Goldt and others, Physical
Review X 10, 041044, 2020). Its source of r is an average over the spectrum, which is right where the teacher has the
same share at every eigenvalue, and can be asked for here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from meanfield.families.hidden_manifold.order_parameters.rates import rates
from meanfield.families.hidden_manifold.order_parameters.system import (
    System,
    make_system,
    observables,
    start_of,
    unpacked,
)
from meanfield.families.hidden_manifold.problem import Problem


def system_of(problem: Problem, nodes: int) -> System:
    """System on so many nodes of the spectrum, or on all eigenvalues if there are fewer."""
    return make_system(problem, problem.inputs.eigenvalues.nodes(nodes), 0)


class Euler:
    """Euler's method in NumPy, for one Gaussian without mean and the activation erf(x/sqrt 2).

    Parameters
    ----------
    problem : Problem
    step : float
        Time step, of which output times are multiples.
    averaged_source : bool
        Whether the source of r is averaged over the spectrum, as in the public code.
    own : (System, ndarray), optional
        Equations and state of a run's own start, in place of those of the problem.
    """

    def __init__(
        self, problem: Problem, step: float, averaged_source: bool = False, own: tuple[System, np.ndarray] | None = None
    ) -> None:
        system = system_of(problem, 10**6) if own is None else own[0]
        self._start = start_of(problem, system) if own is None else own[1]
        self._system, self._problem, self._step = system, problem, step
        self._K, self._rho = system.students, system.rho[:, None, None]
        self._rest, self._b, self._c = (float(x[0]) for x in (system.rest, system.slope, system.variance))
        self._t, self._T = self._rho * system.t, np.einsum("n,nab->ab", system.weight, system.t)
        if averaged_source:
            self._t = self._rho * np.einsum("n,nab->ab", system.weight * system.rho, system.t)
        self._d = self._rest * system.aspect_ratio + self._b**2 * self._rho
        self._spread = self._rest * self._rho + self._b**2 / system.aspect_ratio * self._rho**2

    def run(self) -> dict[str, np.ndarray]:
        """Q, R and the generalisation error at the output times of the problem."""
        y = unpacked(self._system, self._start)
        r, sigma, Omega, v = (np.array(part) for part in y)
        times = self._problem.time.outputs_at
        found: dict[str, list[Any]] = {"Q": [], "R": [], "generalisation_error": []}
        steps = np.diff(np.round(times / self._step).astype(int), prepend=0)
        for some in steps:
            for _ in range(some):
                _, change = self._rates(r, sigma, Omega, v)
                r, sigma, Omega, v = (x + self._step * dx for x, dx in zip((r, sigma, Omega, v), change, strict=True))
            (Q, R, error), _ = self._rates(r, sigma, Omega, v)
            for numbers, number in zip(found.values(), (Q, R, error), strict=True):
                numbers.append(number)
        return {name: np.array(numbers) for name, numbers in found.items()}

    def _rates(self, r: Any, sigma: Any, Omega: Any, v: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        system, K, (eta, eta_v) = self._system, self._K, self._system.training[:2]
        Q = self._rest * Omega + self._b**2 * np.tensordot(system.weight, sigma, 1)
        R = self._b * np.tensordot(system.weight, r, 1)
        C = np.block([[Q, R], [R.T, self._T]])
        u = np.concatenate([v, -system.teacher_weights])
        width = 1.0 + np.diag(C)
        roots = np.sqrt(np.outer(width, width) - C**2)
        A = np.outer(v, u) * (2 / np.pi / roots[:K])
        A[:, :K] -= np.diag(v * ((2 / np.pi * C / width[:, None] / roots)[:K] @ u))
        H = np.empty((K, K))
        for k in range(K):
            for j in range(K):
                both = C[:, [k, j]]
                given = C - both @ np.linalg.solve(C[np.ix_([k, j], [k, j])] + np.eye(2), both.T)
                wide = np.sqrt(1.0 + np.diag(given))
                found = u @ np.arcsin(given / np.outer(wide, wide)) @ u
                H[k, j] = v[k] * v[j] * 4 / np.pi**2 * found / roots[k, j]
        products = 2 / np.pi * np.arcsin(C / np.sqrt(np.outer(width, width)))
        students, teachers = A[:, :K], A[:, K:]
        dr = -eta / system.aspect_ratio * (self._d * (students @ r) + self._b * (teachers @ self._t))
        pull = self._d * (students @ sigma) + self._b * self._rho * (teachers @ r.swapaxes(1, 2))
        dsigma = -eta / system.aspect_ratio * (pull + pull.swapaxes(1, 2)) + eta**2 * H * self._spread
        drift = A @ C[:, :K]
        dOmega = -eta * (drift + drift.T) + eta**2 * self._c * H
        return (Q, R, 0.5 * u @ products @ u), (dr, dsigma, dOmega, -eta_v * (products @ u)[:K])


def with_scipy(problem: Problem, method: str, nodes: int, tolerance: float) -> Callable[[], dict[str, np.ndarray]]:
    """Solution by an integrator of SciPy with our compiled rates of change."""
    system, times = system_of(problem, nodes), problem.time.outputs_at
    start = start_of(problem, system)
    change = np.empty_like(start)

    def right_hand_side(_: float, y: np.ndarray) -> np.ndarray:
        rates(y, system, change)
        return change.copy()

    def run() -> dict[str, np.ndarray]:
        span = (times[0], times[-1])
        y = solve_ivp(right_hand_side, span, start, method, times, rtol=tolerance, atol=tolerance).y.T
        errors = np.array([rates(np.ascontiguousarray(row), system, change) for row in y])
        return observables(system, unpacked(system, y)) | {"generalisation_error": errors}

    return run
