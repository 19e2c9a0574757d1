"""Simulation of contrastive SGD: choice of the kind of step, its memory, and results that are kept."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from meanfield.ensembles.arrays import Record, identity_of
from meanfield.ensembles.averages import check_rates
from meanfield.ensembles.ensemble import run_ensemble
from meanfield.ensembles.simulation import BYTES_PER_NUMBER, Simulation
from meanfield.errors import InputError
from meanfield.families.contrastive.initial_state import check_law
from meanfield.families.contrastive.problem import FACTORS, Problem
from meanfield.families.contrastive.sgd.plain import DRAWN_AT_ONCE
from meanfield.families.contrastive.sgd.steppers import prepare_steppers
from meanfield.families.contrastive.sgd.training import is_noisy
from meanfield.families.contrastive.variables import AVERAGES_OF_CHANNELS
from meanfield.ingredients.priors import PRIORS, make_prior
from meanfield.mckean_vlasov.drive import reference_of
from meanfield.mckean_vlasov.weight_law import check_sampled
from meanfield.problems.base import check_problem
from meanfield.problems.in_time import pieces_in_steps
from meanfield.problems.phases import pieces_of
from meanfield.results.solved import Solved, solver

CHAIN_HAS_NO_WEIGHTS = "particles.method = 'chain' follows q alone and has no weights; set it to 'projected'"
"""Reason why a chain has no snapshots, with the remedy."""

MOST_TOGETHER = 256
"""Largest number of replicas of a chain that are advanced by one call."""


@solver
def simulate_sgd(problem: Problem, workers: int | None = None, record: Record | None = None) -> Solved:
    """Replicas of one-pass SGD at finite N.

    Parameters
    ----------
    problem : Problem
        Any number of features and channels, any prior, any start. `particles.method` chooses how steps are taken; the
        law of the results is that of plain SGD in any case.
    workers, record : optional
        See `meanfield.simulate_sgd`.

    Returns
    -------
    xarray.Dataset
        `q`, `r`, and with several channels `M` at every output time, with `model.average_rate` also `q_average`,
        `overlap_average` and `norm_average`, of several channels `M_average`, and `weights`, `U` at the snapshots if
        there are any; with `particles.record = 'statistics'` their statistics instead; `escape_time` and `winner` if
        an overlap was named. See `meanfield.families.contrastive.results`. Output time t is step round(t N). The
        attribute `status` is `complete`, `interrupted` or `failed: ...`; what was not reached is NaN.

    Raises
    ------
    InputError
        If the method cannot give what is asked for, a step of the prior is longer than a weight, or the run does not
        fit into the free memory or into `particles.longest_days`.

    Notes
    -----
    All quantities are dimensionless. Source: theory.md, sections 1 and 3; several_channels.md, sections 1 and 4.
    """
    simulation = simulation_of(problem)
    prepare = partial(prepare_steppers, problem, simulation.label)
    solved = run_ensemble(simulation, prepare, workers, record)
    if problem.model.channels > 1:
        return replace(solved, arrays=_with_declared_statistics(solved.arrays))
    arrays = dict(solved.arrays)
    escape, winner = arrays.pop("escape"), arrays.pop("winner")
    if problem.particles.escape_overlap is not None:
        arrays["escape_time"] = np.where(escape < 0, np.nan, escape / problem.particles.dimension)
        arrays["winner"] = winner
    return replace(solved, arrays=arrays)


def simulation_of(problem: Problem) -> Simulation:
    """Simulation that a problem describes, with the kind of step that it takes.

    Raises
    ------
    InputError
        If the method cannot give what is asked for, or a step of the prior is longer than a weight.
    """
    check_problem(problem, Problem)
    pieces = pieces_in_steps(problem, besides=FACTORS)
    for piece in pieces:
        reference = reference_of(piece.problem, FACTORS)
        reference.prior.check_pull(problem.particles.dimension, reference.model.learning_rate)
    check_escape(problem)
    check_start(problem)
    check_rates(problem.model, problem.particles.dimension, "raise particles.dimension", "model")
    method, N, d1 = chosen_method(problem), problem.particles.dimension, len(problem.features)
    chain, d2 = method == "chain", problem.model.channels
    several = d2 > 1
    rows = {"q": (d1, d2), "M": (d2, d2), "r": (d2,)} if several else {"q": (d1,), "r": ()}
    if problem.model.average_rate is not None:
        averages = dict(zip(AVERAGES_OF_CHANNELS, ((d1, d2), (d2, d2), (d2, d2)), strict=True))
        rows |= averages if several else {"q_average": (d1,), "overlap_average": (), "norm_average": ()}
    m = max(piece.problem.model.batch_size for piece in pieces)
    working_set = _working_set(problem, method, m)
    by_batch = working_set > 2 * _working_set(problem, method, min(m, 2))  # most of it
    return Simulation(
        identity=identity_of(problem),
        particles=problem.particles,
        time=problem.time,
        rows=rows,
        label=method,
        snapshots={} if chain else {"weights": (N, d2) if several else (N,)},
        constants={} if chain else {"U": (N, d1)},
        without_snapshots=CHAIN_HAS_NO_WEIGHTS if chain else "",
        marks=() if several else ("escape", "winner"),
        quantiles=("q", "M") if several else ("q",),
        together=MOST_TOGETHER if chain else 1,
        working_set=working_set,
        remedy="lower model.learning_rate, or prior.strength if it is large",
        size="model.batch_size" if by_batch else "particles.dimension",
    )


def check_start(problem: Problem) -> None:
    """Refuse a density from which weights cannot be drawn, because it is known at nodes in u alone, or not at all."""
    if problem.initial is None:
        return
    if problem.initial.atoms.weights is None and chosen_method(problem) != "chain":
        check_law(problem, "SGD")
    check_sampled(problem.initial.atoms.law, problem.coordinates, problem.initial.path)


def check_escape(problem: Problem) -> None:
    """Refuse the escape of several channels, each of which has one of its own."""
    if problem.model.channels > 1 and problem.particles.escape_overlap is not None:
        raise InputError(
            f"particles.escape_overlap = {problem.particles.escape_overlap:g} with model.channels = "
            f"{problem.model.channels}: the time of escape is known for a single channel; remove it, and read q at the "
            "output times"
        )


def chosen_method(problem: Problem) -> str:
    """Kind of step: the one that the problem names, or the cheapest that gives what is asked for.

    Raises
    ------
    InputError
        If the chain is asked for under a prior that does not close it, or for weights.
    """
    settings, priors = problem.particles, [piece.problem.prior for piece in pieces_of(problem)]
    other = next((prior.name for prior in priors if not prior.functions.linear), None)
    if moving := problem.model.remembers:
        if settings.method in ("projected", "chain"):
            raise InputError(
                f"particles.method = '{settings.method}' with model.{moving}: only plain steps remember those before; "
                "set particles.method to 'plain', or remove it"
            )
        return "plain"
    average = problem.model.average_rate
    if settings.method == "auto":
        return "chain" if other is None and not settings.snapshots and average is None else "projected"
    if settings.method == "chain" and average is not None:
        raise InputError(
            f"particles.method = 'chain' with model.average_rate = {average:g}: the chain follows q alone and has no "
            "weights to average; set particles.method to 'projected', or remove model.average_rate"
        )
    if settings.method == "chain" and other is not None:
        closing = ", ".join(name for name in PRIORS if make_prior(name).linear)
        raise InputError(
            f"particles.method = 'chain' with prior.name = '{other}': q is a Markov chain only under "
            f"priors with linear phi ({closing}); set particles.method to 'projected', or change the prior"
        )
    return settings.method


def _working_set(problem: Problem, method: str, m: int) -> int:
    """Bytes that one worker needs to advance one block with batches of m samples."""
    N, d1, d2 = problem.particles.dimension, len(problem.features), problem.model.channels
    several = d2 > 1
    # what is drawn, and what is made of it
    samples = m * (8 * d1 + 15 * d2 if several else 5 * d1 + 10) * BYTES_PER_NUMBER
    if method == "chain":
        return samples
    start = (3 * d1 + (6 * d2 if several else 3)) * N * BYTES_PER_NUMBER  # features and weights made orthogonal
    averages = 0 if problem.model.average_rate is None else 3 * d2 * N * BYTES_PER_NUMBER
    if method == "projected":
        return samples + averages + max(start, (d1 + 5 * d2) * N * BYTES_PER_NUMBER)
    views = (2 if several or is_noisy(problem) else 1) * m
    hidden = 2 * max(DRAWN_AT_ONCE, m * d1) * BYTES_PER_NUMBER
    weights = (4 if problem.model.shares(N)[1] > 0 else 3) * d2
    return samples + hidden + averages + max(start, (d1 + weights + views) * N * BYTES_PER_NUMBER)


def _with_declared_statistics(arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays of an ensemble with the dims of its results; those of single replicas stay as they are.

    Covariances of q have the dims (time, feature, feature_, channel, channel_). Of other overlaps and r only variances
    are kept.
    """
    found = dict(arrays)
    for name in ("q", "q_average"):
        if f"{name}_covariance" in found:
            found[f"{name}_covariance"] = found[f"{name}_covariance"].swapaxes(2, 3)
    if "r_covariance" in found:
        found["r_variance"] = np.einsum("tkk->tk", found.pop("r_covariance"))
    for name in ("M", "overlap_average", "M_average"):
        if f"{name}_covariance" in found:
            found[f"{name}_variance"] = np.einsum("tkjkj->tkj", found.pop(f"{name}_covariance"))
    return found
