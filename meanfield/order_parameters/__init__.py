"""The reduced ODEs for the overlaps q, where the prior lets them close."""

from meanfield.order_parameters.augmentation import best_augmentation
from meanfield.order_parameters.dynamics import analyse_dynamics, solve_fixed_points
from meanfield.order_parameters.field import VectorField
from meanfield.order_parameters.fixed_points import (
    continue_fixed_points,
    find_fixed_points,
    phase_portrait,
    stationary_similarity,
)
from meanfield.order_parameters.learnability import learnability
from meanfield.order_parameters.random_starts import random_start
from meanfield.order_parameters.trajectory import solve_order_parameters

__all__ = [
    "VectorField",
    "analyse_dynamics",
    "best_augmentation",
    "continue_fixed_points",
    "find_fixed_points",
    "learnability",
    "phase_portrait",
    "random_start",
    "solve_fixed_points",
    "solve_order_parameters",
    "stationary_similarity",
]
