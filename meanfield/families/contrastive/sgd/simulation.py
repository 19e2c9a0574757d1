"""Simulate an ensemble of SGD runs: which method, does it fit, and what the schema asks for."""

from __future__ import annotations

import os
import time

import numpy as np
import xarray as xr

from meanfield.ensembles.arrays import Record
from meanfield.ensembles.collectors import Replicas, Statistics
from meanfield.ensembles.ensemble import Ensemble
from meanfield.errors import InputError
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.memory import check_memory
from meanfield.ingredients.priors import PRIORS, make_prior
from meanfield.problems.file import format_problem
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset

STREAMS = "Philox4x32-10, layout 1"
"""Names what turns a seed into numbers; another one could not go on with a run that this one began."""

KEPT = "results 3"
"""Names what is kept of a replica that is done, likewise."""


def simulate_sgd(problem: Problem, workers: int | None = None, record: Record | None = None) -> xr.Dataset:
    """Replicas of one-pass SGD at finite N.

    Parameters
    ----------
    problem : Problem
        Any number of features, any prior, any start. `particles.method` chooses how steps are taken; the law of the
        results is that of plain SGD in any case.
    workers : int, optional
        Threads; by default one per core. The numbers do not depend on it: replica i draws from streams of its own.
    record : Record, optional
        Where results and states go meanwhile: a `Checkpoint` for runs that shall survive a kill, or whose weights do
        not fit into memory. By default memory.

    Returns
    -------
    xarray.Dataset
        `q`, `r` at every output time, and `weights`, `U` at the snapshots if there are any; with `particles.record =
        'statistics'` their statistics instead; `escape_time` and `winner` if an overlap was named. See
        `meanfield.families.contrastive.results`. Output time t is step round(t N). The attribute `status` is
        `complete`, `interrupted` or `failed: ...`; what was not reached is NaN.

    Raises
    ------
    InputError
        If the method cannot give what is asked for, or the run does not fit into the free memory.

    Notes
    -----
    All quantities are dimensionless. Source: theory.md, sections 1 and 3.
    """
    started = time.perf_counter()
    method = chosen_method(problem)
    snapshots = chosen_snapshots(problem, method)
    workers = workers or os.cpu_count() or 1
    record = record or Record()
    check_memory(problem, method, snapshots, workers, record.in_memory)
    statistics = problem.particles.record == "statistics"
    with record.open(f"{STREAMS}\n{KEPT}\n{method}\n{format_problem(problem)}"):
        collector = Statistics(problem) if statistics else Replicas(problem, snapshots, record)
        ensemble = Ensemble(problem, method, collector, record)
        status = ensemble.run(workers)
    arrays = {"time": problem.time.outputs_at} | collector.arrays()
    if problem.particles.escape_overlap is not None:
        steps = ensemble.escape
        arrays["escape_time"] = np.where(steps < 0, np.nan, steps / problem.particles.dimension)
        arrays["winner"] = np.asarray(ensemble.winner)
    origin = provenance(time.perf_counter() - started, seed=problem.particles.seed, steps=method)
    return build_dataset("ensemble" if statistics else "particles", problem, arrays, status, origin)


def check_simulation(problem: Problem) -> None:
    """Refuse problems for which no way to take steps gives what is asked for.

    Raises
    ------
    InputError
    """
    chosen_snapshots(problem, chosen_method(problem))


def chosen_method(problem: Problem) -> str:
    """How steps are taken: what the problem says, or the cheapest way to give what is asked for.

    Raises
    ------
    InputError
        If the chain is asked for under a prior that does not close it, or for weights.
    """
    settings, linear = problem.particles, problem.prior.functions.linear
    if settings.method == "auto":
        return "chain" if linear and not settings.snapshots else "projected"
    if settings.method == "chain" and not linear:
        closing = ", ".join(name for name in PRIORS if make_prior(name).linear)
        raise InputError(
            f"particles.method = 'chain' with prior.name = '{problem.prior.name}': q is a Markov chain only under "
            f"priors with linear phi ({closing}); set particles.method to 'projected', or change the prior"
        )
    return settings.method


def chosen_snapshots(problem: Problem, method: str) -> list[int]:
    """Indices of the output times at which weights are kept: none where nobody can or wants to.

    Raises
    ------
    InputError
        If weights are asked for that the method does not have, or statistics do not keep.
    """
    settings = problem.particles
    reason = None
    if method == "chain":
        reason = "particles.method = 'chain' follows q alone and has no weights; set it to 'projected'"
    elif settings.record == "statistics":
        reason = "particles.record = 'statistics' keeps no weights; set it to 'replicas'"
    if reason is None:
        return problem.snapshot_index
    if settings.snapshots:
        raise InputError(f"particles.snapshots = {list(settings.snapshots)}: {reason}, or remove particles.snapshots")
    return []
