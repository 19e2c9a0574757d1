"""Training dynamics in the high-dimensional limit, proved against SGD.

A problem goes into a method, which returns an xarray Dataset:

>>> import meanfield
>>> problem = meanfield.load_problem("data/problems/sparse_prior.toml")
>>> density = meanfield.solve_density(problem)
>>> sgd = meanfield.simulate_sgd(problem)
>>> report = meanfield.compare(density, sgd)
"""

from meanfield import cache_folder  # noqa: F401  # isort: skip
from meanfield.activations import Activation
from meanfield.analysis import compare
from meanfield.checkpoint import Checkpoint
from meanfield.density import solve_density
from meanfield.errors import InputError
from meanfield.explanation import Explanation, explain
from meanfield.order_parameters import (
    analyse_dynamics,
    best_augmentation,
    continue_fixed_points,
    learnability,
    phase_portrait,
    solve_order_parameters,
    stationary_similarity,
)
from meanfield.particles import simulate_sgd
from meanfield.priors import Prior
from meanfield.problem import Problem
from meanfield.problem_file import load_problem
from meanfield.stationary import (
    continue_stationary_states,
    critical_values,
    find_stationary_states,
    growth_rate_at_zero,
)
from meanfield.storage import load, save
from meanfield.sweep import Sweep, load_sweep, run_sweep

__version__ = "0.1.0"

__all__ = [
    "Activation",
    "Checkpoint",
    "Explanation",
    "InputError",
    "Prior",
    "Problem",
    "Sweep",
    "analyse_dynamics",
    "best_augmentation",
    "compare",
    "continue_fixed_points",
    "continue_stationary_states",
    "critical_values",
    "explain",
    "find_stationary_states",
    "growth_rate_at_zero",
    "learnability",
    "load",
    "load_problem",
    "load_sweep",
    "phase_portrait",
    "run_sweep",
    "save",
    "simulate_sgd",
    "solve_density",
    "solve_order_parameters",
    "stationary_similarity",
]
