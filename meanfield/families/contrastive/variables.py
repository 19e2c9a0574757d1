"""Variables of contrastive results that no density has: of states, random starts, sweeps and several channels."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from meanfield.mckean_vlasov.declarations import (
    AT_REST,
    POSITIVE,
    PROBABILITY,
    STATIONARY,
    SUM_TOLERANCE,
)
from meanfield.mckean_vlasov.declarations import VARIABLES as DENSITY_VARIABLES
from meanfield.problems.variable import Variable, recorded, statistics_of
from meanfield.several_vectors.declarations import distances_of, plane_of, sample_of

KEPT_BY_SWEEPS = {
    "similarity": Variable((), "largest cosine similarity |q| of a state that is not unstable", range=PROBABILITY),
    "least_similarity": Variable((), "least cosine similarity |q| of a state that is not unstable", range=PROBABILITY),
    "state_count": Variable((), "number of stationary states", range=POSITIVE),
    "stable_count": Variable((), "number of stable states", range=POSITIVE),
    "collapsed_share": Variable(
        (), "share of the pairs of channels that have learnt one feature and coincide", range=PROBABILITY
    ),
    "tilted_share": Variable(
        (), "share of the pairs of channels that have learnt one feature and do not coincide", range=PROBABILITY
    ),
    "distinct_share": Variable(
        (), "share of the pairs of channels that have learnt different features", range=PROBABILITY
    ),
}

RANDOM_STARTS = {
    "uninformed_rate": Variable(
        ("mode",),
        "growth rate of small overlaps at q = 0, by feature if these are independent",
        needs=("learnable_moment",),
    ),
    "learnable_moment": Variable(
        ("bound",), "second moments of hidden variables that are learnable: from, to", range=POSITIVE
    ),
    "dimension": Variable(
        ("dimension",), "dimension N of a random start", range=(1.0, float("inf")), gaps="never", increasing=True
    ),
    "escape_time_quantile": Variable(
        ("dimension", "quantile"),
        "quantile of the time at which |q| first escapes from 0",
        needs=("dimension", "quantile"),
    ),
    "win_chance": Variable(
        ("dimension", "feature"),
        "chance that a feature has the largest |q_k| in the end",
        range=PROBABILITY,
        needs=("dimension",),
    ),
}

ESCAPES = {
    "escape_time": Variable(
        ("replica",), "time t = k/N at which |q| first reached particles.escape_overlap", range=POSITIVE
    ),
    "winner": Variable(
        ("replica",),
        "index of the feature with the largest |q_k| at the end; -1 without escape by then",
        range=(-1.0, float("inf")),
    ),
}

AVERAGES = {
    "q_average": replace(DENSITY_VARIABLES["q"], long_name="overlap E[u w'] of averaged weights and features"),
    "overlap_average": recorded(("time",), "overlap E[w w'] of weights and averaged weights", compared=True),
    "norm_average": recorded(("time",), "second moment E[w'^2] of averaged weights", range=POSITIVE, compared=True),
}
"""Order parameters of averages of weights of one channel, where `model.average_rate` asks for them."""

AVERAGES_OF_CHANNELS = ("q_average", "overlap_average", "M_average")
"""Names of those of several channels."""

AVERAGE_STATISTICS = {
    name: variable
    for row, known in AVERAGES.items()
    for name, variable in statistics_of(row, known).items()
    if not name.endswith("_quantile")
}

STATES = {
    "multiplier": STATIONARY["multiplier"],
    "multiplier_residual": STATIONARY["multiplier_residual"],
    "residual": Variable(
        ("time",),
        "largest of |E[u w] - q| and |E[w^2] - 1|, by finer quadrature",
        range=POSITIVE,
        conserved=("equations of the state, largest residual", 0.0),
    ),
    "quadrature_error": Variable(
        ("time",),
        "error of q by the quadrature over u and w, as more nodes show it; no estimate where a branch turns",
        range=POSITIVE,
        conserved=("quadrature over u and w, largest error of q", 0.0),
    ),
    "growth_rate": AT_REST["growth_rate"],
    "relaxation_rate": STATIONARY["relaxation_rate"],
    "eigenvalue_real": Variable(("time", "mode"), "leading eigenvalue with q and the norm taking part, real part"),
    "eigenvalue_imag": Variable(("time", "mode"), "leading eigenvalue with q and the norm taking part, imaginary part"),
    "stability": AT_REST["stability"],
    "potential": Variable(("time",), "Lyapunov function V(q) = -int_0^q dq/dt, where there is one"),
}

FIXED_POINTS = {
    "kind": AT_REST["kind"],
    "orbit": Variable(
        ("time",),
        "number of the set of fixed points that are copies by symmetries",
        range=POSITIVE,
        gaps="never",
    ),
}

PORTRAIT = {
    "q_cell": Variable(
        ("row", "column", "feature"),
        "overlap q at the centre of a cell of a portrait",
        needs=("velocity", "region", "region_share", "separatrix", "nullcline", "nullcline_component"),
    ),
    "velocity": Variable(("row", "column", "feature"), "dq/dt at the centre of a cell"),
    "region": Variable(
        ("row", "column"),
        "state that attracts a cell, -1 undecided, -2 outside the unit ball",
        range=(-2.0, float("inf")),
        gaps="never",
    ),
    "region_share": Variable(
        ("time",),
        "part of the portrait, of [-1, 1] for one feature, or of random starts of channels, that a state attracts",
        range=PROBABILITY,
    ),
    "separatrix": Variable(("trace", "feature"), "overlap q along stable manifolds of saddles, NaN between curves"),
    "nullcline": Variable(("contour", "feature"), "overlap q where a component of dq/dt vanishes, in no order"),
    "nullcline_component": Variable(("contour",), "number of that component, from 0", range=(0.0, 1.0)),
    "table_error": Variable((), "error of the interpolated velocity in units of the largest one", range=POSITIVE),
}

ONE_FEATURE = {
    "line": Variable(("line",), "overlap q of a single feature", range=(-1.0, 1.0), gaps="never", increasing=True),
    "rate": Variable(("line",), "dq/dt of a single feature", needs=("line",)),
}


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

_OF_AVERAGES = AVERAGES | AVERAGE_STATISTICS

CHANNELS = {
    "q": _of_channels("q", "channel"),
    "g": replace(DENSITY_VARIABLES["g"], unless=("channel",)),
    "r": _of_channels("r", "channel"),
    **{name: replace(STATES[name], last_dims=("channel",)) for name in ("multiplier", "multiplier_residual")},
    "Lambda": replace(_of_channels("Lambda", *_PAIR), range=(-inf, inf)),
    "norm": _of_channels("norm", "channel"),
    "P": _of_channels("P", "channel"),
    "P_w": _of_channels("P_w", "channel"),
    **plane_of("channel"),
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
    "M": recorded(("time", *_PAIR), "overlap M = E[w w^T] of the channels", range=CORRELATION, compared=True),
    "M_error": Variable(("time", *_PAIR), "estimated error of the overlap M of the channels", range=POSITIVE),
    **{
        name: replace(known, last_dims=("channel",) if name in ("q_average", "q_average_mean") else _PAIR)
        for name, known in _OF_AVERAGES.items()
        if not name.startswith("norm")
    },
    **{name: replace(known, unless=("channel",)) for name, known in _OF_AVERAGES.items() if name.startswith("norm")},
    "M_average": replace(
        AVERAGES["overlap_average"],
        dims=("time", *_PAIR),
        long_name="overlap E[w' w'^T] of the averaged weights of the channels",
    ),
    **{
        f"{name}_error": Variable(("time", *dims), f"estimated error of {name}", range=POSITIVE)
        for name, dims in (("q_average", ("feature", "channel")), ("overlap_average", _PAIR), ("M_average", _PAIR))
    },
    "M_average_mean": Variable(("time", *_PAIR), "mean of the overlap E[w' w'^T] over replicas", gaps="unfinished"),
    "M_average_variance": Variable(
        ("time", *_PAIR), "N times the variance of the overlap E[w' w'^T] over replicas", range=POSITIVE
    ),
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
    **distances_of("channel"),
    "M_final": Variable(_PAIR, "overlap M of the channels at the last time", range=CORRELATION),
    "M_final_error": Variable(
        _PAIR, "its estimated error: of the discretisation, or of the mean over replicas", range=POSITIVE
    ),
    **sample_of("channel"),
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
        ("time",),
        "arrangement of features among channels",
        only=("channel",),
        words=True,
        choices=ARRANGEMENTS,
        gaps="never",
    ),
    "copies": Variable(
        ("time",),
        "number of states that are copies by symmetries, infinite where features can be rotated",
        only=("channel",),
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
