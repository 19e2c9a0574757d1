"""Variables and kinds of results of contrastive learning, besides those that all densities have."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from meanfield.mckean_vlasov.declarations import KINDS as DENSITY_KINDS
from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY, SUM_TOLERANCE
from meanfield.mckean_vlasov.declarations import VARIABLES as DENSITY_VARIABLES
from meanfield.problems.family import Kind
from meanfield.problems.variable import Variable

CORRELATION = (-1.0 - SUM_TOLERANCE, 1.0 + SUM_TOLERANCE)

TYPES_OF_FIXED_POINTS = ("stable node", "stable focus", "saddle", "unstable node", "unstable focus", "marginal")

STATES = {
    "multiplier": Variable(("time",), "multiplier G of the norm"),
    "multiplier_residual": Variable(
        ("time",),
        "G - (q.g + tau r - Lambda/2), zero at a stationary state",
        conserved=("multiplier of the norm, largest residual", 0.0),
    ),
    "residual": Variable(
        ("time",),
        "largest of |E[u w] - q| and |E[w^2] - 1|",
        range=POSITIVE,
        conserved=("equations of the state, largest residual", 0.0),
    ),
    "quadrature_error": Variable(
        ("time",),
        "error of q by the quadrature over u and w, as more nodes show it; no estimate where a branch turns",
        range=POSITIVE,
        conserved=("quadrature over u and w, largest error of q", 0.0),
    ),
    "growth_rate": Variable(("time",), "largest growth rate of small perturbations"),
    "relaxation_rate": Variable(("time",), "slowest relaxation of a conditional density at fixed q, at any u"),
    "eigenvalue_real": Variable(("time", "mode"), "leading eigenvalue with q and the norm taking part, real part"),
    "eigenvalue_imag": Variable(("time", "mode"), "leading eigenvalue with q and the norm taking part, imaginary part"),
    "stability": Variable(
        ("time",),
        "1 stable, 0 marginal to the accuracy of eigenvalues, -1 unstable",
        range=(-1.0, 1.0),
        gaps="never",
    ),
    "potential": Variable(("time",), "Lyapunov function V(q) = -int_0^q dq/dt, where there is one"),
}

BRANCHES = {
    "parameter": Variable(("time",), "value of the key that is varied", gaps="never", coordinate=True),
    "branch": Variable(
        ("time",),
        "number of the branch that a point belongs to; points are in its order",
        range=POSITIVE,
        gaps="never",
        coordinate=True,
    ),
    "turning": Variable(
        ("time",), "1 where the parameter has an extremum along the branch", range=(0.0, 1.0), gaps="never"
    ),
}

FIXED_POINTS = {
    "kind": Variable(
        ("time",),
        "kind of a fixed point: stable or unstable node or focus, saddle, or marginal",
        words=True,
        choices=TYPES_OF_FIXED_POINTS,
    ),
    "orbit": Variable(
        ("time",),
        "number of the set of fixed points that are copies by flips of features",
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
        ("time",), "part of the portrait, or of [-1, 1] for one feature, that a state attracts", range=PROBABILITY
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
    "averages_standard_error": Variable(
        ("time",), "largest standard error of P, D and Lambda by randomised quadrature", range=POSITIVE
    ),
}
"""Variables that have other dims with several channels, and those that are there only then."""

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

VARIABLES = (
    DENSITY_VARIABLES
    | STATES
    | BRANCHES
    | FIXED_POINTS
    | PORTRAIT
    | ONE_FEATURE
    | RANDOM_STARTS
    | ESCAPES
    | CHANNELS
    | KEPT_BY_SWEEPS
)

OF_A_STATE = ("q", "r", "g", "Lambda", *(name for name in STATES if name != "potential"))
"""Variables that every stationary state has."""

OF_A_FIXED_POINT = (
    "q",
    "g",
    "Lambda",
    "growth_rate",
    "eigenvalue_real",
    "eigenvalue_imag",
    "stability",
    "kind",
)
"""Variables that every fixed point has."""

CHECKS = "meanfield.families.contrastive.checks:faults"
OF_STATES = "meanfield.report.key_numbers:of_states"
DESCRIBED_BRANCHES = "meanfield.results.description:describe_branches"
DESCRIBED_STATES = "meanfield.results.description:describe"


def _extended(kind: Kind, *several: str) -> Kind:
    """Kind of results of SGD with the variables that contrastive learning adds, those of several channels included."""
    return replace(kind, variables=(*kind.variables, *several), optional=(*kind.optional, *ESCAPES), check=CHECKS)


def _with_channels(kind: Kind, *names: str) -> Kind:
    """Kind of results with the variables that they have with several channels."""
    return replace(kind, variables=(*kind.variables, "M"), optional=(*kind.optional, *names), check=CHECKS)


KINDS = DENSITY_KINDS | {
    "order_parameters": _with_channels(
        DENSITY_KINDS["order_parameters"], "P_gain", "D", "q_error", "M_error", "averages_standard_error"
    ),
    "particles": _extended(DENSITY_KINDS["particles"], "M"),
    "ensemble": _extended(DENSITY_KINDS["ensemble"], "M_mean", "M_variance", "M_quantile"),
    "stationary": Kind(
        "stationary states of the density",
        (*OF_A_STATE, "P", "u", "u_weight", "w", "w_bnds"),
        ("tau", "P_w", "potential"),
        leading="state",
        made_by="find_stationary_states",
        check=CHECKS,
        figure="meanfield.plotting.results:plot_states",
        numbers=OF_STATES,
        summary=DESCRIBED_STATES,
    ),
    "continuation": Kind(
        "branches of stationary states",
        (*OF_A_STATE, "parameter", "branch", "turning"),
        ("tau", "potential"),
        leading="point",
        made_by="continue_stationary_states",
        check=CHECKS,
        figure="meanfield.plotting.branches:plot_branches",
        numbers=OF_STATES,
        notes=DESCRIBED_BRANCHES,
        summary=DESCRIBED_STATES,
    ),
    "fixed_point_branches": Kind(
        "branches of fixed points",
        (*OF_A_FIXED_POINT, "parameter", "branch", "turning"),
        ("tau",),
        leading="point",
        made_by="continue_fixed_points",
        check=CHECKS,
        figure="meanfield.plotting.branches:plot_branches",
        numbers=OF_STATES,
        notes=DESCRIBED_BRANCHES,
    ),
    "portrait": Kind(
        "phase portrait of two features",
        (*OF_A_FIXED_POINT, "orbit", *PORTRAIT),
        ("tau",),
        leading="state",
        made_by="phase_portrait",
        check=CHECKS,
        figure="meanfield.plotting.results:plot_portrait_alone",
        numbers=OF_STATES,
    ),
    "dynamics": Kind(
        "dynamics of the order parameters",
        (*OF_A_FIXED_POINT, "orbit"),
        ("tau", *PORTRAIT, *ONE_FEATURE, "q_covariance", *RANDOM_STARTS, "quantile"),
        leading="state",
        made_by="analyse_dynamics",
        check=CHECKS,
        figure="meanfield.plotting.dynamics:plot_dynamics",
        numbers=OF_STATES,
        notes="meanfield.families.contrastive.dynamics.description:describe_growth",
        summary="meanfield.families.contrastive.dynamics.description:describe",
    ),
}
