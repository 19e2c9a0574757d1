"""Stationary states of the McKean-Vlasov equation without time stepping, for any prior and any family."""

from meanfield.mckean_vlasov.stationary.search import check_features, index_of
from meanfield.mckean_vlasov.stationary.states import (
    Missing,
    StationaryBranches,
    StationaryState,
    all_states,
    density_arrays,
    missing_states,
)
from meanfield.mckean_vlasov.stationary.variables import without_states

__all__ = [
    "Missing",
    "StationaryBranches",
    "StationaryState",
    "all_states",
    "check_features",
    "density_arrays",
    "index_of",
    "missing_states",
    "without_states",
]
