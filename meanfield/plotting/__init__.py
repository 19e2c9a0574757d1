"""Plots of Datasets on Axes. Nothing is saved here and no solver is called.

Functions of one quantity take a Dataset and Axes and return the Axes; functions of whole results return a Figure, and
`plot_result` draws a result of any method.
"""

from meanfield.plotting.animation import animate_weights
from meanfield.plotting.comparison import (
    plot_comparison,
    plot_differences,
    plot_distances,
    plot_distances_given_u,
    plot_standard_errors,
)
from meanfield.plotting.dynamics import (
    plot_chance,
    plot_dynamics,
    plot_escape_quantiles,
    plot_escape_times,
    plot_rate,
    plot_similarities,
)
from meanfield.plotting.legends import place_legend, share_legend
from meanfield.plotting.phase_diagram import plot_along, plot_phase_diagram
from meanfield.plotting.portrait import plot_fixed_points, plot_portrait, plot_trajectories
from meanfield.plotting.results import plot_result
from meanfield.plotting.states import plot_branches, plot_state_densities, plot_state_stability
from meanfield.plotting.style import COLOURS, LINES, MARKERS, curve_style, marker_style
from meanfield.plotting.trajectories import (
    plot_coefficients,
    plot_errors,
    plot_fluctuations,
    plot_overlap,
    plot_prior_work,
    plot_quantiles,
    plot_replicas,
)
from meanfield.plotting.weights import (
    plot_conditional,
    plot_densities,
    plot_density,
    plot_density_given_u,
    plot_histogram,
    plot_histograms,
    plot_pairs,
)

__all__ = [
    "COLOURS",
    "LINES",
    "MARKERS",
    "animate_weights",
    "curve_style",
    "marker_style",
    "place_legend",
    "plot_along",
    "plot_branches",
    "plot_chance",
    "plot_coefficients",
    "plot_comparison",
    "plot_conditional",
    "plot_densities",
    "plot_density",
    "plot_density_given_u",
    "plot_differences",
    "plot_distances",
    "plot_distances_given_u",
    "plot_dynamics",
    "plot_errors",
    "plot_escape_quantiles",
    "plot_escape_times",
    "plot_fixed_points",
    "plot_fluctuations",
    "plot_histogram",
    "plot_histograms",
    "plot_overlap",
    "plot_pairs",
    "plot_phase_diagram",
    "plot_portrait",
    "plot_prior_work",
    "plot_quantiles",
    "plot_rate",
    "plot_replicas",
    "plot_result",
    "plot_similarities",
    "plot_standard_errors",
    "plot_state_densities",
    "plot_state_stability",
    "plot_trajectories",
    "share_legend",
]
