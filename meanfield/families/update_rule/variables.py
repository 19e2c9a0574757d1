"""Declarations of the variables of results of update rules; names are the symbols of update_rules.md."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from meanfield.mckean_vlasov.declarations import (
    AT_REST,
    BRANCHES,
    DENSITY,
    LABELS,
    POSITIVE,
    PROBABILITY,
    SGD,
    SUPPORT_RECOVERY,
    TIMES,
    spectrum_of,
)
from meanfield.mckean_vlasov.declarations import DISTANCES as OF_WEIGHTS
from meanfield.mckean_vlasov.declarations import ORDER_PARAMETERS as SHARED
from meanfield.mckean_vlasov.declarations import STATIONARY as AT_A_STATE
from meanfield.mckean_vlasov.declarations import STATISTICS as SGD_STATISTICS
from meanfield.problems.variable import Variable, recorded, statistics_of
from meanfield.several_vectors.declarations import distances_of, plane_of, sample_of


def _in_time(words: str, *dims: str) -> Variable:
    """What runs are compared by at output times."""
    return recorded(("time", *dims), words, compared=True)


BY_NOISE = "weighted with the eigenvalues of the noise"

ORDER_PARAMETERS = {
    "R": _in_time("overlap R = w.u/N of students and features", "student", "feature"),
    "Q": _in_time("overlap Q = w.w/N of students", "student", "student_"),
    "R_noise": _in_time(f"overlap of students and features, {BY_NOISE}", "student", "feature"),
    "Q_noise": _in_time(f"overlap of students, {BY_NOISE}", "student", "student_"),
    "v": _in_time("side variables v", "side"),
    "observables": _in_time("observables, averaged over samples", "observable"),
    "r": replace(SHARED["r"], last_dims=("student",)),
}

NAMES = {
    f"{dim}_name": Variable((dim,), f"name of {what}", words=True, gaps="never", coordinate=True)
    for dim, what in (("side", "a side variable"), ("observable", "an observable"), ("student", "a student"))
}

SPECTRUM = spectrum_of("the noise") | {
    "R_rho": Variable(
        ("time", "rho", "student", "feature"),
        "overlap of students and features where the eigenvalue is rho, per coordinate",
        gaps="unfinished",
    ),
    "Q_rho": Variable(
        ("time", "rho", "student", "student_"),
        "overlap of students where the eigenvalue is rho, per coordinate",
        gaps="unfinished",
    ),
}

ERRORS = {
    f"{name}_error": replace(
        each, long_name=f"estimated error of {name}", range=POSITIVE, gaps="allowed", compared=False, optional_dims=()
    )
    for name, each in ORDER_PARAMETERS.items()
}

STATISTICS = {"count": SGD_STATISTICS["count"], "quantile": SGD_STATISTICS["quantile"]} | {
    name: variable for row, each in ORDER_PARAMETERS.items() for name, variable in statistics_of(row, each).items()
}

FLUCTUATIONS = {
    "overlap_covariance": Variable(
        ("time", "overlap", "overlap_"),
        "N times the covariance over runs of all of R student by student, Q pair by pair in order of the later, and v",
    )
} | {f"{name}_covariance": STATISTICS[f"{name}_covariance"] for name in ("R", "Q", "v", "observables")}
"""Covariances over runs of SGD that order parameters predict to leading order in 1/N."""

FLUCTUATION_ERRORS = {
    f"{name}_error": Variable(each.dims, f"estimated error of {each.long_name}", range=POSITIVE)
    for name, each in FLUCTUATIONS.items()
}

STATES = AT_REST | {
    "copies": Variable(
        ("time",),
        "number of states that are copies by symmetries, infinite in a continuum",
        range=(1.0, inf),
        gaps="never",
    ),
}

STATIONARY = AT_A_STATE | {
    "multiplier": replace(AT_A_STATE["multiplier"], long_name="factor G of w in the drift"),
    "multiplier_residual": replace(
        AT_A_STATE["multiplier_residual"], long_name="G - (R.g + r - Lambda/2)/Q, zero at a stationary state"
    ),
}

SHARES = {
    "region_share": Variable(("time",), "share of random starts that a state or a copy attracts", range=PROBABILITY)
}

ESCAPE = {
    "deviation": Variable(
        ("time",),
        "length of the linearised change of R at finite N, root mean square over runs",
        range=POSITIVE,
        gaps="unfinished",
    ),
    "deviation_error": Variable(("time",), "estimated error of that length", range=POSITIVE),
    "deviation_rate": Variable(("time",), "growth rate of that length, by differences of output times"),
    "escape_time_quantile": Variable(("quantile",), "time by which a share of runs has escaped", range=POSITIVE),
}

WEIGHTS = {
    "snapshot_time": TIMES["snapshot_time"],
    "weights": Variable(
        ("replica", "snapshot_time", "coordinate", "student"),
        "weights w of students",
        gaps="unfinished",
        needs=("snapshot_time",),
    ),
    "U": SGD["U"],
    "samples": SGD["samples"],
    "rho_of_coordinate": Variable(
        ("replica", "coordinate"), "eigenvalue of the noise of a coordinate", range=POSITIVE, gaps="never"
    ),
}

LAW = {
    **{name: each for name, each in DENSITY.items() if name not in ("q_error", "norm", "r_error")},
    **{name: replace(DENSITY[name], last_dims=("student",)) for name in ("P", "P_w")},
    **{name: each for name, each in plane_of("student").items() if name in ("P_sum", "P_difference")},
    "Lambda": replace(SHARED["Lambda"], last_dims=("student", "student_"), range=(-inf, inf)),
    **sample_of("student"),
    "u": replace(DENSITY["u"], no_index_with=("rho",)),
    "rho_of_node": Variable(
        ("node",), "eigenvalue of the noise at a quadrature node", range=POSITIVE, gaps="never", coordinate=True
    ),
}
"""The density of the weights of students, and what follows from it."""

EIGENVALUE_GROUP = "eigenvalue_group"
"""Dim of groups of eigenvalues, given which weights are compared."""

DISTANCES = OF_WEIGHTS | {
    name.replace("_u", "_rho"): replace(
        each,
        dims=("pair", *each.dims[1:-2], EIGENVALUE_GROUP),
        only=(EIGENVALUE_GROUP,),
        long_name=each.long_name.replace("feature coordinate u", "eigenvalue"),
    )
    for name, each in OF_WEIGHTS.items()
    if name.endswith("_u")
}
"""Distances of densities and weights; given the eigenvalue, too, where coordinates have different variances."""

_OVER_RUNS = STATISTICS | FLUCTUATIONS | FLUCTUATION_ERRORS

VARIABLES = {
    **{"N": LABELS["N"], "time": TIMES["time"]},
    **(NAMES | ORDER_PARAMETERS | SPECTRUM | ERRORS | STATES | SHARES | BRANCHES | ESCAPE | WEIGHTS | _OVER_RUNS),
    "growth_rate_error": Variable(("time",), "estimated error of growth_rate", range=POSITIVE),
    **(LAW | STATIONARY | DISTANCES | distances_of("student") | SUPPORT_RECOVERY),
}
