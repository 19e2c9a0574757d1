"""Variables and kinds of results that families share whose limit is a density of weights and feature coordinates.

Names are the papers' symbols, spelled out in `long_name`. All quantities are dimensionless; `time` is t = k/N for SGD
step k.
"""

from __future__ import annotations

from math import inf

from meanfield.problems.kind import Kind
from meanfield.problems.variable import Variable, recorded

SUM_TOLERANCE = 1e-6
"""Largest deviation from 1 of a sum of probabilities, by rounding."""

POSITIVE = (0.0, inf)
PROBABILITY = (0.0, 1.0 + SUM_TOLERANCE)

ODE_ACCURACY = 1e-8
"""Largest error of order parameters: each of their steps is right to 1e-11."""

LABELS = {
    "N": Variable((), "dimension N", range=(1.0, inf), gaps="never", coordinate=True, label="dimension"),
    "tau": Variable((), "learning rate tau", range=POSITIVE, gaps="never", coordinate=True, label="learning_rate"),
}


def cell_variables(dim: str, words: str, where: str = "middle of a cell") -> dict[str, Variable]:
    """Places of cells along a dim, and their edges."""
    return {
        dim: Variable((dim,), f"{words}, {where}", gaps="never", increasing=True, bounds=f"{dim}_bnds"),
        f"{dim}_bnds": Variable((dim, "bounds"), f"{words}, edges of a cell", gaps="never", coordinate=True),
    }


SPHERE_CELLS = cell_variables("polar", "polar angle in radians") | cell_variables("azimuth", "azimuth in radians")
"""Cells of `meanfield.numerics.sphere_cells.SphereCells`, on which densities of directions are averaged."""

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
"""Branches of solutions, `meanfield.numerics.continuation`, as a key of the problem varies."""

TYPES_OF_FIXED_POINTS = ("stable node", "stable focus", "saddle", "unstable node", "unstable focus", "marginal")

AT_REST = {
    "residual": Variable(
        ("time",),
        "largest rate of change at a fixed point",
        range=POSITIVE,
        conserved=("equations of the fixed point, largest residual", 0.0),
    ),
    "growth_rate": Variable(("time",), "largest growth rate of small perturbations"),
    "unstable_directions": Variable(
        ("time",), "number of independent perturbations that grow", range=POSITIVE, gaps="never"
    ),
    "stability": Variable(
        ("time",),
        "1 stable, 0 marginal to the accuracy of eigenvalues, -1 unstable",
        range=(-1.0, 1.0),
        gaps="never",
    ),
    "eigenvalue_real": Variable(("time", "mode"), "leading eigenvalue of small perturbations, real part"),
    "eigenvalue_imag": Variable(("time", "mode"), "leading eigenvalue of small perturbations, imaginary part"),
    "kind": Variable(
        ("time",),
        "kind of a fixed point: stable or unstable node or focus, saddle, or marginal",
        words=True,
        choices=TYPES_OF_FIXED_POINTS,
    ),
}
"""Fixed points of order parameters."""


STATIONARY = {
    "multiplier": Variable(("time",), "multiplier G of the norm"),
    "multiplier_residual": Variable(
        ("time",),
        "G - (q.g + tau r - Lambda/2), zero at a stationary state",
        conserved=("multiplier of the norm, largest residual", 0.0),
    ),
    "relaxation_rate": Variable(("time",), "slowest relaxation of a conditional density at fixed q, at any u"),
}
"""What stationary states of a density have besides; the residual is that of E[w^2] = 1."""


def spectrum_of(matrix: str) -> dict[str, Variable]:
    """Eigenvalues of a matrix: quadrature nodes of their law."""
    return {
        "rho": Variable(("rho",), f"eigenvalue rho of {matrix}", range=POSITIVE, gaps="never"),
        "rho_weight": Variable(("rho",), "share of an eigenvalue", range=PROBABILITY, gaps="never", coordinate=True),
    }


TIMES = {
    "time": Variable(("time",), "time t = k/N after k steps", range=POSITIVE, gaps="never", increasing=True),
    "snapshot_time": Variable(
        ("snapshot_time",),
        "time t = k/N after k steps, at which weights were kept",
        range=POSITIVE,
        gaps="never",
        increasing=True,
    ),
}

ORDER_PARAMETERS = {
    "q": recorded(("time", "feature"), "overlap q = E[u w] of weights and features", compared=True),
    "g": Variable(("time", "feature"), "drift gain g", gaps="unfinished"),
    "Lambda": Variable(("time",), "diffusion coefficient Lambda", range=POSITIVE, gaps="unfinished"),
    "r": recorded(("time",), "prior work r = E[w phi(w)]", compared=True),
}

