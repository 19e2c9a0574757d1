"""Limit of a contrastive problem as N grows, for the density and stationary solvers."""

from __future__ import annotations

from dataclasses import replace

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.drive import drive_for, reference_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.problems.base import check_problem
from meanfield.problems.phases import pieces_of


def limit_of(problem: Problem, *closures: Closure | None) -> Limit:
    """The McKean-Vlasov equation of a problem, phase by phase.

    Parameters
    ----------
    problem : Problem
        Problem of the limit; a random start is taken as q = 0.
    *closures : Closure, optional
        g and Lambda of each phase, or of its reference if schedules change them, where they are known already.

    Raises
    ------
    InputError
        If the problem has no closure; see `Closure`.
    """
    check_problem(problem, Problem)
    pieces = pieces_of(problem)
    known = closures or (None,) * len(pieces)
    first, *later = [_limit_of_phase(piece.problem, made) for piece, made in zip(pieces, known, strict=True)]
    if problem.initial is not None:
        nodes = feature_quadrature(problem.coordinates, problem.density.feature_nodes)
        first = replace(first, initial_law=problem.initial.law_at(nodes, problem.prior.functions.kinks))
    return first.followed_by([(piece.start, limit) for piece, limit in zip(pieces[1:], later, strict=True)])


def _limit_of_phase(problem: Problem, closure: Closure | None) -> Limit:
    reference = reference_of(problem)
    made = Closure(reference) if closure is None else closure
    limit = Limit.of(reference, made, problem.initial_overlap, " or raise model.batch_size")
    limit = replace(limit, learning_rate=reference.model.rate)
    return limit if reference is problem else replace(limit, schedules=drive_for(problem, reference))
