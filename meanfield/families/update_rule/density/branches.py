"""Branches of stationary states of one student of an update rule as one number of the problem varies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from meanfield.families.update_rule.density.averages import resolved
from meanfield.families.update_rule.density.stationary import (
    NONE_FOUND,
    Limits,
    as_overlaps,
    check_stationary,
    limits_of,
    observable_variables,
    overlap_variables,
    resolved_states,
    share_of,
    why_none_of,
)
from meanfield.families.update_rule.density.totals import TotalEquations
from meanfield.families.update_rule.fixed_points.branches import PARTS
from meanfield.families.update_rule.order_parameters.equations import Choices
from meanfield.families.update_rule.problem import Problem
from meanfield.mckean_vlasov.stationary import StationaryBranches, warning_of_branches
from meanfield.problems.problem_keys import with_value
from meanfield.results.states import continue_states
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr


def continue_stationary_states(problem: Problem, key: str, start: float, stop: float, points: int = 41) -> xr.Dataset:
    """Branches of stationary states as a number of the problem goes from `start` to `stop`, around turning points too.

    Parameters
    ----------
    problem : Problem
        As `meanfield.find_stationary_states` takes it.
    key : str
        Key of the number that is varied, such as `model.rule_parameters.rate` or `prior.strength`.
    start, stop : float
        Ends of the range of the number, which are points of all branches that reach them.
    points : int
        Steps are so short that a branch without curvature has about that many points.

    Returns
    -------
    xarray.Dataset
        Along `point`: `parameter`, `branch`, `turning`, and what `find_stationary_states` says of a state besides its
        density. The attribute `key` of `parameter` is the key. `status` is `complete`, or `failed: ...` where no state
        was found.

    Raises
    ------
    InputError
        If there is no such key, it holds no real number, states do not depend on it, or a value is not allowed.

    Notes
    -----
    Branches start from all states at both ends, and from states in between that no such branch leads to. A branch that
    ends inside the range does so where its density can no longer be normalised. Source: update_rules.md, section 5.
    """
    check_stationary(problem)
    return continue_states(
        problem,
        key,
        start,
        stop,
        points,
        kind="continuation",
        states="stationary states",
        parts=PARTS,
        equations=lambda limits: [_Branches(problem, key, limits)],
        none_found=lambda: f"{NONE_FOUND} at {key} = {start:g} or {stop:g}; find_stationary_states says why",
        warning=lambda made, arrays: warning_of_branches(
            made[0],
            key,
            (start, stop),
            arrays["parameter"],
            arrays["R"][:, 0],
            lambda p: why_none_of(made[0].at(p)),
        ),
    )


class _Branches(StationaryBranches):
    """Equations of stationary states for every value of a number, by the same rules of quadrature.

    These are as fine as averages need where states were found at both ends.
    """

    def __init__(self, problem: Problem, key: str, limits: tuple[float, float]) -> None:
        super().__init__(lambda p: self._limits(p).limit, limits, lambda p: self._limits(p).rough)
        self._problem, self._key, self._share = problem, key, share_of(problem)
        self._choices: Choices = {}
        for p in limits:
            equations = self._equations(p)
            equations, self._choices = resolved(equations, [(0.0, equations.start)], self._share, self._choices)
            self._choices = resolved_states(equations, self._choices, self._share).choices
        self._latest: tuple[float, Limits] | None = None

    def _equations(self, p: float) -> TotalEquations:
        return TotalEquations(with_value(self._problem, self._key, p))

    def _limits(self, p: float) -> Limits:
        """Limits at a value; averages are those of other values where the number is of the prior."""
        if self._latest is None or self._latest[0] != p:
            equations = self._equations(p)
            if self._latest is not None and self._key.startswith("prior."):
                self._latest = p, self._latest[1].under(equations.problem.prior)
            else:
                self._latest = p, limits_of(equations, self._choices, self._share)
        return self._latest[1]

    def variables(self, x: FloatArray, p: float) -> dict[str, Any] | None:
        """Variables of the state at a root."""
        found = super().variables(x, p)
        if found is None:
            return None
        found |= overlap_variables(self.at(p), self._limits(p).others, x)
        return as_overlaps(found | observable_variables(self._equations(p), self._choices, found))
