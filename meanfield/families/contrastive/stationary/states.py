"""All stationary states of a problem as a Dataset."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.integrate import quad

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.problem import Problem, check_no_velocity
from meanfield.families.contrastive.stationary.uninformed import NONE_FOUND, why_none
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.order_parameters import rate
from meanfield.mckean_vlasov.stationary import (
    all_states,
    check_features,
    density_arrays,
    frozen_words,
    missing_states,
    what_is_missing,
)
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver
from meanfield.results.states import stacked
from meanfield.typing import FloatArray


@solver
def find_stationary_states(problem: Problem) -> Solved:
    """All stationary states of the density with noise, with their stability, without a starting guess.

    Parameters
    ----------
    problem : Problem
        With one to three features; with several channels also a linear prior, or two channels and one or two features.
        The start does not matter.

    Returns
    -------
    xarray.Dataset
        Along `state`: `q`, `r`, `g`, `Lambda`, `multiplier`, residuals, `quadrature_error`, `growth_rate`,
        `eigenvalue_real` and `eigenvalue_imag`, `stability`, `P`, and `potential` where there is one, as
        `meanfield.results.schema` describes them.
        States are in the order of q. The attribute `status` is `complete`, or `failed: why` where no state was
        found; `warning` says where some may be missing, and why, and where densities rest that are none; whether the
        indices of all states add up, as they do if none is missing, is the attribute `indices_add_up`. With several
        channels there are `M`, `arrangement` and `copies` instead of `g`, and one state stands for all its images by
        symmetries.

    Raises
    ------
    InputError
        If the problem has more than three features.

    Notes
    -----
    The density is explicit for given q and G, so that few equations remain
    (`meanfield.mckean_vlasov.stationary.equations`); they are solved from many starts until new ones bring
    nothing new. The density has the width of its noise, so that two kinds of states are not looked for: those with
    Lambda = 0, as a saturated activation without noise in its views may have at abs(q) = 1, and those within 1e-8 of
    abs(q) = 1, which hardly any noise leaves under coordinates with two values. All quantities are dimensionless.
    Source: theory.md, section 6.
    """
    check_stationary(problem)
    if problem.model.channels > 1:
        # imported where it is used
        from meanfield.families.contrastive.channels.stationary.states import states_of_channels

        return states_of_channels(problem)
    closure = Closure(problem)
    limit = limit_of(problem, closure)
    equations, states = all_states(limit)
    rows = [state.variables | potential_of(limit, state.q) for state in states]
    u, u_weight = feature_quadrature(limit.coordinates, problem.density.feature_nodes)
    arrays = stacked(rows, "stationary", problem) | density_arrays(equations, states, u, u_weight)
    status = "complete" if states else f"{NONE_FOUND}; at q = 0 {why_none(problem, closure)}"
    missing = missing_states(equations, [state.x for state in states], [state.topological_index for state in states])
    lacking = what_is_missing(equations, missing, partial(why_none, problem, closure))
    said = [equations.effort.warning, lacking, frozen_words(states)]
    attributes = {"indices_add_up": str(not missing).lower()}
    return Solved("stationary", arrays, status, "; ".join(filter(None, said)), attributes=attributes)


def check_stationary(problem: Problem) -> None:
    """Refuse problems whose stationary states cannot be searched for; see `find_stationary_states`."""
    check_problem(problem, Problem)
    check_no_velocity(problem)
    check_features(len(problem.features))
    if problem.model.channels > 1:
        from meanfield.families.contrastive.channels.stationary.states import (
            check_channels,
        )  # imported where it is used

        check_channels(problem)


def potential_of(limit: Limit, q: FloatArray) -> dict[str, float]:
    """Variable `potential` of a state; empty where no Lyapunov function of the dynamics is known.

    For one feature and a linear prior dq/dt = b(q) closes whatever the density is, and V(q) = -int_0^q b falls along
    every solution. With several features b = q (q.g - Lambda/2) - g is a gradient flow, in the metric of the sphere,
    only where Lambda depends on |q| alone.

    The drift gain is a gradient, g = -tau grad <s1 s2>, for every centring: <s_l> vanishes where outputs are centred,
    so that it does not matter whether ybar is differentiated. If Lambda did not depend on q, the equation would be the
    constrained gradient flow of F[P] = -tau <s1 s2>(q) + tau E[Phi(w)] + (Lambda/2) E[log P]. It does: Lambda is an
    average of the same pre-activations. Then dF/dt holds (1/2) grad Lambda . dq/dt E[log P], of either sign, and F is
    no Lyapunov function; none is known that is one, and none is claimed.
    """
    if len(limit.coordinates) > 1 or not limit.prior.functions.linear:
        return {}
    value, _ = quad(
        lambda x: -float(rate(limit.closure, np.array([x]))[0]), 0.0, float(q[0]), epsabs=1e-11, epsrel=1e-11
    )
    return {"potential": float(value)}
