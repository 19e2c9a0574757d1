"""Branches of fixed points as one number of the problem varies, and what the best of them achieves."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield.errors import InputError
from meanfield.families.contrastive.fixed_points.points import (
    MARGINAL,
    FixedPoint,
    find_fixed_points,
    jacobian_at,
    sorted_rates,
)
from meanfield.families.contrastive.fixed_points.search import TOLERANCE, field_size
from meanfield.families.contrastive.fixed_points.summary import row_of, stacked
from meanfield.families.contrastive.order_parameters.field import VectorField, check_closes
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.continuation import all_branches, by_difference, newton
from meanfield.problems.problem_keys import check_range, with_value
from meanfield.process.progress import progress_bar
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset, problem_of
from meanfield.typing import FloatArray

OF_THE_ODES = ("model", "features", "hidden", "augmentation")
"""Parts of a problem that fixed points depend on: a prior that closes the ODEs acts on the norm alone."""

INSIDE = 1.0 - 1e-9
"""Branches begin at fixed points with |q| below that: on the sphere there is no Jacobian."""

MOST_KEPT = 200
"""Fields that are kept for values of the parameter."""


def continue_fixed_points(problem: Problem, key: str, start: float, stop: float, points: int = 41) -> xr.Dataset:
    """Branches of fixed points as a number of the problem goes from `start` to `stop`, around turning points too.

    Parameters
    ----------
    problem : Problem
        With a prior that closes the ODEs.
    key : str
        What is varied, such as `model.learning_rate` or `features[0].hidden.second_moment`.
    start, stop : float
        Ends of its range, which are points of all branches that reach them.
    points : int
        Steps are so short that a branch without curvature has about that many points.

    Returns
    -------
    xarray.Dataset
        Of the method `fixed_point_branches`, along `point`: `parameter`, `branch`, `turning`, `q`, `g`, `Lambda`,
        eigenvalues, `growth_rate`, `stability` and `kind`. The attribute `key` of `parameter` is the key.

    Raises
    ------
    InputError
        If the prior does not close the ODEs, there is no such key, it holds no real number, fixed points do not depend
        on it, or a value is not allowed.

    Notes
    -----
    Branches start from all isolated fixed points at both ends, and from those in between that no such branch leads to.
    Each copy by a flip of features has a branch of its own. Source: theory.md, section 2.
    """
    check_closes(problem)
    check_range(problem, key, start, stop, points, OF_THE_ODES, "fixed points")
    started = time.perf_counter()
    family = _Family(problem, key, (min(start, stop), max(start, stop)))
    with progress_bar(1, "fixed points", "diagram") as bar:
        branches = all_branches(family, (start, stop), 1.0 / (points - 1), TOLERANCE)
        rows = [
            family.row(branch.x[i], float(branch.p[i])) | {"branch": number, "turning": np.int8(branch.turning[i])}
            for number, branch in enumerate(branches)
            for i in range(len(branch.p))
        ]
        bar.update()
    nothing = {} if rows else {name: np.empty(0) for name in ("parameter", "branch", "turning")}
    arrays = stacked(rows, len(problem.features)) | nothing
    elapsed = time.perf_counter() - started
    result = build_dataset("fixed_point_branches", problem, arrays, "complete", provenance(elapsed, key=key))
    result["parameter"].attrs["key"] = key
    return result


class _Family:
    """B(q) for every value of a number of the problem, in units of its size; see `Family` of continuation."""

    def __init__(self, problem: Problem, key: str, limits: tuple[float, float]) -> None:
        self.limits = limits
        self._problem = problem
        self._key = key
        self._kept: dict[float, VectorField] = {}
        self._size = max(field_size(self.at(end)) for end in limits)

    def at(self, p: float) -> VectorField:
        """The field at a value; those that were made last are kept."""
        if p not in self._kept:
            made = VectorField(with_value(self._problem, self._key, p))
            if len(self._kept) >= MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[p] = made
        return self._kept[p]

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """F and dF/dq."""
        values, slope = self.at(p).equations(x)
        return values / self._size, slope / self._size

    def by_parameter(self, x: FloatArray, p: float, values: FloatArray) -> FloatArray:
        """dF/dp."""
        return by_difference(lambda p: self.at(p)(x) / self._size, p, values, self.limits)

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All isolated fixed points."""
        points = find_fixed_points(self.at(p)).points
        return [point.q for point in points if point.kind != "marginal" and np.linalg.norm(point.q) < INSIDE]

    def row(self, x: FloatArray, p: float) -> dict[str, object]:
        """The variables of one point."""
        return row_of(self.at(p), self.fixed_point(x, p)) | {"parameter": p}

    def fixed_point(self, x: FloatArray, p: float) -> FixedPoint:
        """The type of a fixed point."""
        field = self.at(p)
        return FixedPoint(x, sorted_rates(jacobian_at(field, x)), MARGINAL * field_size(field), 0)


def stationary_similarity(branches: xr.Dataset, values: FloatArray) -> FloatArray:
    """The cosine similarity |q| of the best stable fixed point, as a function of the parameter.

    Parameters
    ----------
    branches : xarray.Dataset
        From `continue_fixed_points`.
    values : ndarray, shape (n,)
        Of the parameter, within the range of the branches.

    Returns
    -------
    ndarray, shape (n,)
        Polished by Newton's method; NaN where no fixed point is stable.

    Raises
    ------
    InputError
        If a value is outside the range.
    """
    p, key = branches["parameter"].values, str(branches["parameter"].attrs["key"])
    limits = float(p.min()), float(p.max())
    values = np.asarray(values, dtype=float)
    outside = values[~((values >= limits[0]) & (values <= limits[1]))]
    if outside.size:
        raise InputError(f"{key} = {outside[0]:g}: branches go from {limits[0]:g} to {limits[1]:g}; give values there")
    family = _Family(problem_of(branches), key, limits)
    return np.array([_best(family, branches, float(value)) for value in values])


def _best(family: _Family, branches: xr.Dataset, value: float) -> float:
    p, q, number = (branches[name].values for name in ("parameter", "q", "branch"))
    crosses = ((p[:-1] - value) * (p[1:] - value) <= 0) & (number[:-1] == number[1:]) & (p[:-1] != p[1:])
    best = np.nan
    for i in np.flatnonzero(crosses):
        guess = q[i] + (value - p[i]) / (p[i + 1] - p[i]) * (q[i + 1] - q[i])
        x = newton(lambda x: family.equations(x, value), guess, tolerance=TOLERANCE)
        if x is not None and family.fixed_point(x, value).verdict == 1:
            best = np.fmax(best, float(np.linalg.norm(x)))
    return best
