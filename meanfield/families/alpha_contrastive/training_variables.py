"""Variables of training: energies, weights, scores and ranks, and the terms of the flow under a fast top layer."""

from __future__ import annotations

from meanfield.mckean_vlasov.declarations import POSITIVE
from meanfield.problems.variable import Variable, recorded

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
