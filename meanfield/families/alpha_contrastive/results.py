"""Variables and kinds of results of contrastive problems with pairwise importance."""

from __future__ import annotations

from math import inf

from meanfield.mckean_vlasov.declarations import BRANCHES, POSITIVE, PROBABILITY, SPHERE_CELLS, cell_variables
from meanfield.problems.kind import Kind
from meanfield.problems.variable import Variable, averages_of, recorded

SCORE = (-1.0 - 1e-9, 1.0 + 1e-9)

TRAINING = {
    "covariance_trace": recorded(
        ("time",), "trace of C_alpha of the filters' outputs, which the top layer reads", compared=True
    ),
    "weights": recorded(
        ("time", "place", "filter", "coordinate"), "filters w of each place; one layer is a single place"
    ),
    "top": recorded(("time", "output", "place", "filter"), "weights V of the top layer"),
    "chi_plus": recorded(
        ("time",),
        "chi_+, mean over tokens that generators mark of the best match among the filters of their place",
        range=SCORE,
        compared=True,
    ),
    "chi_minus": recorded(
        ("time",),
        "chi_-, mean over tokens that no generator marks of the best match among the filters of their place",
        range=SCORE,
        compared=True,
    ),
    "loss": recorded(("time",), "mean loss of the samples of a batch"),
    "top_rank": recorded(
        ("time",), "effective rank (sum s^2)^2/sum s^4 of the top layer, from its singular values s", range=POSITIVE
    ),
    "filter_rank": recorded(("time", "place"), "effective rank of the filters of a place", range=POSITIVE),
}

MODULATION = {
    "top_eigenvalue": Variable(("time",), "largest eigenvalue of C[f] of the filters' outputs", gaps="unfinished"),
    "top_vector": Variable(("time", "place"), "s_k, the unit eigenvector of that eigenvalue", gaps="unfinished"),
    "within": Variable(("time", "place"), "d_k, what is in C[f_k] of the variance given the generator"),
    "separation": Variable(("time", "place"), "b_k = E[f_k | second generator] - E[f_k | first generator]"),
    "modulation": Variable(
        ("time", "place"), "delta_k, factor of the push along the difference Delta_k that other places give a filter"
    ),
    "difference": Variable(
        ("time", "place", "coordinate"), "Delta_k = E[h' x_k | second generator] - E[h' x_k | first generator]"
    ),
}
"""Terms of the flow of one filter in each place under a fast top, two generators apart (theorem 5 of the paper)."""

FILTERS = {
    "w": Variable(("time", "coordinate"), "filter w, of length 1", range=(-1.0 - 1e-9, 1.0 + 1e-9), gaps="never"),
}

NETWORKS = {
    "G": Variable(
        (), "objective G of the network", optional_dims=("replica", "time"), gaps="unfinished", compared=True
    ),
    "certificate_gap": Variable(
        (),
        "E_alpha of the best filter above its average over the network, a bound of what is missing to the best G",
        optional_dims=("time",),
        range=POSITIVE,
        gaps="unfinished",
    ),
}

OPTIMAL = {
    "weight": Variable(("time",), "weight of a filter, its share of the network", range=PROBABILITY, gaps="never"),
}

YES_OR_NO = (0.0, 1.0)

CRITICAL_POINTS = {
    "energy": recorded(("time",), "energy E_alpha = tr C_alpha[f]/2 of the outputs f", compared=True),
    "objective": Variable(("time",), "objective G of a network of this filter alone", gaps="never"),
    "eigenvalue": Variable(("time",), "w.A w, the eigenvalue of a filter that is an eigenvector of A(w)", gaps="never"),
    "rate": Variable(("time",), "largest growth rate of small deviations, alpha moving with the filter"),
    "rate_frozen": Variable(("time",), "largest growth rate of small deviations, alpha held fixed"),
    "stable": Variable(("time",), "1 where filters come to it from all sides, else 0", range=YES_OR_NO, gaps="never"),
    "wall": Variable(("time",), "1 on a wall w.x = 0 of an atom, else 0", range=YES_OR_NO, gaps="never"),
    "lme": Variable(
        ("time",),
        "1 for a locally maximal eigenvector: of the simple top eigenvalue of A(w)",
        range=YES_OR_NO,
        gaps="never",
    ),
    "gap": Variable(("time",), "gap of the two largest eigenvalues of A(w)", range=POSITIVE, gaps="never"),
    "basin_share": Variable(
        ("time",), "share of the sphere from which filters come to it", range=PROBABILITY, gaps="never"
    ),
    "roughness": Variable(
        ("time",), "largest rate at which A(v) w changes with v along the sphere, between walls", range=POSITIVE
    ),
    "irregularity": Variable(
        ("time",),
        "largest density of the data on the hyperplane w.x = 0, times the mean importance of a pair with a sample "
        "there, which bounds the roughness of data in a ball",
        range=POSITIVE,
    ),
    "power_factor": Variable(
        ("time",),
        "factor by which a step of power iteration takes filters beside it towards it, if less than 1, or away",
        range=POSITIVE,
    ),
    "cosine_top": Variable(("time",), "c, the cosine of the filter and the top eigenvector of A(w)", range=PROBABILITY),
    "mu": Variable(("time",), "mu = (1 + c)/(2 c^2) (l_2/l_1)^2 of the existence theorem", range=POSITIVE),
    "nu": Variable(
        ("time",), "nu = 2 kappa L^2 (1 + mu c) + (2 L/gap) sqrt(mu (1 + mu c)) of that theorem", range=POSITIVE
    ),
    "omega": Variable(("time",), "omega = mu + nu: below 1 around it, power iteration converges", range=POSITIVE),
}

