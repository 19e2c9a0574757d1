"""Limit of a contrastive problem as N grows, for the density and stationary solvers."""

from __future__ import annotations

from dataclasses import replace

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.drive import drive_for, reference_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.problems.base import check_problem


def limit_of(problem: Problem, closure: Closure | None = None) -> Limit:
    """The McKean-Vlasov equation of a problem.

    Parameters
    ----------
    problem : Problem
        Problem of the limit; a random start is taken as q = 0.
    closure : Closure, optional
        g and Lambda of the problem, or of its reference if schedules change them, if they are known already.

    Raises
    ------
    InputError
        If the problem has no closure; see `Closure`.
    """
    check_problem(problem, Problem)
    reference = reference_of(problem)
    made = Closure(reference) if closure is None else closure
    limit = Limit.of(reference, made, problem.initial_overlap, " or raise model.batch_size")
    return limit if reference is problem else replace(limit, schedules=drive_for(problem, reference))