DENSITY = {
    "P": Variable(
        ("time", "node", "w"),
        "conditional density P_t(w|u) at a node, averaged over a cell",
        range=(-SUM_TOLERANCE, inf),
        gaps="unfinished",
    ),
    "P_w": Variable(
        ("time", "w"),
        "density P_t(w) of weights alone, averaged over a cell",
        range=(-SUM_TOLERANCE, inf),
        gaps="unfinished",
    ),
    "u": Variable(
        ("node", "feature"),
        "feature coordinate u at a quadrature node",
        gaps="never",
        coordinate=True,
        index_of="node",
    ),
    "u_weight": Variable(
        ("node",), "probability weight of a quadrature node", range=PROBABILITY, gaps="never", coordinate=True
    ),
    "w": Variable(("w",), "weight w, cell centre", gaps="never", increasing=True, bounds="w_bnds"),
    "w_bnds": Variable(("w", "bounds"), "weight w, edges of a cell", gaps="never", coordinate=True),
    "q_error": Variable(("time", "feature"), "estimated error of the overlap q", range=POSITIVE),
    "r_error": Variable(("time",), "estimated error of r", range=POSITIVE),
    "P_error": Variable(("time",), "estimated L1 error of P, averaged over u, and of P_w", range=POSITIVE),
    "F_error": Variable(
        ("time",), "estimated error of distribution functions of single weights, averaged over u", range=POSITIVE
    ),
    "critical_weight": Variable(
        ("time",), "weight beyond which weights run away, where the norm condenses", range=POSITIVE
    ),
    "runaway_weights": Variable(("time",), "share of the weights beyond the critical weight", range=PROBABILITY),
    "runaway_norm": Variable(("time",), "part of E[w^2] beyond the critical weight", range=POSITIVE),
    "mass": Variable(
        ("time",),
        "total probability, conserved",
        gaps="unfinished",
        conserved=("total probability, largest |mass - 1|", 1.0),
    ),
    "norm": Variable(
        ("time",),
        "second moment E[w^2], conserved at 1",
        range=POSITIVE,
        gaps="unfinished",
        conserved=("second moment, largest |E[w²] - 1|", 1.0),
    ),
}

SGD = {
    "weights": Variable(
        ("replica", "snapshot_time", "coordinate"), "weights w of SGD", gaps="unfinished", needs=("snapshot_time", "U")
    ),
    "U": Variable(("replica", "coordinate", "feature"), "feature matrix U with U^T U = N I", gaps="unfinished"),
    "samples": Variable(("sample", "coordinate"), "inputs x of the first run, evenly spread over its steps"),
}

STATISTICS = {
    "count": Variable((), "number of replicas in the statistics", range=POSITIVE, gaps="never"),
    "q_mean": Variable(("time", "feature"), "mean of the overlap q over replicas", gaps="unfinished"),
    "q_covariance": Variable(("time", "feature", "feature_"), "N times the covariance of the overlap q over runs"),
    "quantile": Variable(("quantile",), "probability of a quantile", range=(0.0, 1.0), gaps="never", increasing=True),
    "q_quantile": Variable(
        ("quantile", "time", "feature"), "quantile of the overlap q over replicas", gaps="unfinished"
    ),
    "r_mean": Variable(("time",), "mean of the prior work r over replicas", gaps="unfinished"),
    "r_variance": Variable(("time",), "N times the variance of r over replicas", range=POSITIVE),
}

_GROUPS = ("pair", "snapshot_time", "feature", "group")

DISTANCES = {
    "P_l1": Variable(
        ("pair", "time"), "L1 distance of two densities, averaged over u", range=POSITIVE, bounded_by="P_error"
    ),
    "W1": Variable(
        ("pair", "snapshot_time"),
        "Wasserstein-1 distance of pooled weights and density",
        range=POSITIVE,
        judged=True,
    ),
    "W1_expected": Variable(
        ("pair", "snapshot_time"), "mean of W1 for independent samples of that size", range=POSITIVE
    ),
    "KS": Variable(
        ("pair", "snapshot_time"),
        "Kolmogorov-Smirnov distance of pooled weights and density",
        range=PROBABILITY,
        judged=True,
    ),
    "KS_expected": Variable(("pair", "snapshot_time"), "mean of KS for independent samples of that size"),
    "group_u": Variable(
        ("pair", "feature", "group"), "mean feature coordinate u of a group of weights", coordinate=True
    ),
    "W1_given_u": Variable(_GROUPS, "W1 within a group", range=POSITIVE, judged=True),
    "W1_expected_given_u": Variable(_GROUPS, "mean of W1 of as many independent weights", range=POSITIVE),
    "KS_given_u": Variable(_GROUPS, "KS within a group", range=PROBABILITY, judged=True),
    "KS_expected_given_u": Variable(_GROUPS, "mean of KS of as many independent weights"),
}
"""Distances of densities and weights, by `meanfield.comparison.weights`."""


