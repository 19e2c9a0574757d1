"""Stationary states of the density without time stepping, for any prior: where they are, and which are stable."""

from meanfield.stationary.branches import continue_stationary_states
from meanfield.stationary.description import describe
from meanfield.stationary.states import find_stationary_states

__all__ = ["continue_stationary_states", "describe", "find_stationary_states"]
