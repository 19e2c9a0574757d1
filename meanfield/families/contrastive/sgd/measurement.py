"""Order parameters of weights that somebody else trained (theory.md, section 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.problem import Problem
from meanfield.problems.problem_keys import at_time
from meanfield.typing import FloatArray

LENGTH_ERROR = 0.02
"""Largest error of |w|^2/N of weights that count as normalised: some measure before a step is complete."""


def measure_of(problem: Problem) -> Callable[[FloatArray, Mapping[str, FloatArray]], dict[str, Any]]:
    """What follows from runs; see `meanfield.problems.family.Family.measure`."""
    return partial(_measured, problem)


def _measured(problem: Problem, times: FloatArray, given: Mapping[str, FloatArray]) -> dict[str, Any]:
    """Overlaps from weights and features; r from weights, or from their length if phi is linear."""
    several = problem.model.channels > 1
    found: dict[str, Any] = {}
    priors = [at_time(problem, time).prior for time in times.tolist()]
    if "weights" in given:
        w = given["weights"] if several else given["weights"][..., None]
        _check_length("weights", np.einsum("rtnk,rtnk->rtk", w, w) / w.shape[2], times)
        if "U" in given:
            U = given["U"]
            _check_length("U", np.einsum("rnf,rnf->rf", U, U)[:, None] / U.shape[1], times, 0.5)
            q = np.einsum("rtnk,rnf->rtfk", w, U) / w.shape[2]
            found["q"] = q if several else q[..., 0]
        if several:
            found["M"] = np.einsum("rtnk,rtnj->rtkj", w, w) / w.shape[2]
        pulls = np.stack([prior.force(w[:, at]) for at, prior in enumerate(priors)], axis=1)
        r = np.einsum("rtnk,rtnk->rtk", w, pulls) / w.shape[2]
        found["r"] = r if several else r[..., 0]
    elif all(prior.functions.linear for prior in priors):
        runs = len(next(iter(given.values())))
        r = np.array([float(prior.force(np.ones(1))[0]) for prior in priors])
        found["r"] = np.broadcast_to(r[:, None] if several else r, (runs, len(r), *[problem.model.channels] * several))
    return found


def _check_length(name: str, squares: FloatArray, times: FloatArray, allowed: float = LENGTH_ERROR) -> None:
    """Refuse vectors whose squared length is not N, at times where they are known."""
    wrong = np.argwhere(np.abs(squares - 1.0) > allowed)
    if len(wrong):
        replica, at, _ = wrong[0].tolist()
        when = f" at t = {times[at]:g}" if name == "weights" else ""
        raise InputError(
            f"{name}: have |.|^2/N = {squares[tuple(wrong[0])]:.4g} in replica {replica}{when}, and 1 here, where "
            "outputs are w.x/sqrt(N); multiply weights of length 1 by sqrt(N), and normalise them after each step"
        )
