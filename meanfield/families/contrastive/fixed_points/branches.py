"""Branches of fixed points as one number of the problem varies, and the similarity of the best stable one.

With several channels each grouping of channels that coincide is a subspace with branches of its own: where collapsed
channels part, their branch goes on and loses its stability, and one of tilted states ends, at the border of what
overlaps channels can have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.arguments import as_array
from meanfield.errors import InputError
from meanfield.families.contrastive.channels.states.analysis import state_variables
from meanfield.families.contrastive.channels.states.field import COINCIDING, SmoothField
from meanfield.families.contrastive.channels.states.search import TOLERANCE as CHANNEL_TOLERANCE
from meanfield.families.contrastive.channels.states.search import ChannelState, ChannelStates
from meanfield.families.contrastive.channels.states.symmetry import Coincidence, Symmetries, coincidences
from meanfield.families.contrastive.fixed_points.faces import jacobian_at
from meanfield.families.contrastive.fixed_points.points import (
    find_fixed_points,
    fixed_point_variables,
)
from meanfield.families.contrastive.fixed_points.search import TOLERANCE, field_size
from meanfield.families.contrastive.order_parameters.field import VectorField, check_linear
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.continuation import CachedEquations, crossings, newton
from meanfield.numerics.continuation.diagram import MOST_KEPT
from meanfield.numerics.growth_rates import RATE_RESOLUTION, FixedPoint, sorted_rates
from meanfield.problems.problem_keys import with_value
from meanfield.results.result import Result, check_dataset
from meanfield.results.states import branches_of, continue_states
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

TABLES_OF_THE_ODES = ("model", "features", "hidden", "augmentation")
"""Tables of a problem file that fixed points depend on: a prior that closes the ODEs acts on the norm alone."""


def continue_fixed_points(problem: Problem, key: str, start: float, stop: float, points: int = 41) -> xr.Dataset:
    """Branches of fixed points as a number of the problem goes from `start` to `stop`, around turning points too.

    Parameters
    ----------
    problem : Problem
        Problem with a prior that closes the ODEs.
    key : str
        Key of the number that is varied, such as `model.learning_rate` or `features[0].hidden.second_moment`.
    start, stop : float
        Ends of the range of the number, which are points of all branches that reach them.
    points : int
        Steps are so short that a branch without curvature has about that many points.

    Returns
    -------
    xarray.Dataset
        Result of the method `fixed_point_branches`, along `point`: `parameter`, `branch`, `turning`, `q`, `g`,
        `Lambda`, eigenvalues, `growth_rate`, `stability` and `kind`. With several channels `M` and `arrangement` take
        the place of `g`. The attribute `key` of `parameter` is the key.

    Raises
    ------
    InputError
        If the prior does not close the ODEs, there is no such key, it holds no real number, fixed points do not depend
        on it, a value is not allowed, or averages of several channels take random batches.

    Notes
    -----
    Branches start from all isolated fixed points at both ends, and from those in between that no such branch leads to.
    Each copy by a flip of features has a branch of its own, but with several channels one branch stands for all copies.
    Source: theory.md, section 2; several_channels.md, section 6.
    """
    check_linear(problem)
    several = problem.model.channels > 1
    return continue_states(
        problem,
        key,
        start,
        stop,
        points,
        kind="fixed_point_branches",
        states="fixed points",
        parts=(*TABLES_OF_THE_ODES, *(("decorrelation",) if several else ())),
        equations=lambda limits: (
            branches_of_channels(problem, key, limits) if several else [_FixedPointEquations(problem, key, limits)]
        ),
        tolerance=CHANNEL_TOLERANCE if several else TOLERANCE,
    )


class _FixedPointEquations(CachedEquations[VectorField]):
    """Field b(q) relative to its size, for every value of a number of the problem."""

    def __init__(self, problem: Problem, key: str, limits: tuple[float, float]) -> None:
        super().__init__(limits)
        self._problem = problem
        self._key = key
        self._size = max(field_size(self.at(end)) for end in limits)

    def make(self, p: float, latest: VectorField | None) -> VectorField:
        """Vector field at a value of the number, and its size."""
        return VectorField(with_value(self._problem, self._key, p))

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Residual F and Jacobian dF/dq."""
        values, slope = self.at(p).equations(x)
        return values / self._size, slope / self._size

    def values(self, x: FloatArray, p: float) -> FloatArray:
        """Residual F alone, without the cost of a Jacobian."""
        return self.at(p)(x) / self._size

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All isolated fixed points."""
        points = find_fixed_points(self.at(p)).points
        # On the sphere there is no Jacobian, so no branch begins there.
        return [point.q for point in points if point.kind != "marginal" and np.linalg.norm(point.q) < (1.0 - 1e-9)]

    def variables(self, x: FloatArray, p: float) -> dict[str, Any]:
        """The variables of the fixed point at a root."""
        return fixed_point_variables(self.at(p), self.fixed_point(x, p))

    def fixed_point(self, x: FloatArray, p: float) -> FixedPoint:
        """The fixed point at a root, with its rates."""
        field = self.at(p)
        return FixedPoint(
            x, sorted_rates(np.linalg.eigvals(jacobian_at(field, x))), RATE_RESOLUTION * field_size(field), 0
        )


def stationary_similarity(branches: xr.Dataset, values: FloatArray) -> FloatArray:
    """The cosine similarity |q| of the best stable fixed point, as a function of the parameter.

    Parameters
    ----------
    branches : xarray.Dataset
        Result of `continue_fixed_points`.
    values : ndarray, shape (n,)
        Values of the parameter, within the range of the branches.

    Returns
    -------
    ndarray, shape (n,)
        Similarities, polished by Newton's method; NaN where no fixed point is stable.

    Raises
    ------
    InputError
        If a value is outside the range.
    """
    check_dataset(branches)
    if "parameter" not in branches or "key" not in branches["parameter"].attrs:
        raise InputError("branches: holds no fixed points along a parameter; give what continue_fixed_points returns")
    p, key = branches["parameter"].values, str(branches["parameter"].attrs["key"])
    limits = float(p.min()), float(p.max())
    values = as_array(values, "values", "give a list of values of the parameter")
    outside = values[~((values >= limits[0]) & (values <= limits[1]))]
    if outside.size:
        raise InputError(f"{key} = {outside[0]:g}: branches go from {limits[0]:g} to {limits[1]:g}; give values there")
    equations = _FixedPointEquations(Result.of(branches).problem, key, limits)
    parts = branches_of(branches)
    return np.array([_best(equations, parts, float(value)) for value in values])


def _best(equations: _FixedPointEquations, branches: list[xr.Dataset], value: float) -> float:
    best = np.nan
    for branch in branches:
        for guess in crossings(branch["q"].values, branch["parameter"].values, value):
            x = newton(lambda x: equations.equations(x, value), guess, tolerance=TOLERANCE)
            if x is not None and equations.fixed_point(x, value).verdict == 1:
                best = np.fmax(best, float(np.linalg.norm(x)))
    return best


class ChannelBranches(CachedEquations[Coincidence]):
    """Velocity of the overlaps of channels in one grouping, for every value of a number of the problem.

    Parameters
    ----------
    fields : callable
        Value of the number -> `SmoothField`.
    limits : tuple of float
        The range of the number, increasing.
    number : int
        Number of the grouping in `coincidences`.
    describe : callable
        Variables of a state of a field.
    """

    def __init__(
        self,
        fields: Callable[[float], SmoothField],
        limits: tuple[float, float],
        number: int,
        describe: Callable[[SmoothField, ChannelState], dict[str, Any]],
    ) -> None:
        super().__init__(limits)
        self._fields, self._number, self._describe = fields, number, describe
        # A position within the range that is not special misses symmetries that hold at single values.
        self._symmetries = Symmetries(fields(limits[0] + 0.37 * (limits[1] - limits[0])))

    def make(self, p: float, latest: Coincidence | None) -> Coincidence:
        """The grouping of channels at a value of the number."""
        return list(coincidences(self._fields(p)))[self._number]

    def values(self, x: FloatArray, p: float) -> FloatArray:
        """Velocity alone."""
        return self.at(p).values(x)

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Velocity and its Jacobian."""
        return self.at(p).equations(x)

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All states that are isolated in the subspace, one of each set of images under symmetries."""
        found, space = ChannelStates(self._fields(p)), self.at(p)
        found.search(space)
        if space.alone:  # all states count where indices tell whether one is missing
            for other in coincidences(found.field):
                found.search(other)
            found.search_at_random(np.random.default_rng(0))
        isolated = (space.restricted(found.x[state.orbit]) for state in found.states() if state.copies < np.inf)
        return [x for x in isolated if space.room(x) > 1.0 - COINCIDING]

    def images(self, x: FloatArray) -> list[FloatArray]:
        """Images of a state under symmetries that lie in the subspace."""
        space = self.at(self.limits[0])
        whole = self._symmetries.images(space.embedded(x))
        parts = [space.restricted(image) for image in whole]
        kept = [z for z, image in zip(parts, whole, strict=True) if np.abs(space.embedded(z) - image).max() < 1e-9]
        return list(np.unique(np.round(kept, 9), axis=0))

    def variables(self, x: FloatArray, p: float) -> dict[str, Any] | None:
        """The variables of the state at a root; None at the border, where channels coincide after all."""
        space = self.at(p)
        found = ChannelStates(self._fields(p), self._symmetries)
        if not space.room(x) > 1.0 - COINCIDING:
            return None
        found.add(space.embedded(x))
        return self._describe(found.field, found.states()[0])


def branches_of_channels(
    problem: Problem,
    key: str,
    limits: tuple[float, float],
    describe: Callable[[SmoothField, ChannelState], dict[str, Any]] = state_variables,
) -> list[ChannelBranches]:
    """Equations of all groupings of channels, which share the velocities."""
    size = max(SmoothField(with_value(problem, key, end)).size for end in limits)

    @lru_cache(MOST_KEPT)
    def fields(p: float) -> SmoothField:
        return SmoothField(with_value(problem, key, p), size)

    groupings = len(list(coincidences(fields(limits[0]))))
    return [ChannelBranches(fields, limits, number, describe) for number in range(groupings)]