MOMENT = (-1.01, 1.01)
"""Range of a moment, with room for the correction of its average over cells."""

DENSITY = {
    "time": Variable(("time",), "time t = eta k after k steps", range=POSITIVE, gaps="never", increasing=True),
    **cell_variables("angle", "angle of a filter in radians", "middle of a cell, or at the wall if there is one"),
    "rho": Variable(
        ("time", "angle"),
        "density of filters on the circle, averaged over a cell",
        range=(-1e-9, inf),
        gaps="unfinished",
    ),
    "harmonic": Variable(("harmonic",), "order k of a moment", range=POSITIVE, gaps="never", increasing=True),
    "moment_cos": recorded(("time", "harmonic"), "moment E[cos k theta] of the filters", range=MOMENT, compared=True),
    "moment_sin": recorded(("time", "harmonic"), "moment E[sin k theta] of the filters", range=MOMENT, compared=True),
    "moment_cos_error": Variable(("time", "harmonic"), "estimated error of that moment", range=POSITIVE),
    "moment_sin_error": Variable(("time", "harmonic"), "estimated error of that moment", range=POSITIVE),
    "G_error": Variable(("time",), "estimated error of the objective G", range=POSITIVE),
}

DISTANCES = {
    "W1": Variable(
        ("pair", "time"),
        "Wasserstein-1 distance of the filters of all runs from the density, along the circle; on the sphere its mean "
        "over projections",
        range=POSITIVE,
        judged=True,
    ),
    "KS": Variable(
        ("pair", "time"),
        "largest Kolmogorov-Smirnov distance of projections of the filters of all runs from the density",
        range=PROBABILITY,
        judged=True,
    ),
}
"""Distances of densities and filters, by `meanfield.families.alpha_contrastive.distances`."""

SPHERE = {
    **SPHERE_CELLS,
    "rho_on_sphere": Variable(
        ("time", "polar", "azimuth"),
        "density of filters on the sphere, averaged over a cell",
        range=(0.0, inf),
        gaps="unfinished",
    ),
    "mean": recorded(("time", "coordinate"), "mean E[w] of the filters", range=MOMENT, compared=True),
    "second_moment": recorded(
        ("time", "coordinate", "other_coordinate"), "second moment E[w w^T] of the filters", range=MOMENT, compared=True
    ),
    "mean_error": Variable(("time", "coordinate"), "estimated error of that moment", range=POSITIVE),
    "second_moment_error": Variable(
        ("time", "coordinate", "other_coordinate"), "estimated error of that moment", range=POSITIVE
    ),
}

BASINS = {
    "advantage": Variable(
        ("advantage",), "advantage eps of a pattern over the others at the start", gaps="never", increasing=True
    ),
    "bonus": Variable(("advantage",), "bonus c/a of a unit filter, eps sqrt(3/d)", gaps="never"),
    "chance": Variable(
        ("advantage",), "chance of the pattern by equation 155 of the paper", range=PROBABILITY, gaps="never"
    ),
    "basin_share_error": Variable(("advantage",), "standard error of the share", range=POSITIVE, gaps="never"),
}

AVERAGES = averages_of(CRITICAL_POINTS | TRAINING, ("energy", "weights", "top"))
"""Results of moving averages of the weights, where `training.average_rate` asks for them."""

_WORDS = {
    "G": "objective G",
    "energy": "energy",
    "energy_average": "energy of the averaged weights",
    "covariance_trace": "trace of C_alpha",
    "loss": "mean loss",
    "chi_plus": "chi_+",
    "chi_minus": "chi_-",
}

STATISTICS = {
    "count": Variable((), "number of replicas in the statistics", range=POSITIVE, gaps="never"),
    "quantile": Variable(("quantile",), "probability of a quantile", range=PROBABILITY, gaps="never", increasing=True),
    "energy_quantile": Variable(("quantile", "time"), "quantile of the energy over replicas", gaps="unfinished"),
}

for name, words in _WORDS.items():
    STATISTICS[f"{name}_mean"] = Variable(("time",), f"mean of the {words} over replicas", gaps="unfinished")
    STATISTICS[f"{name}_variance"] = Variable(
        ("time",), f"variance of the {words} over replicas by eta", range=(0.0, inf), gaps="allowed"
    )

