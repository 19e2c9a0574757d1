"""Reasons why a problem has no stationary state, or a list of them lacks some, with numbers and remedies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov.condensation import critical_diffusion, held_norm
from meanfield.mckean_vlasov.stationary import Missing

NONE_FOUND = "failed: no stationary state with noise was found below |q| = 1 - 1e-8"
"""Beginning of the attribute `status` of a result without states: it says where states are looked for."""


def noise_ratio(problem: Problem, closure: Closure) -> float:
    """Lambda/Lambda_c at q = 0, where there is no state below 1; infinite for priors that hold every norm."""
    critical = critical_diffusion(problem.prior, problem.model.learning_rate)
    _, diffusion = closure(np.zeros(len(problem.features)))
    return diffusion / critical if critical > 0 else np.inf


def why_none(problem: Problem, closure: Closure) -> str:
    """Clause that says why no density with E[w^2] = 1 is stationary at q = 0, and what to change.

    Notes
    -----
    Lambda grows like tau^2/m, and Lambda_c like tau strength. Source: theory.md, section 6.
    """
    ratio = noise_ratio(problem, closure)
    tau = problem.model.learning_rate
    if ratio >= 1:
        return "the noise would hold the norm; look where a long run of the density or of SGD goes"
    if ratio == 0:
        return "there is no noise, Lambda = 0; lower model.batch_size"
    critical = critical_diffusion(problem.prior, tau)
    held = held_norm(problem.prior, tau, ratio * critical)
    return (
        f"the prior outweighs the noise: Lambda = {ratio * critical:.3g}, below Lambda_c = {critical:.3g}, holds "
        f"{held:.2g} of the norm E[w^2] = 1, and the rest escapes to ever fewer and larger weights; lower "
        f"prior.strength below {ratio * problem.prior.strength:.3g}, or raise model.learning_rate / model.batch_size "
        f"by a factor of {1 / ratio:.3g}"
    )


def what_is_missing(problem: Problem, closure: Closure, missing: Sequence[Missing]) -> str:
    """Sentences about what a list of states lacks; empty if that is nothing."""
    return "; ".join(_sentence(problem, closure, each) for each in missing)


def _sentence(problem: Problem, closure: Closure, missing: Missing) -> str:
    what = "a state that attracts" if missing.attracts else "a border between states that attract"
    start = f"{what} is missing {missing.where}"
    if missing.empty is None:
        return f"{start}: the search did not find it; see where a long run of the density that starts there goes"
    if missing.empty.any():
        place = ", ".join(f"{x:.3g}" for x in missing.empty)
        return f"{start}: at q = {place} no density has the norm 1; there the norm condenses, which is no state"
    return f"{start}: no density has the norm 1 at q = 0, where {why_none(problem, closure)}"
