"""Variables of several channels: those with more dims than for one channel, and those that are there only then."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from meanfield.mckean_vlasov.declarations import POSITIVE, SUM_TOLERANCE
from meanfield.mckean_vlasov.declarations import VARIABLES as DENSITY_VARIABLES
from meanfield.problems.variable import Variable

CORRELATION = (-1.0 - SUM_TOLERANCE, 1.0 + SUM_TOLERANCE)


def _of_channels(name: str, *dims: str) -> Variable:
    """A variable of densities and SGD with the dims that it has besides where there are several channels."""
    return replace(DENSITY_VARIABLES[name], last_dims=dims)


_PAIR = ("channel", "channel_")

CHANNELS = {
    "q": _of_channels("q", "channel"),
    "g": replace(DENSITY_VARIABLES["g"], unless=("channel",)),
    "r": _of_channels("r", "channel"),
    "Lambda": replace(_of_channels("Lambda", *_PAIR), range=(-inf, inf)),
    "q_error": _of_channels("q_error", "channel"),
    "r_error": _of_channels("r_error", "channel"),
    "q_mean": _of_channels("q_mean", "channel"),
    "q_quantile": _of_channels("q_quantile", "channel"),
    "q_covariance": _of_channels("q_covariance", *_PAIR),
    "r_mean": _of_channels("r_mean", "channel"),
    "r_variance": _of_channels("r_variance", "channel"),
    "q_final": _of_channels("q_final", "channel"),
    "q_final_error": _of_channels("q_final_error", "channel"),
    "r_final": _of_channels("r_final", "channel"),
    "r_final_error": _of_channels("r_final_error", "channel"),
    "weights": _of_channels("weights", "channel"),
    "M": Variable(
        ("time", *_PAIR),
        "overlap M = E[w w^T] of the channels",
        optional_dims=("replica",),
        range=CORRELATION,
        gaps="unfinished",
        compared=True,
    ),
    "M_error": Variable(("time", *_PAIR), "estimated error of the overlap M of the channels", range=POSITIVE),
    "M_mean": Variable(("time", *_PAIR), "mean of the overlap M over replicas", range=CORRELATION, gaps="unfinished"),
    "M_variance": Variable(("time", *_PAIR), "N times the variance of the overlap M over replicas", range=POSITIVE),
    "M_quantile": Variable(
        ("quantile", "time", *_PAIR), "quantile of the overlap M over replicas", range=CORRELATION, gaps="unfinished"
    ),
    "P_gain": Variable(
        ("time", "feature", "channel"), "gain P of the overlaps q, an average over batches", gaps="unfinished"
    ),
    "D": Variable(
        ("time", *_PAIR),
        "matrix D that drives the overlaps M of the channels, an average over batches",
        gaps="unfinished",
    ),
    "M_final": Variable(_PAIR, "overlap M of the channels at the last time", range=CORRELATION),
    "M_final_error": Variable(
        _PAIR, "its estimated error: of the discretisation, or of the mean over replicas", range=POSITIVE
    ),
    "u_sample": Variable(("particle", "feature"), "feature coordinates u of a particle of the limit", gaps="never"),
    "w_sample": Variable(
        ("snapshot_time", "particle", "channel"),
        "weights w of all channels of a particle of the limit",
        gaps="unfinished",
        needs=("snapshot_time", "u_sample"),
    ),
    "overlap_covariance": Variable(
        ("time", "overlap", "overlap_"),
        "N times the covariance of all overlaps over runs: q feature by feature, then M pair by pair",
    ),
    "averages_standard_error": Variable(
        ("time",), "largest standard error of P, D and Lambda by randomised quadrature", range=POSITIVE
    ),
}
"""Variables that have other dims with several channels, and those that are there only then."""
