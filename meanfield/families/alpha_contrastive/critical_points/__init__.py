"""Critical points of a filter on the sphere: all of them where they can be enumerated, with stability and branches."""

from meanfield.families.alpha_contrastive.critical_points.branches import continue_critical_points
from meanfield.families.alpha_contrastive.critical_points.solver import find_critical_points

__all__ = ["continue_critical_points", "find_critical_points"]
