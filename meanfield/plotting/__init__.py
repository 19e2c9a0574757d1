"""Datasets to Axes. Nothing is saved here and no solver is called.

Functions of one quantity take a Dataset and Axes and return the Axes; functions of whole results return a Figure.
"""

from meanfield.plotting.branches import plot_branches
from meanfield.plotting.comparison import plot_comparison
from meanfield.plotting.dynamics import plot_dynamics, plot_escape_quantiles, plot_rate, plot_similarities
from meanfield.plotting.fluctuations import plot_fluctuations
from meanfield.plotting.phase_diagram import plot_phase_diagram
from meanfield.plotting.portrait import plot_fixed_points, plot_portrait, plot_trajectories
from meanfield.plotting.random_starts import plot_chance, plot_escape_times
from meanfield.plotting.style import COLOURS, LINES
from meanfield.plotting.trajectories import plot_overlap, plot_prior_work
from meanfield.plotting.weights import plot_conditional, plot_density, plot_histogram

__all__ = [
    "COLOURS",
    "LINES",
    "plot_branches",
    "plot_chance",
    "plot_comparison",
    "plot_conditional",
    "plot_density",
    "plot_dynamics",
    "plot_escape_quantiles",
    "plot_escape_times",
    "plot_fixed_points",
    "plot_fluctuations",
    "plot_histogram",
    "plot_overlap",
    "plot_phase_diagram",
    "plot_portrait",
    "plot_prior_work",
    "plot_rate",
    "plot_similarities",
    "plot_trajectories",
]