for name, dims in (
    ("moment_cos", ("harmonic",)),
    ("moment_sin", ("harmonic",)),
    ("mean", ("coordinate",)),
    ("second_moment", ("coordinate", "other_coordinate")),
):
    of = (DENSITY | SPHERE)[name].long_name
    STATISTICS[f"{name}_mean"] = Variable(("time", *dims), f"mean of the {of} over replicas", gaps="unfinished")
    STATISTICS[f"{name}_covariance"] = Variable(
        ("time", *dims, *(f"{dim}_" for dim in dims)), f"covariance of the {of} over replicas by eta"
    )

VARIABLES = (
    FILTERS
    | NETWORKS
    | OPTIMAL
    | CRITICAL_POINTS
    | BRANCHES
    | DENSITY
    | SPHERE
    | DISTANCES
    | TRAINING
    | AVERAGES
    | MODULATION
    | BASINS
) | STATISTICS

SCORES = ("chi_plus", "chi_minus", "loss", "G")

MOMENTS = ("moment_cos", "moment_sin", "mean", "second_moment")

CHECKS = "meanfield.families.alpha_contrastive.numbers:faults"

NUMBERS = "meanfield.families.alpha_contrastive.numbers"

FIGURES = "meanfield.families.alpha_contrastive.figures"

OF_A_BRANCH = ("energy", "objective", "eigenvalue", "rate", "rate_frozen", "stable", "lme", "gap")
"""Variables of each point of a branch besides `w`."""

KINDS = {
    "critical_points": Kind(
        "critical points of a filter on the sphere",
        ("w", *(name for name in CRITICAL_POINTS if name != "irregularity")),
        ("irregularity",),
        leading="point",
        made_by="alpha_contrastive.find_critical_points",
        check=CHECKS,
        figure=f"{FIGURES}:plot_critical_points",
        numbers=f"{NUMBERS}:of_critical_points",
    ),
    "critical_point_branches": Kind(
        "branches of critical points",
        ("w", *OF_A_BRANCH, *BRANCHES),
        leading="point",
        made_by="alpha_contrastive.continue_critical_points",
        check=CHECKS,
        figure=f"{FIGURES}:plot_branches",
    ),
    "modulated_basins": Kind(
        "share of filters that come to a pattern with a bonus",
        (*BASINS, "basin_share"),
        leading="advantage",
        made_by="alpha_contrastive.modulated_basins",
        figure=f"{FIGURES}:plot_modulated_basins",
    ),
    "density": Kind(
        "density of filters on the circle",
        (*DENSITY, "G"),
        ("certificate_gap",),
        check=CHECKS,
        figure=f"{FIGURES}:plot_density",
        charts="meanfield.families.alpha_contrastive.charts:charts",
        numbers=f"{NUMBERS}:of_density",
    ),
    "sphere_density": Kind(
        "density of filters on the sphere",
        ("time", *SPHERE, "G", "G_error", "certificate_gap"),
        check=CHECKS,
        figure=f"{FIGURES}:plot_sphere_density",
        charts="meanfield.families.alpha_contrastive.charts:charts",
        numbers=f"{NUMBERS}:of_sphere_density",
    ),
    "optimal_filters": Kind(
        "filters and weights of the best network",
        ("w", *OPTIMAL, *NETWORKS),
        leading="atom",
        made_by="alpha_contrastive.find_optimal_filters",
        check=CHECKS,
        figure=f"{FIGURES}:plot_optimal_filters",
        numbers=f"{NUMBERS}:of_optimal_filters",
        at_end="meanfield.families.alpha_contrastive.moments:of_the_best_network",
    ),
    "best_network": Kind(
        "moments and objective of the best network",
        ("time", "G", "G_error"),
        ("harmonic", *MOMENTS),
        made_by="alpha_contrastive.find_optimal_filters",
    ),
    "population": Kind(
        "exact flow of all weights",
        ("time", "energy", "covariance_trace", "weights", "filter_rank"),
        ("harmonic", *MOMENTS, "G", "top", "chi_plus", "chi_minus", "top_rank", *MODULATION, *AVERAGES),
        figure=f"{FIGURES}:plot_training",
        charts="meanfield.families.alpha_contrastive.charts:charts",
        numbers=f"{FIGURES}:of_training",
    ),
    "particles": Kind(
        "stochastic gradient descent on batches of pairs",
        ("time", "energy", "covariance_trace", "weights"),
        ("harmonic", *MOMENTS, "top", *SCORES, *AVERAGES),
        figure=f"{FIGURES}:plot_training",
        charts="meanfield.families.alpha_contrastive.charts:charts",
        numbers=f"{FIGURES}:of_training",
    ),
    "ensemble": Kind(
        "stochastic gradient descent on batches of pairs, statistics of an ensemble",
        ("time", "count", "energy_mean", "energy_variance", "covariance_trace_mean", "covariance_trace_variance"),
        (
            *("quantile", "energy_quantile", "harmonic"),
            *(f"{name}_{of}" for name in (*SCORES, "energy_average") for of in ("mean", "variance")),
            *(f"{name}_{of}" for name in MOMENTS for of in ("mean", "covariance")),
        ),
        figure=f"{FIGURES}:plot_training",
        numbers=f"{FIGURES}:of_training",
    ),
}
