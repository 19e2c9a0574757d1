"""Variables of states: stationary ones, fixed points, branches, portraits, random starts, and what sweeps keep."""

from __future__ import annotations

from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY
from meanfield.problems.variable import Variable

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

FIXED_POINTS = {
    "kind": Variable(
        ("time",),
        "kind of a fixed point: stable or unstable node or focus, saddle, or marginal",
        words=True,
        choices=TYPES_OF_FIXED_POINTS,
    ),
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
