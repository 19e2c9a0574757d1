"""Variables of networks in training: the exact flow, SGD, and statistics over replicas."""

from __future__ import annotations

from math import inf

from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY
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

_WORDS = {
    "energy": "energy",
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
