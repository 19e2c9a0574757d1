"""Exact flow of all weights, without batches."""

from meanfield.families.alpha_contrastive.population.solver import solve_population

__all__ = ["solve_population"]
