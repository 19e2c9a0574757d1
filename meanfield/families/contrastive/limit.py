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
    return Limit(
        closure=Closure(problem) if closure is None else closure,
        learning_rate=problem.model.learning_rate,
        prior=problem.prior,
        coordinates=problem.coordinates,
        initial_overlap=problem.initial_overlap,
        initial_residual=problem.initial_residual,
        times=problem.time.outputs_at,
        remedy_if_too_fast="lower model.learning_rate",
        remedy_if_norm_drifts="lower model.learning_rate or raise model.batch_size",
    )
