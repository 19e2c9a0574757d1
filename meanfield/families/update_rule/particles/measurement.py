"""Order parameters and observables of students that somebody else trained (update_rules.md, sections 1 and 14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from meanfield.ensembles.own_runs import check_lengths
from meanfield.families.update_rule.in_time import pieces_of_samples
from meanfield.families.update_rule.particles.observables import Observables
from meanfield.families.update_rule.problem import Problem, pulls
from meanfield.families.update_rule.system import system_of
from meanfield.problems.problem_keys import at_time
from meanfield.typing import FloatArray


def measure_of(problem: Problem) -> Callable[[FloatArray, Mapping[str, FloatArray]], dict[str, Any]]:
    """What follows from runs; see `meanfield.problems.family.Family.measure`."""
    pieces = pieces_of_samples(problem) if problem.measured else []
    observables = [Observables(piece.problem, system_of(piece.problem)) for piece in pieces]
    return partial(_measured, problem, observables, [piece.start for piece in pieces[1:]])


def _measured(
    problem: Problem,
    observables: Sequence[Observables],
    begins: Sequence[float],
    times: FloatArray,
    given: Mapping[str, FloatArray],
) -> dict[str, Any]:
    """Overlaps and r from weights; observables, which are others from some times on, from overlaps and the rest."""
    M = len(problem.features)
    found: dict[str, Any] = dict(problem.names)
    if "U" in given:
        check_lengths("U", np.mean(given["U"] ** 2, axis=1))
    if "weights" in given and ("U" in given or not M):
        G = _gram(given)
        found |= {"R": G[..., M:, :M], "Q": G[..., M:, M:]} if M else {"Q": G}
    if "weights" in given and pulls(problem):
        w = given["weights"][..., 0]
        forces = [at_time(problem, time).prior.force(w[:, at]) for at, time in enumerate(times.tolist())]
        found["r"] = np.mean(w * np.stack(forces, axis=1), axis=2)
    weighted = None
    if problem.data.spectrum is not None:
        if "rho_of_coordinate" not in given or "Q" not in found:
            return found  # averages take overlaps at single variances
        weighted = _gram(given, given["rho_of_coordinate"])
        found |= {"R_noise": weighted[..., M:, :M]} if M else {}
        found |= {"Q_noise": weighted[..., M:, M:]}
    held = {**found, **given}
    if problem.measured and {"Q", *["R"] * bool(M), *["v"] * bool(problem.side)} <= held.keys():
        empty = np.empty((len(held["Q"]), len(times), len(problem.students), 0))
        R, Q, v = held.get("R", empty), held["Q"], held.get("v", empty[:, :, 0])
        rows = []
        for at, number in enumerate(np.searchsorted(begins, times, side="right").tolist()):
            of_noise = None if weighted is None else weighted[:, at]
            rows.append(observables[number].at(float(times[at]), R[:, at], Q[:, at], v[:, at], of_noise))
        found["observables"] = np.stack(rows, axis=1)
    return found


def _gram(given: Mapping[str, FloatArray], variance: FloatArray | None = None) -> FloatArray:
    """Gram matrices of features and students over N, shape (replica, T, vectors, vectors), plain or weighted."""
    w = given["weights"]
    U = given.get("U", np.empty((len(w), w.shape[2], 0)))
    Z = np.concatenate([np.repeat(U[:, None], w.shape[1], axis=1), w], axis=3)
    return np.asarray((Z if variance is None else Z * variance[:, None, :, None]).swapaxes(2, 3) @ Z / w.shape[2])
