"""Limit of a contrastive problem as N grows, for the density and stationary solvers."""

from __future__ import annotations

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.limit import Limit
from meanfield.problems.base import check_problem


def limit_of(problem: Problem, closure: Closure | None = None) -> Limit:
    """The McKean-Vlasov equation of a problem.

    Parameters
    ----------
    problem : Problem
        Problem of the limit; a random start is taken as q = 0.
    closure : Closure, optional
        g and Lambda of the problem, if they are known already.

    Raises
    ------
    InputError
        If the problem has no closure; see `Closure`.
    """
    check_problem(problem, Problem)
    made = Closure(problem) if closure is None else closure
    return Limit.of(problem, made, problem.initial_overlap, " or raise model.batch_size")