KEPT_BY_SWEEPS = {
    "q_final": Variable(("feature",), "overlap q at the last time"),
    "q_final_error": Variable(
        ("feature",), "its estimated error: of the discretisation, or of the mean over replicas", range=POSITIVE
    ),
    "r_final": Variable((), "prior work r = E[w phi(w)] at the last time"),
    "r_final_error": Variable(
        (), "its estimated error: of the discretisation, or of the mean over replicas", range=POSITIVE
    ),
}

_RATES = {
    "share_below": (("time", "threshold"), "share of weights with |w| up to a threshold"),
    "true_positive_rate": (("time", "feature", "threshold"), "share of coordinates that are not 0 that is found"),
    "false_positive_rate": (("time", "feature", "threshold"), "share of coordinates that are 0 that is found"),
    "sign_error_rate": (
        ("time", "feature", "threshold"),
        "share of coordinates that are not 0 that is found with the wrong sign",
    ),
}

_SQUARES = {
    "mean_square_error": (("time", "feature"), "mean of (w - u)^2"),
    "debiased_mean_square_error": (("time", "feature", "gain"), "mean of (w + phi(w)/gain - u)^2"),
}

_RECOVERED = {
    name: Variable(dims, words, optional_dims=("replica",), range=limits, compared=True)
    for limits, rows in ((PROBABILITY, _RATES), (POSITIVE, _SQUARES))
    for name, (dims, words) in rows.items()
}

SUPPORT_RECOVERY = (
    {
        "threshold": Variable(
            ("threshold",), "|w| above which a coordinate is found", range=POSITIVE, gaps="never", increasing=True
        ),
        "gain": Variable(
            ("gain",),
            "rate at which training without the prior pulls a weight to u",
            range=POSITIVE,
            gaps="never",
            increasing=True,
        ),
    }
    | _RECOVERED
    | {
        f"{name}_error": Variable(each.dims, f"estimated error of the {each.long_name}", range=POSITIVE)
        for name, each in _RECOVERED.items()
    }
)
"""Which coordinates of features are found, by `meanfield.support_recovery`."""

VARIABLES = (
    LABELS | TIMES | ORDER_PARAMETERS | DENSITY | SGD | STATISTICS | DISTANCES | KEPT_BY_SWEEPS | SUPPORT_RECOVERY
)

REDUCTIONS = {
    "final": "meanfield.sweep.reductions:final",
    "trajectory": "meanfield.sweep.reductions:trajectory",
}
"""Reductions of results in time that sweeps may keep."""

KINDS = {
    "density": Kind(
        "density of weights and features, from the Fokker-Planck equation",
        ("time", "q", "r", "P", "u", "u_weight", "w", "w_bnds", "mass", "norm", "g", "Lambda"),
        (
            *("tau", "P_w", "q_error", "r_error", "P_error", "F_error"),
            *("critical_weight", "runaway_weights", "runaway_norm"),
        ),
        check="meanfield.mckean_vlasov.checks:faults",
        figure="meanfield.plotting.results:plot_density_run",
        numbers="meanfield.report.key_numbers:of_the_limit",
    ),
    "order_parameters": Kind(
        "order parameters, from the reduced ODEs",
        ("time", "q", "g", "Lambda"),
        ("tau", "q_covariance"),
        check="meanfield.mckean_vlasov.checks:faults",
        figure="meanfield.plotting.results:plot_order_parameter_run",
        accuracy=ODE_ACCURACY,
        numbers="meanfield.report.key_numbers:of_the_limit",
    ),
    "particles": Kind(
        "stochastic gradient descent at finite N",
        ("time", "q", "r"),
        ("N", "tau", "snapshot_time", *SGD),
        check="meanfield.mckean_vlasov.checks:faults",
        figure="meanfield.plotting.results:plot_particle_run",
        numbers="meanfield.report.key_numbers:of_particles",
    ),
    "ensemble": Kind(
        "stochastic gradient descent at finite N, statistics of an ensemble",
        ("time", "count", "q_mean", "q_covariance", "quantile", "q_quantile", "r_mean", "r_variance"),
        ("N", "tau"),
        check="meanfield.mckean_vlasov.checks:faults",
        figure="meanfield.plotting.results:plot_ensemble",
        numbers="meanfield.report.key_numbers:of_an_ensemble",
    ),
    "support_recovery": Kind(
        "support recovery: coordinates of features that weights above a threshold find",
        ("time", "threshold", *_RATES, "mean_square_error"),
        tuple(name for name in SUPPORT_RECOVERY if name not in ("threshold", *_RATES, "mean_square_error")),
        made_by="support_recovery",
        figure="meanfield.plotting.support_recovery:plot_support_recovery",
    ),
}
