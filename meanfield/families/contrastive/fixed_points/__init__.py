"""Fixed points of the reduced ODEs: all of them, their branches, regions of attraction, and phase portraits."""

from meanfield.families.contrastive.fixed_points.attraction import attraction_intervals, attraction_shares, attractor_of
from meanfield.families.contrastive.fixed_points.branches import continue_fixed_points, stationary_similarity
from meanfield.families.contrastive.fixed_points.points import FixedPoints, find_fixed_points
from meanfield.families.contrastive.fixed_points.portrait import Portrait, phase_portrait, portrait_of
from meanfield.numerics.growth_rates import FixedPoint

__all__ = [
    "FixedPoint",
    "FixedPoints",
    "Portrait",
    "attraction_intervals",
    "attraction_shares",
    "attractor_of",
    "continue_fixed_points",
    "find_fixed_points",
    "phase_portrait",
    "portrait_of",
    "stationary_similarity",
]
