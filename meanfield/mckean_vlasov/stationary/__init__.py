"""Stationary states of the McKean-Vlasov equation without time stepping, for any prior and any family."""

from meanfield.mckean_vlasov.stationary.branches import StationaryBranches
from meanfield.mckean_vlasov.stationary.densities import density_arrays
from meanfield.mckean_vlasov.stationary.search import all_states, check_features
from meanfield.mckean_vlasov.stationary.variables import state_variables, without_states

__all__ = [
    "StationaryBranches",
    "all_states",
    "check_features",
    "density_arrays",
    "state_variables",
    "without_states",
]
