"""Stationary states of the McKean-Vlasov equation without time stepping, for any prior and any family."""

from meanfield.mckean_vlasov.stationary.branches import StationaryBranches
from meanfield.mckean_vlasov.stationary.densities import density_arrays
from meanfield.mckean_vlasov.stationary.found import Found, all_states
from meanfield.mckean_vlasov.stationary.missing import Missing, missing_states
from meanfield.mckean_vlasov.stationary.search import check_features, index_of
from meanfield.mckean_vlasov.stationary.variables import without_states

__all__ = [
    "Found",
    "Missing",
    "StationaryBranches",
    "all_states",
    "check_features",
    "density_arrays",
    "index_of",
    "missing_states",
    "without_states",
]
