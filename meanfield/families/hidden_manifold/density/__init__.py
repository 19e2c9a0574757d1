"""Density of the student's weights along eigenvectors of the features."""

from meanfield.families.hidden_manifold.density.solver import solve_density

__all__ = ["solve_density"]
