"""Branches of stationary states as one number of the problem varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.stationary.states import check_stationary, potential_of
from meanfield.families.contrastive.stationary.uninformed import NONE_FOUND, noise_ratio, why_none
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary import StationaryBranches, warning_of_branches
from meanfield.problems.problem_keys import with_value
from meanfield.results.states import continue_states
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

OF_THE_LIMIT = ("model", "features", "hidden", "augmentation", "prior")
"""Parts of a problem on which stationary states depend."""


def continue_stationary_states(problem: Problem, key: str, start: float, stop: float, points: int = 41) -> xr.Dataset:
    """Branches of stationary states as a number of the problem goes from `start` to `stop`, around turning points too.

    Parameters
    ----------
    problem : Problem
        As `find_stationary_states` takes it.
    key : str
        What is varied, such as `prior.strength` or `features[0].hidden.second_moment`.
    start, stop : float
        Ends of its range, which are points of all branches that reach them.
    points : int
        Steps are so short that a branch without curvature has about that many points.

    Returns
    -------
    xarray.Dataset
        Along `point`: `parameter`, `branch`, `turning`, and what `find_stationary_states` says of a state besides its
        density. The attribute `key` of `parameter` is the key. `status` is `complete`, or `failed: ...` where no state
        was found; `warning` says where some may be missing, and why, and what is missing at the ends.

    Raises
    ------
    InputError
        If there is no such key, it holds no real number, stationary states do not depend on it, or a value is not
        allowed.

    Notes
    -----
    Branches start from all states at both ends, and from states in between that no such branch leads to. A branch that
    ends inside the range does so where its density can no longer be normalised. With several channels `M`,
    `arrangement` and `copies` take the place of `g`, one branch stands for all images by symmetries, and channels that
    coincide have branches of their own. Source: theory.md, section 6; several_channels.md, section 6.
    """
    check_stationary(problem)
    if problem.model.channels > 1:
        return _of_channels(problem, key, start, stop, points)

    def why_none_at(value: float) -> str:
        changed = with_value(problem, key, value)
        return why_none(changed, Closure(changed, tabulated=False))

    return continue_states(
        problem,
        key,
        start,
        stop,
        points,
        kind="continuation",
        states="stationary states",
        parts=OF_THE_LIMIT,
        equations=lambda limits: [_ContrastiveBranches(problem, key, limits)],
        none_found=lambda: _why_none(problem, key, (start, stop)),
        warning=lambda made, arrays: warning_of_branches(
            made[0], key, (start, stop), arrays["parameter"], arrays["q"], why_none_at
        ),
    )


def _of_channels(problem: Problem, key: str, start: float, stop: float, points: int) -> xr.Dataset:
    """Branches of several channels, one for all images by symmetries; see `continue_stationary_states`."""
    # imported where they are used
    from meanfield.families.contrastive.channels.states.search import TOLERANCE as CHANNEL_TOLERANCE
    from meanfield.families.contrastive.channels.stationary.branches import branches_of_states
    from meanfield.families.contrastive.channels.stationary.equations import ROOT
    from meanfield.families.contrastive.channels.stationary.plane import NOT_LOOKED_FOR

    linear = problem.prior.functions.linear
    return continue_states(
        problem,
        key,
        start,
        stop,
        points,
        kind="continuation",
        states="stationary states",
        parts=(*OF_THE_LIMIT, "decorrelation"),
        equations=lambda limits: branches_of_states(problem, key, limits),
        none_found=lambda: f"failed: no stationary state was found; {NOT_LOOKED_FOR}",
        warning=lambda _, arrays: "" if linear or not len(arrays["parameter"]) else NOT_LOOKED_FOR,
        tolerance=CHANNEL_TOLERANCE if linear else ROOT,
    )


def _why_none(problem: Problem, key: str, ends: tuple[float, float]) -> str:
    """Why there is no state, at the end of the range where the noise is strongest in comparison with the prior."""
    problems = [with_value(problem, key, end) for end in ends]
    closures = [Closure(each, tabulated=False) for each in problems]
    best = max(range(2), key=lambda i: noise_ratio(problems[i], closures[i]))
    return f"{NONE_FOUND}; at {key} = {ends[best]:g} and q = 0 {why_none(problems[best], closures[best])}"


class _ContrastiveBranches(StationaryBranches):
    """Equations of stationary states for every value of a number of the problem."""

    def __init__(self, problem: Problem, key: str, limits: tuple[float, float]) -> None:
        super().__init__(self._limit, limits)
        self._problem = problem
        self._key = key
        # One closure for all values, with a table, where the number is of the prior, which no closure depends on.
        self._closure = Closure(problem) if key.startswith("prior.") else None

    def _limit(self, p: float) -> Limit:
        problem = with_value(self._problem, self._key, p)
        return limit_of(problem, self._closure or Closure(problem, tabulated=False))

    def variables(self, x: FloatArray, p: float) -> dict[str, Any] | None:
        """Variables of the state at a root, with its potential where there is one."""
        found = super().variables(x, p)
        return None if found is None else found | potential_of(self.at(p).limit, x)
