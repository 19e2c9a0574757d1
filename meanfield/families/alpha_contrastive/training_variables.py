"""Variables of training: energies, weights, scores and ranks, and the terms of the flow under a fast top layer."""

from __future__ import annotations

from meanfield.mckean_vlasov.declarations import POSITIVE
from meanfield.problems.variable import Variable

_RUNS = ("replica",)

SCORE = (-1.0 - 1e-9, 1.0 + 1e-9)

TRAINING = {
    "covariance_trace": Variable(
        ("time",),
        "trace of C_alpha of the filters' outputs, which the top layer reads",
        optional_dims=_RUNS,
        gaps="unfinished",
        compared=True,
    ),
    "weights": Variable(
        ("time", "place", "filter", "coordinate"),
        "filters w of each place; one layer is a single place",
        optional_dims=_RUNS,
        gaps="unfinished",
    ),
    "top": Variable(
        ("time", "output", "place", "filter"),
        "weights V of the top layer",
        optional_dims=_RUNS,
        gaps="unfinished",
    ),
    "chi_plus": Variable(
        ("time",),
        "chi_+, mean over tokens that generators mark of the best match among the filters of their place",
        optional_dims=_RUNS,
        range=SCORE,
        gaps="unfinished",
        compared=True,
    ),
    "chi_minus": Variable(
        ("time",),
        "chi_-, mean over tokens that no generator marks of the best match among the filters of their place",
        optional_dims=_RUNS,
        range=SCORE,
        gaps="unfinished",
        compared=True,
    ),
    "loss": Variable(("time",), "mean loss of the samples of a batch", optional_dims=_RUNS, gaps="unfinished"),
    "top_rank": Variable(
        ("time",),
        "effective rank (sum s^2)^2/sum s^4 of the top layer, from its singular values s",
        optional_dims=_RUNS,
        range=POSITIVE,
        gaps="unfinished",
    ),
    "filter_rank": Variable(
        ("time", "place"),
        "effective rank of the filters of a place",
        optional_dims=_RUNS,
        range=POSITIVE,
        gaps="unfinished",
    ),
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
