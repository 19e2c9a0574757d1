"""Stationary states of the density without time stepping, for any prior, and their stability."""

from meanfield.families.contrastive.stationary.branches import continue_stationary_states
from meanfield.families.contrastive.stationary.critical import critical_values
from meanfield.families.contrastive.stationary.states import find_stationary_states
from meanfield.families.contrastive.stationary.uninformed import growth_rate_at_zero

__all__ = [
    "continue_stationary_states",
    "critical_values",
    "find_stationary_states",
    "growth_rate_at_zero",
]
