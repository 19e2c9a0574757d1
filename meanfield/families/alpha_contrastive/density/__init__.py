"""Density of filters on the circle, in the limit of infinitely many of them."""

from meanfield.families.alpha_contrastive.density.solver import solve_density

__all__ = ["solve_density"]
