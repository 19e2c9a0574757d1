"""Density of the weights of one student of an update rule, under any prior, with a norm that is kept or free."""

from meanfield.families.update_rule.density.solver import solve_density

__all__ = ["solve_density"]
