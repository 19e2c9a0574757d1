"""Variables of several channels: those with more dims than for one channel, and those that are there only then."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY, SUM_TOLERANCE, cell_variables
from meanfield.mckean_vlasov.declarations import VARIABLES as DENSITY_VARIABLES
from meanfield.problems.variable import Variable

ARRANGEMENTS = (
    "nothing learned",
    "some channels only",
    "collapsed",
    "partly collapsed",
    "tilted",
    "distinct",
    "rotated",
    "mixture",
)
"""Arrangements of features among channels; see `meanfield.families.contrastive.channels.states.analysis`."""

CORRELATION = (-1.0 - SUM_TOLERANCE, 1.0 + SUM_TOLERANCE)


def _of_channels(name: str, *dims: str) -> Variable:
    """A variable of densities and SGD with the dims that it has besides where there are several channels."""
    return replace(DENSITY_VARIABLES[name], last_dims=dims)


_PAIR = ("channel", "channel_")

_OF_ALL = ("W1", "W1_expected", "KS", "KS_expected")
_OF_EACH = (*_OF_ALL, *(f"{name}_given_u" for name in _OF_ALL))
"""Distances of weights and density, of all of them and given u."""

CHANNELS = {
    "q": _of_channels("q", "channel"),
    "g": replace(DENSITY_VARIABLES["g"], unless=("channel",)),
    "r": _of_channels("r", "channel"),
    "Lambda": replace(_of_channels("Lambda", *_PAIR), range=(-inf, inf)),
    "norm": _of_channels("norm", "channel"),
    "P": _of_channels("P", "channel"),
    "P_w": _of_channels("P_w", "channel"),
    **{
        name: Variable(
            ("time", "w"),
            f"density of (w_1 {sign} w_2)/sqrt(2), averaged over a cell",
            only=("diagonal",),
            range=(-SUM_TOLERANCE, inf),
            gaps="unfinished",
        )
        for name, sign in (("P_sum", "+"), ("P_difference", "-"))
    },
    "P_joint": Variable(
        ("density_time", "w1", "w2"),
        "density P_t(w_1, w_2) of the weights of both channels, averaged over a cell",
        range=(-SUM_TOLERANCE, inf),
        gaps="unfinished",
        needs=("density_time",),
    ),
    "P_joint_given_u": Variable(
        ("density_time", "node", "w1", "w2"),
        "conditional density P_t(w_1, w_2|u) at a node, averaged over a cell",
        range=(-SUM_TOLERANCE, inf),
        gaps="unfinished",
        needs=("density_time",),
    ),
    "density_time": Variable(
        ("density_time",),
        "time t = k/N at which the joint density was kept",
        range=POSITIVE,
        gaps="never",
        increasing=True,
    ),
    **cell_variables("w1", "weight w_1"),
    **cell_variables("w2", "weight w_2"),
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
    **{name: _of_channels(name, "channel") for name in _OF_EACH},
    **{
        f"{name}_diagonal": replace(
            DENSITY_VARIABLES[name],
            dims=("pair", "snapshot_time", "diagonal"),
            only=("diagonal",),
            long_name=f"{DENSITY_VARIABLES[name].long_name}, for (w_1 + w_2)/sqrt(2) and (w_1 - w_2)/sqrt(2)",
        )
        for name in _OF_ALL
    },
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

CHANNEL_STATES = {
    "arrangement": Variable(
        ("time",), "arrangement of features among channels", words=True, choices=ARRANGEMENTS, gaps="never"
    ),
    "copies": Variable(
        ("time",),
        "number of fixed points that are copies by symmetries, infinite where features can be rotated",
        range=(1.0, inf),
        gaps="never",
    ),
    "limit_share": Variable(
        ("time",), "share of starts from nothing that end at a state, as N grows", range=PROBABILITY
    ),
    "uninformed_channel_rate": Variable(
        ("feature", "channel"), "growth rate of small overlaps of orthogonal channels that have learnt nothing"
    ),
    "conditional_rate": Variable(
        ("feature", "feature_"),
        "growth rate of small overlaps of a channel that has learnt nothing, while another rests on the second feature",
    ),
}
"""Variables of fixed points of several channels."""
