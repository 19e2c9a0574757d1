"""Solutions with the cells and steps that a problem file names: one, or two that are extrapolated."""

from __future__ import annotations

from meanfield.density.evolution import LongStepsError
from meanfield.density.grid import Mirror
from meanfield.density.level import Level, Limits, NarrowCellsError, combined_density, extrapolated_moments
from meanfield.density.plan import WIDEST, Plan, check_memory, fixed_plan
from meanfield.density.solution import Solution
from meanfield.density.steppers import MakeStepper
from meanfield.errors import BlowUpError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.numerics.extrapolation import SMOOTH_POWERS, extrapolation_weights
from meanfield.process.progress import progress_bar

LIMITS = Limits(norm=0.05, negative=1e-14, edge=1e-9, edge_mean=1e-9)
"""Cells and steps that do worse cannot be meant."""


def solve_fixed(problem: Problem, closure: Closure, make_stepper: MakeStepper) -> Solution:
    """Solve with the cells and steps of the problem file, and defaults for what it leaves open."""
    widening = refinement = 1.0
    plan, next_plan = None, fixed_plan(problem, closure)
    # A plan that cannot change, because the problem file fixes it or it is at its limits, is not tried twice.
    while next_plan != plan and widening <= WIDEST:
        plan = next_plan
        attempt = _Attempt(problem, closure, plan, make_stepper)
        try:
            status = attempt.solve()
        except NarrowCellsError as error:
            status = error.status
            widening *= 1.5
        except LongStepsError as error:
            status = error.status
            refinement *= 4.0
        else:
            break
        next_plan = fixed_plan(problem, closure, widening, refinement)
    return attempt.solution(status)


class _Attempt:
    """The levels of one plan, which reach the output times together."""

    def __init__(self, problem: Problem, closure: Closure, plan: Plan, make_stepper: MakeStepper) -> None:
        self._factors = (1,) if problem.density.order == 2 else (1, 2)
        grid = plan.grid(problem)
        check_memory(problem, grid.shape, sum(k * (problem.time.outputs + 6) for k in self._factors))
        self._mirror = Mirror.of(problem, grid)
        self._levels = [
            Level(problem, closure, self._mirror.solved, plan.schedule, k, make_stepper, LIMITS) for k in self._factors
        ]
        self._outputs = problem.time.outputs

    def solve(self) -> str:
        """Advance to the last output time and return the status."""
        with progress_bar(self._outputs - 1, "density") as bar:
            try:
                for index in range(self._outputs):
                    for level in self._levels:
                        level.reach(index)
                    bar.update(index > 0)
            except (NarrowCellsError, LongStepsError):
                raise
            except BlowUpError as error:
                return error.status
            except KeyboardInterrupt:
                return "interrupted"
        return "complete"

    def solution(self, status: str) -> Solution:
        """What was reached."""
        weights = extrapolation_weights(self._factors, SMOOTH_POWERS[: len(self._factors) - 1])
        moments, (density, _) = extrapolated_moments(self._levels, weights), combined_density(self._levels, weights, 1)
        grid = self._mirror.grid
        effort = {"cells": [level.grid.shape[1] for level in self._levels], "steps": [v.steps for v in self._levels]}
        return Solution(grid, moments, self._mirror.unfold(density), status, effort | {"nodes": len(grid.u_weight)})
