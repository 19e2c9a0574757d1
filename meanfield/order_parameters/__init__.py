"""The reduced ODEs for the overlaps q, where the prior lets them close."""

from meanfield.order_parameters.attraction import attraction_intervals, attraction_shares, attractor_of
from meanfield.order_parameters.branches import continue_fixed_points, stationary_similarity
from meanfield.order_parameters.field import VectorField
from meanfield.order_parameters.fixed_points import FixedPoint, FixedPoints, find_fixed_points
from meanfield.order_parameters.portrait import Portrait, phase_portrait, portrait_of
from meanfield.order_parameters.trajectory import solve_order_parameters

__all__ = [
    "FixedPoint",
    "FixedPoints",
    "Portrait",
    "VectorField",
    "attraction_intervals",
    "attraction_shares",
    "attractor_of",
    "continue_fixed_points",
    "find_fixed_points",
    "phase_portrait",
    "portrait_of",
    "solve_order_parameters",
    "stationary_similarity",
]
