"""The variables of results: names, dims and meanings, and which of them a result of each method holds.

Names are the paper's symbols, spelled out in the attribute `long_name`. All quantities are dimensionless; `time` is
t = k/N for SGD step k.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """Dims and meaning of a variable; a leading `replica` is optional where `per_replica` says so."""

    dims: tuple[str, ...]
    long_name: str
    per_replica: bool = False


VARIABLES: dict[str, Variable] = {
    "time": Variable(("time",), "time t = k/N"),
    "snapshot_time": Variable(("snapshot_time",), "time t = k/N at which weights were kept"),
    "q": Variable(("time", "feature"), "overlap q = E[u w] of weights and features", per_replica=True),
    "r": Variable(("time",), "prior work r = E[w phi(w)]", per_replica=True),
    "P": Variable(("time", "node", "w"), "conditional density P_t(w|u) at a node, averaged over a cell"),
    "u": Variable(("node", "feature"), "feature coordinate u at a quadrature node"),
    "u_weight": Variable(("node",), "probability weight of a quadrature node"),
    "w": Variable(("w",), "weight w, cell centre"),
    "w_edge": Variable(("edge",), "weight w, cell edge"),
    "q_error": Variable(("time", "feature"), "estimated error of the overlap q"),
    "r_error": Variable(("time",), "estimated error of r"),
    "P_error": Variable(("time",), "estimated L1 error of P, averaged over u"),
    "mass": Variable(("time",), "total probability, conserved"),
    "norm": Variable(("time",), "second moment E[w^2], conserved at 1"),
    "g": Variable(("time", "feature"), "drift gain g"),
    "Lambda": Variable(("time",), "diffusion coefficient Lambda"),
    "multiplier": Variable(("time",), "multiplier G of the norm"),
    "multiplier_residual": Variable(("time",), "G - (q.g + tau r - Lambda/2), zero at a stationary state"),
    "residual": Variable(("time",), "largest of |E[u w] - q| and |E[w^2] - 1|"),
    "quadrature_error": Variable(
        ("time",), "error of q by the quadrature over u and w, as more nodes show it; no estimate where a branch turns"
    ),
    "growth_rate": Variable(("time",), "largest growth rate of small perturbations"),
    "relaxation_rate": Variable(("time",), "slowest relaxation of a conditional density at fixed q, at any u"),
    "eigenvalue_real": Variable(("time", "mode"), "leading eigenvalue with q and the norm taking part, real part"),
    "eigenvalue_imag": Variable(("time", "mode"), "leading eigenvalue with q and the norm taking part, imaginary part"),
    "stability": Variable(("time",), "1 stable, 0 marginal to the accuracy of eigenvalues, -1 unstable"),
    "potential": Variable(("time",), "Lyapunov function V(q) = -int_0^q dq/dt, where there is one"),
    "parameter": Variable(("time",), "value of the key that is varied"),
    "branch": Variable(("time",), "number of the branch that a point belongs to; points are in its order"),
    "turning": Variable(("time",), "1 where the parameter has an extremum along the branch"),
    "kind": Variable(("time",), "kind of a fixed point: stable or unstable node or focus, saddle, or marginal"),
    "orbit": Variable(("time",), "number of the set of fixed points that are copies by flips of features"),
    "q_cell": Variable(("row", "column", "feature"), "overlap q at the centre of a cell of a portrait"),
    "velocity": Variable(("row", "column", "feature"), "dq/dt at the centre of a cell"),
    "region": Variable(("row", "column"), "state that attracts a cell, -1 undecided, -2 outside the unit ball"),
    "region_share": Variable(("time",), "part of the portrait, or of [-1, 1] for one feature, that a state attracts"),
    "separatrix": Variable(("trace", "feature"), "overlap q along stable manifolds of saddles, NaN between curves"),
    "nullcline": Variable(("contour", "feature"), "overlap q where a component of dq/dt vanishes, in no order"),
    "nullcline_component": Variable(("contour",), "number of that component, from 0"),
    "table_error": Variable((), "error of the interpolated velocity in units of the largest one"),
    "line": Variable(("line",), "overlap q of a single feature"),
    "rate": Variable(("line",), "dq/dt of a single feature"),
    "uninformed_rate": Variable(
        ("mode",), "growth rate of small overlaps at q = 0, by feature if these are independent"
    ),
    "learnable_moment": Variable(("bound",), "second moments of hidden variables that are learnable: from, to"),
    "dimension": Variable(("dimension",), "dimension N of a random start"),
    "escape_time_quantile": Variable(
        ("dimension", "quantile"), "quantile of the time at which |q| first escapes from 0"
    ),
    "win_chance": Variable(("dimension", "feature"), "chance that a feature has the largest |q_k| in the end"),
    "pair": Variable(("pair",), "the two results that are compared: first - second"),
    "q_difference": Variable(("pair", "time", "feature"), "second minus first overlap q, means over replicas"),
    "q_standard_error": Variable(("pair", "time", "feature"), "standard error of that difference"),
    "r_difference": Variable(("pair", "time"), "second minus first r, means over replicas"),
    "r_standard_error": Variable(("pair", "time"), "standard error of that difference"),
    "P_l1": Variable(("pair", "time"), "L1 distance of two densities, averaged over u"),
    "W1": Variable(("pair", "snapshot_time"), "Wasserstein-1 distance of pooled weights and density"),
    "W1_expected": Variable(("pair", "snapshot_time"), "mean of W1 for independent samples of that size"),
    "KS": Variable(("pair", "snapshot_time"), "Kolmogorov-Smirnov distance of pooled weights and density"),
    "KS_expected": Variable(("pair", "snapshot_time"), "mean of KS for independent samples of that size"),
    "group_u": Variable(("pair", "feature", "group"), "mean feature coordinate u of a group of weights"),
    "W1_given_u": Variable(("pair", "snapshot_time", "feature", "group"), "W1 within a group"),
    "W1_expected_given_u": Variable(("pair", "snapshot_time", "feature", "group"), "mean of W1 by sampling alone"),
    "KS_given_u": Variable(("pair", "snapshot_time", "feature", "group"), "KS within a group"),
    "KS_expected_given_u": Variable(("pair", "snapshot_time", "feature", "group"), "mean of KS by sampling alone"),
    "weights": Variable(("replica", "snapshot_time", "coordinate"), "weights w of SGD"),
    "U": Variable(("replica", "coordinate", "feature"), "feature matrix U with U^T U = N I"),
    "escape_time": Variable(("replica",), "time t = k/N at which |q| first reached particles.escape_overlap"),
    "winner": Variable(
        ("replica",), "index of the feature with the largest |q_k| at the end; -1 without escape by then"
    ),
    "count": Variable((), "number of replicas in the statistics"),
    "q_mean": Variable(("time", "feature"), "mean of the overlap q over replicas"),
    "q_covariance": Variable(("time", "feature", "feature_"), "N times the covariance of the overlap q over runs"),
    "quantile": Variable(("quantile",), "probability of a quantile"),
    "q_quantile": Variable(("quantile", "time", "feature"), "quantile of the overlap q over replicas"),
    "r_mean": Variable(("time",), "mean of the prior work r over replicas"),
    "r_variance": Variable(("time",), "N times the variance of r over replicas"),
    "status": Variable((), "complete, missing, or failed and why"),
    "q_final": Variable(("feature",), "overlap q at the last time"),
    "q_final_error": Variable(("feature",), "its estimated error: of the discretisation, or of the mean over replicas"),
    "r_final": Variable((), "prior work r = E[w phi(w)] at the last time"),
    "r_final_error": Variable((), "its estimated error: of the discretisation, or of the mean over replicas"),
    "similarity": Variable((), "largest cosine similarity |q| of a state that is not unstable"),
    "least_similarity": Variable((), "least cosine similarity |q| of a state that is not unstable"),
    "state_count": Variable((), "number of stationary states"),
    "stable_count": Variable((), "number of stable states"),
}

OF_A_STATE = (
    "q",
    "r",
    "g",
    "Lambda",
    "multiplier",
    "multiplier_residual",
    "residual",
    "quadrature_error",
    "growth_rate",
    "relaxation_rate",
    "eigenvalue_real",
    "eigenvalue_imag",
    "stability",
)

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

OF_A_PORTRAIT = (
    "q_cell",
    "velocity",
    "region",
    "region_share",
    "separatrix",
    "nullcline",
    "nullcline_component",
    "table_error",
)

METHODS: dict[str, tuple[str, ...]] = {
    "density": ("time", "q", "r", "P", "u", "u_weight", "w", "w_edge", "mass", "norm", "g", "Lambda"),
    "order_parameters": ("time", "q", "g", "Lambda"),
    "stationary": (*OF_A_STATE, "P", "u", "u_weight", "w", "w_edge"),
    "continuation": (*OF_A_STATE, "parameter", "branch", "turning"),
    "fixed_point_branches": (*OF_A_FIXED_POINT, "parameter", "branch", "turning"),
    "portrait": (*OF_A_FIXED_POINT, "orbit", *OF_A_PORTRAIT),
    "dynamics": (*OF_A_FIXED_POINT, "orbit"),
    "comparison": (
        "pair",
        "time",
        "snapshot_time",
        "q_difference",
        "q_standard_error",
        "r_difference",
        "r_standard_error",
        "P_l1",
        "W1",
        "W1_expected",
        "KS",
        "KS_expected",
        "group_u",
        "W1_given_u",
        "W1_expected_given_u",
        "KS_given_u",
        "KS_expected_given_u",
    ),
    "particles": ("time", "q", "r"),
    "sweep": ("status",),
    "ensemble": ("time", "count", "q_mean", "q_covariance", "quantile", "q_quantile", "r_mean", "r_variance"),
}
"""Variables that a result of each method must hold."""

NAMES = ("pair", "kind", "status")
"""Variables that are words and have no units."""

OPTIONAL: dict[str, tuple[str, ...]] = {
    "dynamics": (
        *OF_A_PORTRAIT,
        "line",
        "rate",
        "q_covariance",
        "uninformed_rate",
        "learnable_moment",
        "dimension",
        "quantile",
        "escape_time_quantile",
        "win_chance",
    ),
    "density": ("q_error", "r_error", "P_error"),
    "order_parameters": ("q_covariance",),
    "stationary": ("potential",),
    "continuation": ("potential",),
    "particles": ("snapshot_time", "weights", "U", "escape_time", "winner"),
    "ensemble": ("escape_time", "winner"),
}
"""Variables that it may hold besides."""

INSTEAD_OF_TIME = {
    "stationary": "state",
    "continuation": "point",
    "fixed_point_branches": "point",
    "portrait": "state",
    "dynamics": "state",
}
"""The leading dim of methods whose results are not in time."""
