"""All stationary states of a problem as a Dataset."""

from __future__ import annotations

import time

import xarray as xr

from meanfield.families.contrastive.channels.start import check_one_channel
from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.limit import limit_of
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.stationary.absence import NONE_FOUND, why_none
from meanfield.families.contrastive.stationary.potential import potential_of
from meanfield.mckean_vlasov.feature_nodes import feature_quadrature
from meanfield.mckean_vlasov.stationary import (
    all_states,
    check_features,
    density_arrays,
    without_states,
)
from meanfield.problems.base import check_problem
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset
from meanfield.results.states import stacked


def find_stationary_states(problem: Problem) -> xr.Dataset:
    """All stationary states of the density with noise, with their stability, without a starting guess.

    Parameters
    ----------
    problem : Problem
        With one to three features; the start does not matter.

    Returns
    -------
    xarray.Dataset
        Along `state`: `q`, `r`, `g`, `Lambda`, `multiplier`, residuals, `quadrature_error`, `growth_rate`,
        `eigenvalue_real` and `eigenvalue_imag`, `stability`, `P`, and `potential` where there is one, as
        `meanfield.results.schema` describes them.
        States are in the order of q. The attribute `status` is `complete`, or `failed: why` where no state was
        found; `warning` says where some may be missing, and why.

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
    check_problem(problem, Problem)
    check_one_channel(problem, "stationary states")
    started = time.perf_counter()
    closure = Closure(problem)
    limit = limit_of(problem, closure)
    equations, states = all_states(limit)
    rows = [state.variables | potential_of(limit, state.q) for state in states]
    u, u_weight = feature_quadrature(limit.coordinates, problem.density.feature_nodes)
    arrays = stacked(rows, without_states(len(problem.features))) | density_arrays(equations, states, u, u_weight)
    status = "complete" if states else f"{NONE_FOUND}; at q = 0 {why_none(problem, closure)}"
    record = provenance(time.perf_counter() - started)
    return build_dataset("stationary", problem, arrays, status, record, equations.effort.warning)


def check_stationary(problem: Problem) -> None:
    """Refuse problems whose stationary states cannot be searched for; see `find_stationary_states`."""
    check_one_channel(problem, "stationary states")
    check_features(len(problem.features))
