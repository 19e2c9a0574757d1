"""Branches of critical points as one number of the problem varies: temperature, variance, a probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.families.alpha_contrastive.critical_points.solver import (
    check_critical_points,
    eigen_properties,
    field_of,
    find_critical_points,
)
from meanfield.families.alpha_contrastive.laws import Tokens
from meanfield.families.alpha_contrastive.limit.fields import AnyField
from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.numerics.continuation import CachedEquations
from meanfield.problems.problem_keys import value_of, with_value, with_values
from meanfield.results.states import continue_states
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

PROBABILITIES = "data.probabilities"


def continue_critical_points(problem: Problem, key: str, start: float, stop: float, points: int = 41) -> xr.Dataset:
    """Branches of critical points as a number of the problem goes from `start` to `stop`, around turning points too.

    Parameters
    ----------
    problem : Problem
        With one layer.
    key : str
        Key of the number that is varied, such as `importance.temperature`, `data.covariance` or
        `data.probabilities[0]`, with which the other probabilities keep their ratios.
    start, stop : float
        Ends of the range of the number, which are points of all branches that reach them.
    points : int
        Steps are so short that a branch without curvature has about that many points.

    Returns
    -------
    xarray.Dataset
        Result of the method `critical_point_branches`, along `point`: `parameter`, `branch`, `turning`, `w`, `energy`,
        `objective`, `eigenvalue`, `rate`, `rate_frozen`, `stable`, `lme` and `gap`. The attribute `key` of `parameter`
        is the key. Points on walls are none of them: a branch ends where it comes to a wall.

    Raises
    ------
    InputError
        If the method does not apply to the problem, there is no such key, it holds no real number, critical points do
        not depend on it, or a value is not allowed.

    Notes
    -----
    Branches start from all points between walls at both ends, and from those in between that no such branch leads to.
    Source: alpha_contrastive.md, section 3.
    """
    check_critical_points(problem)
    assert not isinstance(problem.data, Tokens)
    return continue_states(
        problem,
        key,
        start,
        stop,
        points,
        kind="critical_point_branches",
        states="critical points",
        parts=("importance", "data"),
        equations=lambda limits: [_Branches(problem, key, limits)],
        tolerance=1e-10,  # largest component of the field at a root, relative to its size at both ends
        at=at_value,
    )


def at_value(problem: Problem, key: str, value: float) -> Problem:
    """Problem with another number under a key; other probabilities keep their ratios and add up with it to 1."""
    if not key.startswith(f"{PROBABILITIES}["):
        return with_value(problem, key, value)
    old = value_of(problem, key)
    given = getattr(problem.data, "probabilities", ())
    if problem.data.law == "latent_summation":  # each is one by itself
        return with_value(problem, key, value)
    index = int(key.removeprefix(f"{PROBABILITIES}[").rstrip("]"))
    others = [p * (1.0 - value) / (1.0 - old) if k != index else value for k, p in enumerate(given)]
    return with_values(problem, {PROBABILITIES: others})


class _Branches(CachedEquations[AnyField]):
    """Tangential field relative to its size, and what |w| lacks to 1, for every value of a number of the problem."""

    def __init__(self, problem: Problem, key: str, limits: tuple[float, float]) -> None:
        super().__init__(limits)
        self._problem, self._key = problem, key
        some = np.random.default_rng(0).standard_normal((16, problem.data.dimension))  # type: ignore[union-attr]
        some /= np.linalg.norm(some, axis=1, keepdims=True)
        self._size = max(float(np.abs(self.at(end).field(some)).max()) for end in limits)

    def make(self, p: float, latest: AnyField | None) -> AnyField:
        """Field at a value of the number."""
        return field_of(at_value(self._problem, self._key, p))

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Residual and Jacobian in all coordinates of w."""
        field, length = self.at(p), float(np.linalg.norm(x))
        w = x / length
        basis = np.linalg.svd(w[None])[2][1:].T
        along = basis.T @ field.field(w[None])[0] / self._size
        J = field.jacobians(w, basis)[0] / (self._size * length)
        values = basis @ along + (1.0 - length) * w
        slope = (basis @ J - np.outer(w, along) / length) @ basis.T - np.outer(w, w)
        return values, slope + (1.0 - length) / length * basis @ basis.T

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All critical points between walls."""
        found = find_critical_points(at_value(self._problem, self._key, p))
        return [w for w, wall in zip(found["w"].values, found["wall"].values, strict=True) if not wall]

    def variables(self, x: FloatArray, p: float) -> dict[str, Any]:
        """The variables of the critical point at a root."""
        field, w = self.at(p), x / np.linalg.norm(x)
        basis = np.linalg.svd(w[None])[2][1:].T
        moving, frozen = (float(np.linalg.eigvalsh(J)[-1]) for J in field.jacobians(w, basis))
        return {
            "w": w,
            "energy": float(field.energy(w[None])[0]),
            "objective": float(field.objective(w[None])[0]),
            "rate": moving,
            "rate_frozen": frozen,
            "stable": int(moving < 0.0),
            **eigen_properties([field.matrix(w)], w),
        }
