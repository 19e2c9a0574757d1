"""All stationary states of a problem as a Dataset."""

from __future__ import annotations

import time

import numpy as np
import xarray as xr

from meanfield.families.contrastive.closures import Closure
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.stationary.densities import cell_averages, cell_edges
from meanfield.families.contrastive.stationary.search import check_features, resolved
from meanfield.families.contrastive.stationary.summary import stacked, summary
from meanfield.mckean_vlasov.feature_nodes import feature_quadrature
from meanfield.process.progress import progress_bar
from meanfield.results.provenance import provenance
from meanfield.results.schema import build_dataset

NO_STATE = (
    "failed: no stationary state was found; a prior that outweighs the noise lets the norm E[w^2] = 1 escape to ever "
    "fewer and larger weights; lower prior.strength, or raise model.learning_rate / model.batch_size"
)


def find_stationary_states(problem: Problem) -> xr.Dataset:
    """All stationary states of the density, with their stability, from no hint.

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
        States are in the order of q. The attribute `status` is `complete`, or `failed: ...` where no state was found.

    Raises
    ------
    InputError
        If the problem has more than three features.

    Notes ----- The density is explicit for given q and G, so that few equations remain
    (`meanfield.families.contrastive.stationary.equations`); they are solved from many starts until new ones bring
    nothing new. All quantities are dimensionless. Source: theory.md, section 6.
    """
    check_features(problem)
    started = time.perf_counter()
    with progress_bar(1, "stationary states", "search") as bar:
        equations, overlaps = resolved(problem, Closure(problem))
        bar.update()
    states = [state for state in map(equations.state, overlaps) if state is not None]
    u, u_weight = feature_quadrature([f.coordinate for f in problem.features], problem.density.feature_nodes)
    edges = cell_edges(equations, states, u)
    P = [cell_averages(equations, state, u, edges) for state in states]
    arrays = stacked([summary(equations, state) for state in states], len(problem.features)) | {
        "P": np.array(P).reshape(len(states), len(u), len(edges) - 1),
        "u": u,
        "u_weight": u_weight,
        "w": 0.5 * (edges[1:] + edges[:-1]),
        "w_edge": edges,
    }
    status = "complete" if states else NO_STATE
    return build_dataset("stationary", problem, arrays, status, provenance(time.perf_counter() - started))
