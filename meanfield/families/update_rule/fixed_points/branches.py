"""Branches of fixed points of update rules as one number of the problem varies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.fixed_points.search import TOLERANCE, RestingStates, fixed_point_at
from meanfield.families.update_rule.fixed_points.states import (
    check_fixed_points,
    measured,
    solved_near,
    state_variables,
)
from meanfield.families.update_rule.fixed_points.symmetries import Symmetries
from meanfield.families.update_rule.fixed_points.velocity import Velocity
from meanfield.families.update_rule.order_parameters.equations import Choices, Equations
from meanfield.families.update_rule.order_parameters.errors import chosen_rule, errors_by, other_rules
from meanfield.families.update_rule.order_parameters.trajectory import AVERAGE_SHARE
from meanfield.families.update_rule.problem import Problem
from meanfield.numerics.continuation import CachedEquations
from meanfield.problems.problem_keys import with_value
from meanfield.results.states import continue_states
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    import xarray as xr

PARTS = ("model", "data", "features", "students", "hidden", "groups", "draws", "prior")
"""Tables of a problem file that fixed points depend on."""


def continue_fixed_points(problem: Problem, key: str, start: float, stop: float, points: int = 41) -> xr.Dataset:
    """Branches of fixed points as a number of the problem goes from `start` to `stop`, around turning points too.

    Parameters
    ----------
    problem : Problem
        See `meanfield.find_fixed_points`.
    key : str
        Key of the number that is varied, such as `model.rule_parameters.rate`, `data.coins.flip` or `prior.strength`.
    start, stop : float
        Ends of the range of the number, which are points of all branches that reach them.
    points : int
        Steps are so short that a branch without curvature has about that many points.

    Returns
    -------
    xarray.Dataset
        Result of the method `fixed_point_branches`, along `point`: `parameter`, `branch`, `turning`, `R`, `Q`, side
        variables `v` and `observables` with their errors, `residual`, eigenvalues, `stability` and `kind`. The
        attribute `key` of `parameter` is the key.

    Raises
    ------
    InputError
        If the order parameters do not close, there is no such key, it holds no real number, fixed points do not depend
        on it, or a value is not allowed.

    Notes
    -----
    Branches start from all isolated fixed points at both ends, and from those in between that no such branch leads to.
    One stands for all images under symmetries. Source: update_rules.md, section 6.
    """
    check_fixed_points(problem)
    return continue_states(
        problem,
        key,
        start,
        stop,
        points,
        kind="fixed_point_branches",
        states="fixed points",
        parts=PARTS,
        equations=lambda limits: [_Branches(problem, key, limits)],
        tolerance=TOLERANCE,
    )


def _tolerance(problem: Problem) -> float:
    return AVERAGE_SHARE * problem.order_parameters.tolerance


class _Branches(CachedEquations[Velocity]):
    """Velocity of the order parameters for every value of a number of the problem, by the same rules of quadrature.

    These are as fine as averages need where states were found at both ends.
    """

    def __init__(self, problem: Problem, key: str, limits: tuple[float, float]) -> None:
        super().__init__(limits)
        self._problem, self._key = problem, key
        self._choices: Choices = {}
        for p in limits:
            equations = self._equations(p)
            self._choices = equations.choose([(0.0, equations.start)], _tolerance(problem), self._choices)
        for p in limits:
            states = self._states(p)
            places = [(0.0, states.velocity.embedded(x)) for x in states.x]
            try:
                self._choices = self._equations(p).choose(places, _tolerance(problem), self._choices)
            except InputError:  # averages that cannot be resolved are no state of the problem
                continue
        self.forget()
        # A position within the range that is not special misses symmetries that hold at single values.
        self._symmetries = Symmetries(self.at(limits[0] + 0.37 * (limits[1] - limits[0])))

    def _equations(self, p: float) -> Equations:
        return Equations(with_value(self._problem, self._key, p))

    def _states(self, p: float) -> RestingStates:
        states = RestingStates(self.at(p), Symmetries(self.at(p)))
        states.search()
        return states

    def make(self, p: float, latest: Velocity | None) -> Velocity:
        """Velocity at a value of the number."""
        equations = self._equations(p)
        return Velocity(equations, equations.rules(self._choices, chosen_rule), _tolerance(self._problem))

    def equations(self, x: FloatArray, p: float) -> tuple[FloatArray, FloatArray]:
        """Velocity and its Jacobian."""
        return self.at(p).equations(x)

    def values(self, x: FloatArray, p: float) -> FloatArray:
        """Velocity alone."""
        return self.at(p).values(x)

    def search(self, p: float, known: Sequence[FloatArray] = ()) -> list[FloatArray]:
        """All isolated fixed points, one of each set of images under symmetries."""
        states = self._states(p)
        return [
            states.symmetries.representative(x)
            for x, point in zip(states.x, states.points, strict=True)
            if point.kind != "marginal"
        ]

    def images(self, x: FloatArray) -> list[FloatArray]:
        """Images of a fixed point under symmetries."""
        return list(self._symmetries.images(x))

    def variables(self, x: FloatArray, p: float) -> dict[str, Any] | None:
        """Variables of the fixed point at a root; None if the velocity is not smooth there, or by coarser averages."""
        velocity, equations = self.at(p), self._equations(p)
        point = fixed_point_at(velocity, velocity.inside(x), 0)
        levels = [equations.rules(self._choices, which) for which in other_rules(self._choices)]
        others = [(Velocity(equations, rules, _tolerance(self._problem)), rules) for rules in levels]
        found = [(each, rules, solved_near(each, x)) for each, rules in others]
        if point is None:
            return None
        here = measured(equations, velocity, equations.rules(self._choices, chosen_rule), point.q)
        far = [here if y is None else measured(equations, each, rules, y) for each, rules, y in found]
        errors = errors_by(far, here)
        if any(y is None for _, _, y in found):  # near a turning point, beyond which coarser averages have no state
            errors = {name: np.full(np.shape(values), np.nan) for name, values in errors.items()}
        return state_variables(velocity, point) | here | errors
