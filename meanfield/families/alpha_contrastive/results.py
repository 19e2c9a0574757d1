"""Variables and kinds of results of contrastive problems with pairwise importance."""

from __future__ import annotations

from meanfield.families.alpha_contrastive.variables.critical_points import BRANCHES, CRITICAL_POINTS
from meanfield.families.alpha_contrastive.variables.density import DENSITY, SPHERE
from meanfield.families.alpha_contrastive.variables.filters import FILTERS, NETWORKS, OPTIMAL
from meanfield.families.alpha_contrastive.variables.training import STATISTICS, TRAINING
from meanfield.problems.family import Kind

VARIABLES = FILTERS | NETWORKS | OPTIMAL | CRITICAL_POINTS | BRANCHES | DENSITY | SPHERE | TRAINING | STATISTICS

SCORES = ("chi_plus", "chi_minus", "loss")

CHECKS = "meanfield.families.alpha_contrastive.checks:faults"
NUMBERS = "meanfield.families.alpha_contrastive.key_numbers"
FIGURES = "meanfield.families.alpha_contrastive.figures"
IN_TRAINING = "meanfield.families.alpha_contrastive.training_display"

OF_A_BRANCH = ("energy", "objective", "eigenvalue", "rate", "rate_frozen", "stable", "lme", "gap")

KINDS = {
    "critical_points": Kind(
        "critical points of a filter on the sphere",
        ("w", *CRITICAL_POINTS),
        leading="point",
        made_by="find_critical_points",
        check=CHECKS,
        figure=f"{FIGURES}:plot_critical_points",
        numbers=f"{NUMBERS}:of_critical_points",
    ),
    "critical_point_branches": Kind(
        "branches of critical points",
        ("w", *OF_A_BRANCH, *BRANCHES),
        leading="point",
        made_by="continue_critical_points",
        check=CHECKS,
        figure=f"{FIGURES}:plot_branches",
    ),
    "density": Kind(
        "density of filters on the circle",
        (*DENSITY, "G"),
        ("certificate_gap",),
        made_by="solve_density",
        check=CHECKS,
        figure=f"{FIGURES}:plot_density",
        numbers=f"{NUMBERS}:of_density",
    ),
    "sphere_density": Kind(
        "density of filters on the sphere",
        ("time", *SPHERE, "G", "G_error", "certificate_gap"),
        made_by="solve_density",
        check=CHECKS,
        figure=f"{FIGURES}:plot_sphere_density",
        numbers=f"{NUMBERS}:of_sphere_density",
    ),
    "optimal_filters": Kind(
        "filters and weights of the best network",
        ("w", *OPTIMAL, *NETWORKS),
        leading="atom",
        made_by="find_optimal_filters",
        check=CHECKS,
        figure=f"{FIGURES}:plot_optimal_filters",
        numbers=f"{NUMBERS}:of_optimal_filters",
    ),
    "population": Kind(
        "exact flow of all weights",
        ("time", "energy", "covariance_trace", "weights", "filter_rank"),
        ("top", "chi_plus", "chi_minus", "top_rank"),
        made_by="solve_population",
        figure=f"{IN_TRAINING}:plot_training",
        numbers=f"{IN_TRAINING}:of_training",
    ),
    "particles": Kind(
        "stochastic gradient descent on batches of pairs",
        ("time", "energy", "covariance_trace", "weights"),
        ("top", *SCORES),
        made_by="simulate_sgd",
        figure=f"{IN_TRAINING}:plot_training",
        numbers=f"{IN_TRAINING}:of_training",
    ),
    "ensemble": Kind(
        "stochastic gradient descent on batches of pairs, statistics of an ensemble",
        ("time", "count", "energy_mean", "energy_variance", "covariance_trace_mean", "covariance_trace_variance"),
        ("quantile", "energy_quantile", *(f"{name}_{of}" for name in SCORES for of in ("mean", "variance"))),
        made_by="simulate_sgd",
        figure=f"{IN_TRAINING}:plot_training",
        numbers=f"{IN_TRAINING}:of_training",
    ),
}
