"""Fixed points of the order parameters of hidden-manifold problems: plateaus, learnt states, and their stability."""

from meanfield.families.hidden_manifold.fixed_points.points import find_fixed_points

__all__ = ["find_fixed_points"]
