"""Density of the weights of students of an update rule, under any prior, with a norm that is kept or free."""

from meanfield.families.update_rule.density.solver import solve_density
from meanfield.families.update_rule.density.stationary import find_stationary_states

__all__ = ["find_stationary_states", "solve_density"]
