"""Simulation of SGD of update rules: choice of the kind of step, its memory, and results that are kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from meanfield.ensembles.arrays import Record, identity_of
from meanfield.ensembles.ensemble import run_ensemble
from meanfield.ensembles.simulation import BYTES_PER_NUMBER, Simulation
from meanfield.errors import InputError
from meanfield.families.update_rule.in_time import pieces_of_samples
from meanfield.families.update_rule.initial_state import check_known
from meanfield.families.update_rule.particles.steppers import prepare_steppers
from meanfield.families.update_rule.problem import Problem, pulls
from meanfield.families.update_rule.trial_calls import check_functions
from meanfield.mckean_vlasov.weight_law import check_sampled
from meanfield.problems.base import check_problem
from meanfield.problems.in_time import check_at_extremes
from meanfield.problems.phases import pieces_of
from meanfield.results.solved import Solved, solver

CHAIN_HAS_NO_WEIGHTS = "particles.method = 'chain' follows R and Q alone and has no weights; set it to 'plain'"
"""Reason why a chain has no snapshots, with the remedy."""

MOST_TOGETHER = 256
"""Largest number of replicas of a chain that are advanced by one call."""


@solver
def simulate_sgd(problem: Problem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of one-pass SGD at finite N, each with features and start of its own.

    Parameters
    ----------
    problem : Problem
        `particles.method` chooses how steps are taken; the law of the results is that of plain SGD in any case.
    workers, record : optional
        See `meanfield.simulate_sgd`.

    Returns
    -------
    xarray.Dataset
        `R`, `Q`, side variables and observables at output times, with `data.spectrum` also `R_noise` and `Q_noise`;
        `weights`, `U` and `rho_of_coordinate` at snapshots if there are any; with `particles.record = 'statistics'`
        their statistics instead. Output time t is step round(t N). The attribute `status` is `complete`, `interrupted`
        or `failed: ...`; what was not reached is NaN.

    Raises
    ------
    InputError
        If the rule does not compile, the chain does not apply, a step of the prior is longer than a weight, or the run
        does not fit into the free memory or into `particles.longest_days`.

    Notes
    -----
    All quantities are dimensionless. Source: update_rules.md, sections 1 and 6.
    """
    simulation = simulation_of(problem)
    solved = run_ensemble(simulation, partial(prepare_steppers, problem, simulation.label), workers, record)
    return replace(solved, arrays=solved.arrays | problem.names)


def simulation_of(problem: Problem) -> Simulation:
    """Simulation that a problem describes, with the kind of step that it takes.

    Raises
    ------
    InputError
        If the method cannot give what is asked for, or a step of the prior is longer than a weight.
    """
    check_problem(problem, Problem)
    check_functions(problem)
    N, M, K, S = problem.particles.dimension, len(problem.features), len(problem.students), len(problem.side)
    if problem.data.spectrum is not None and any(kind.means for kind in problem.kinds):
        raise InputError(
            "draws.means: SGD does not know overlaps weighted with data.spectrum in each step, which averages over "
            "samples need; remove means or data.spectrum, or take order_parameters"
        )
    check_at_extremes(problem, lambda each: each.prior.check_pull(N))
    method = chosen_method(problem)
    if problem.initial is not None and problem.initial.atoms.weights is None and method == "plain":
        check_known(problem, "SGD with weights")
        check_sampled(problem.initial.atoms.law, problem.coordinates, problem.initial.path)
    chain = method == "chain"
    rows = {"R": (K, M), "Q": (K, K), "v": (S,), "observables": (len(problem.measured),)}
    uneven = problem.data.spectrum is not None
    rows |= {"R_noise": (K, M), "Q_noise": (K, K)} if uneven else {}
    constants: dict[str, tuple[int, ...]] = {"U": (N, M)} if M else {}
    constants |= {"rho_of_coordinate": (N,)} if uneven else {}
    kinds = [kind for piece in pieces_of_samples(problem) for kind in piece.problem.kinds]
    m, L = (
        max(each)
        for each in zip(*((kind.batch_size * len(kind.masks), len(kind.masks)) for kind in kinds), strict=True)
    )
    several = m * len(problem.kinds) > 1
    vectors = 0 if chain else N * (3 * (M + K) + L + (K if several else 0))  # drawn and made orthogonal at the start
    numbers = m * 8 * (M + K + len(problem.data.normals) + len(problem.data.coins))
    return Simulation(
        identity=identity_of(problem),
        particles=problem.particles,
        time=problem.time,
        rows={name: shape for name, shape in rows.items() if all(shape)} | ({"r": ()} if pulls(problem) else {}),
        label=method,
        snapshots={} if chain else {"weights": (N, K)},
        constants={} if chain else constants,
        without_snapshots=CHAIN_HAS_NO_WEIGHTS if chain else "",
        together=MOST_TOGETHER if chain else 1,
        working_set=BYTES_PER_NUMBER * (vectors + numbers),
        remedy="lower the rates among model.rule_parameters",
        size="particles.dimension" if vectors > numbers else "model.batch_size",
    )


def chosen_method(problem: Problem) -> str:
    """Kind of step: the one that the problem names, or the cheapest that gives what is asked for.

    Raises
    ------
    InputError
        If the chain is asked for where it does not apply.
    """
    settings = problem.particles
    obstacle = _obstacle(problem)
    if settings.method == "auto":
        return "plain" if obstacle or settings.snapshots else "chain"
    if settings.method == "chain" and obstacle:
        raise InputError(f"particles.method = 'chain' with {obstacle}")
    return settings.method


def _obstacle(problem: Problem) -> str:
    """Reason why R and Q are no Markov chain that is known, with the remedy; empty if they are."""
    instead = "set particles.method to 'plain', or"
    vectors, K = len(problem.features) + len(problem.students), len(problem.students)
    for piece in pieces_of(problem):
        prior, kinds = piece.problem.prior, piece.problem.kinds
        if not prior.functions.linear:
            return (
                f"prior.name = '{prior.name}': R and Q are a Markov chain only under priors with linear phi (none, "
                f"l2); {instead} change the prior"
            )
        if piece.problem.data.spectrum is not None:
            return (
                "data.spectrum: overlaps at single eigenvalues, of which there may be as many as coordinates, are no "
                f"part of R and Q; {instead} remove data.spectrum"
            )
        for kind in kinds:
            if min(kind.observed) < 1.0:
                key = f"{'data' if problem.draws is None else kind.what}.observed"
                return (
                    f"{key} = {min(kind.observed):g}: R and Q are no Markov chain if inputs are masked; {instead} set "
                    f"{key} to 1"
                )
    if problem.particles.dimension < vectors + K:
        return (
            f"particles.dimension = {problem.particles.dimension}: what samples add to {K} student(s) beyond the "
            f"{vectors} features and students needs {K} dimensions more; {instead} raise it to {vectors + K}"
        )
    return ""
