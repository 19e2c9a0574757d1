"""State without information, q = 0, under any prior: its existence or why there is none, and growth of overlaps.

At q = 0 the drift gain vanishes, and the density P(w) = exp((2/Lambda)(G w^2/2 - tau Phi(w)))/Z does not know of u. Let
L h = (D/P) d(P dh/dw)/dw with D = Lambda/2 be the generator at fixed coefficients, as in
`meanfield.mckean_vlasov.stationary.line`. Along an eigenvector of -dg/dq at q = 0, with eigenvalue gamma, a
small overlap q changes the drift by gamma u q, and the density by P u h(w) with

    dh/dt = L h - (gamma q/D) L w,        q = E[w h].

What does not depend on u leaves q alone, because E[u] = 0: neither G nor Lambda takes part. For h that grows like
exp(lambda t)

    1 = -(gamma/D) E[w (lambda - L)^-1 L w] = (gamma/D) sum_n a_n^2 k_n/(lambda + k_n),

where L has the eigenvalues -k_n and w has the components a_n along its eigenfunctions. For gamma > 0 the right side
falls from infinity to 0 beyond lambda = -k_1: there is one such lambda, it is real, and it is positive if and only if

    gamma Var(w) > Lambda/2.

Here E[w^2] = 1 by the norm, and E[w] = 0 for every even potential: such a prior moves no threshold, wherever the state
exists. It slows down what happens there: |lambda| <= |gamma - Lambda/2|, since sum a_n^2 k_n = D. A potential that is
not even has Var(w) < 1 and raises the threshold. Where the prior outweighs the noise there is no state: with an l1 of
strength above Lambda/(sqrt(2) tau) the norm escapes to ever fewer and larger weights.
"""

from __future__ import annotations

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.learnability.learnability import origin
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.problem import Problem
from meanfield.mckean_vlasov import condensation
from meanfield.mckean_vlasov.condensation import critical_diffusion
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.search import check_features
from meanfield.mckean_vlasov.stationary.stability import stability
from meanfield.mckean_vlasov.stationary.state import State
from meanfield.problems.base import check_problem

NONE_FOUND = "failed: no stationary state with noise was found below |q| = 1 - 1e-8"
"""Beginning of the attribute `status` of a result without states: it says where states are looked for."""


def growth_rate_at_zero(problem: Problem) -> float:
    """Largest growth rate of small perturbations of the state with q = 0.

    Parameters
    ----------
    problem : Problem
        With any prior and one to three features; the start does not matter.

    Returns
    -------
    float
        Positive where a feature is learnable. Under a linear prior it is that of
        `meanfield.families.contrastive.order_parameters`' `learnability`, or -Lambda/2, at which perturbations decay
        that leave q alone, where that is larger.

    Raises
    ------
    InputError
        If q = 0 is not stationary, no density of unit norm is, or there are more than three features.

    Notes
    -----
    Source: theory.md, sections 6 and 7, and the module's text. A run that starts from Gaussian weights relaxes to the
    state's density first, and grows at this rate from then on.
    """
    check_problem(problem, Problem)
    closure = Closure(problem)
    origin(closure)  # refuses where q = 0 is not stationary
    equations, state = _state(problem, closure)
    return stability(equations, state).growth_rate


def learning_margin(problem: Problem) -> float:
    """Gamma Var(w) - Lambda/2 at q = 0, which has the sign of the growth rate, and is that rate for a linear prior.

    Parameters
    ----------
    problem : Problem
        With any prior; with one to three features if it is not linear.

    Raises
    ------
    InputError
        If q = 0 is not stationary, or no density of unit norm is.

    Notes
    -----
    It takes no spectrum. Source: the module's text.
    """
    closure = Closure(problem)
    at = origin(closure)
    largest = float(at.modes()[0].max())
    return largest * _variance(problem, closure) - 0.5 * at.diffusion


def _variance(problem: Problem, closure: Closure) -> float:
    """Var(w) in the state; E[w^2] = 1."""
    if problem.prior.functions.linear:
        return 1.0
    _, state = _state(problem, closure)
    return 1.0 - float(state.tilts.weight @ state.moments[:, 0]) ** 2


def _state(problem: Problem, closure: Closure) -> tuple[StationaryEquations, State]:
    check_features(len(problem.features))
    equations = StationaryEquations(limit_of(problem, closure))
    state = equations.state(np.zeros(len(problem.features)))
    if state is None:
        raise InputError(
            f"prior.strength = {problem.prior.strength:g}: no stationary density with q = 0 and E[w^2] = 1 was found; "
            f"{why_none(problem, closure)}"
        )
    return equations, state


def noise_ratio(problem: Problem, closure: Closure) -> float:
    """Lambda/Lambda_c at q = 0, where there is no state below 1; infinite for priors that hold every norm."""
    critical = critical_diffusion(problem.prior, problem.model.rate)
    _, diffusion = closure(np.zeros(len(problem.features)))
    return diffusion / critical if critical > 0 else np.inf


def why_none(problem: Problem, closure: Closure) -> str:
    """Clause that says why no density with E[w^2] = 1 is stationary at q = 0, and what to change.

    Notes
    -----
    Lambda grows like tau^2/m, and Lambda_c like tau strength. Source: theory.md, section 6.
    """
    ratio = noise_ratio(problem, closure)
    raised = f"raise model.learning_rate / model.batch_size by a factor of {1 / ratio:.3g}" if ratio > 0 else ""
    _, diffusion = closure(np.zeros(len(problem.features)))
    return condensation.why_none(problem.prior, problem.model.rate, diffusion, raised or "lower model.batch_size")
