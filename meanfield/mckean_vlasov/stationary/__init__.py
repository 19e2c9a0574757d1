"""Stationary states of the McKean-Vlasov equation without time stepping, for any prior and any family."""

from meanfield.mckean_vlasov.stationary.gaps import (
    Missing,
    frozen_words,
    missing_states,
    warning_of_branches,
    what_is_missing,
    why_no_density,
)
from meanfield.mckean_vlasov.stationary.point_masses import PointMass, point_masses
from meanfield.mckean_vlasov.stationary.search import check_features, index_of
from meanfield.mckean_vlasov.stationary.states import StationaryBranches, StationaryState, all_states, density_arrays
from meanfield.mckean_vlasov.stationary.variables import without_states

__all__ = [
    "Missing",
    "PointMass",
    "StationaryBranches",
    "StationaryState",
    "all_states",
    "check_features",
    "density_arrays",
    "frozen_words",
    "index_of",
    "missing_states",
    "point_masses",
    "warning_of_branches",
    "what_is_missing",
    "why_no_density",
    "without_states",
]
