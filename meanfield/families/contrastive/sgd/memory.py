"""How much memory an ensemble takes, said before it takes any."""

from __future__ import annotations

import math

import numpy as np
import psutil

from meanfield.ensembles.collectors import DTYPES
from meanfield.ensembles.ensemble import blocks_of
from meanfield.ensembles.statistics import BINS, EXACT
from meanfield.errors import InputError
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.sgd.steppers import DRAWN_AT_ONCE

SHARE = 0.8
"""Part of the free memory that a run may take; other programs need some, too."""

NUMBER = 8
"""Bytes."""


def predicted_memory(problem: Problem, method: str, snapshots: list[int], workers: int, in_memory: bool) -> int:
    """Bytes that a run takes at its peak, besides what Python and its packages take.

    Parameters
    ----------
    problem : Problem
    method : str
        `plain`, `projected` or `chain`.
    snapshots : list of int
        Output times at which weights are kept.
    workers : int
    in_memory : bool
        Whether what is kept is in memory, and not in files.
    """
    settings, outputs, d1 = problem.particles, problem.time.outputs, len(problem.features)
    N, replicas = settings.dimension, settings.replicas
    rows = outputs * (d1 + 1) * NUMBER
    kept = replicas * NUMBER
    if settings.record == "statistics":
        kept += (3 * min(replicas, EXACT) + 4 * BINS) * rows  # quantiles take copies
    else:
        weights = len(snapshots) and (len(snapshots) + d1) * N * np.dtype(DTYPES[settings.snapshot_precision]).itemsize
        kept += replicas * (rows + weights) if in_memory else 0
    block = len(blocks_of(method, replicas)[0])
    running = min(workers, math.ceil(replicas / block))
    return kept + running * (block * rows + _working_set(problem, method))


def _working_set(problem: Problem, method: str) -> int:
    """Bytes that one worker needs to advance one block."""
    N, d1, m = problem.particles.dimension, len(problem.features), problem.model.batch_size
    samples = m * (5 * d1 + 10) * NUMBER  # what is drawn, and what is made of it
    if method == "chain":
        return samples
    start = (3 * d1 + 3) * N * NUMBER  # features before, while and after they are made orthogonal
    if method == "projected":
        return samples + max(start, (d1 + 5) * N * NUMBER)
    views = (2 if problem.noise_covariance.any() else 1) * m
    hidden = 2 * max(DRAWN_AT_ONCE, m * d1) * NUMBER
    return samples + hidden + max(start, (d1 + 3 + views) * N * NUMBER)


def check_memory(problem: Problem, method: str, snapshots: list[int], workers: int, in_memory: bool) -> None:
    """Refuse a run that does not fit into the memory that is free.

    Raises
    ------
    InputError
        With the keys to change.
    """
    needed = predicted_memory(problem, method, snapshots, workers, in_memory)
    free = psutil.virtual_memory().available
    if needed <= SHARE * free:
        return
    remedies = ["lower particles.dimension or particles.replicas"]
    if snapshots and in_memory:
        remedies.append("name fewer particles.snapshots, or save to a file with solvers/simulate_sgd.py")
    elif problem.particles.record == "replicas" and in_memory:
        remedies.append("set particles.record = 'statistics'")
    if method != "chain":
        remedies.append(f"use fewer workers than {workers}")
    raise InputError(
        f"particles: {problem.particles.replicas} replicas with N = {problem.particles.dimension} ('{method}') take "
        f"{needed / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free; {'; '.join(remedies)}"
    )
