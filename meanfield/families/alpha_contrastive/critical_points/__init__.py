"""Critical points of a filter on the sphere: all of them where they can be enumerated, each with its stability."""

from meanfield.families.alpha_contrastive.critical_points.solver import find_critical_points

__all__ = ["find_critical_points"]
