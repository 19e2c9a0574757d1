"""Order parameters of weights that somebody else trained (theory.md, section 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from meanfield.ensembles.own_runs import check_lengths
from meanfield.families.contrastive.problem import Problem
from meanfield.problems.in_time import InTime
from meanfield.typing import FloatArray


def measure_of(problem: Problem) -> Callable[[FloatArray, Mapping[str, FloatArray]], dict[str, Any]]:
    """What follows from runs; see `meanfield.problems.family.Family.measure`."""
    return partial(_measured, problem)


def _measured(problem: Problem, times: FloatArray, given: Mapping[str, FloatArray]) -> dict[str, Any]:
    """Overlaps from weights and features; r from weights, or from their length if phi is linear."""
    several = problem.model.channels > 1
    found: dict[str, Any] = {}
    in_time = InTime(problem)  # with a learning rate that may vanish
    priors = [in_time(time).prior for time in times.tolist()]
    if "weights" in given:
        w = given["weights"] if several else given["weights"][..., None]
        check_lengths("weights", np.einsum("rtnk,rtnk->rtk", w, w) / w.shape[2], times)
        if "U" in given:
            U = given["U"]
            check_lengths("U", np.einsum("rnf,rnf->rf", U, U) / U.shape[1])
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
