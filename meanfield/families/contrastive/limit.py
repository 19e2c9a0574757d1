"""Limit of a contrastive problem, as the solvers of densities in time and of stationary states take it."""

from __future__ import annotations

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.limit import Limit


def limit_of(problem: Problem, closure: Closure | None = None) -> Limit:
    """The McKean-Vlasov equation of a problem.

    Parameters
    ----------
    problem : Problem
    closure : Closure, optional
        g and Lambda of the problem, where they are made already.
    """
    return Limit(
        closure=closure or Closure(problem),
        learning_rate=problem.model.learning_rate,
        prior=problem.prior,
        coordinates=tuple(feature.coordinate for feature in problem.features),
        initial_overlap=problem.initial_overlap,
        initial_residual=problem.initial_residual,
        times=problem.time.outputs_at,
    )
