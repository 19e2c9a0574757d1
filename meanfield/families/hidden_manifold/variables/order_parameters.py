"""Order parameters, their densities along eigenvectors, and their statistics over replicas of SGD."""

from __future__ import annotations

from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY
from meanfield.mckean_vlasov.declarations import STATISTICS as SGD_STATISTICS
from meanfield.problems.variable import Variable

_RUNS = ("replica",)
_STUDENTS = ("time", "student", "student_")

ORDER_PARAMETERS = {
    "Q": Variable(
        _STUDENTS,
        "covariance Q of the student's fields, averaged over components",
        optional_dims=_RUNS,
        gaps="unfinished",
        compared=True,
    ),
    "R": Variable(
        ("time", "student", "teacher"),
        "covariance R of student's and teacher's fields, averaged over components",
        optional_dims=_RUNS,
        gaps="unfinished",
        compared=True,
    ),
    "generalisation_error": Variable(
        ("time",),
        "generalisation error E[Delta^2]/2",
        optional_dims=_RUNS,
        range=POSITIVE,
        gaps="unfinished",
        compared=True,
    ),
    "v": Variable(("time", "student"), "second layer v of the student", optional_dims=_RUNS, gaps="unfinished"),
    "Omega": Variable(_STUDENTS, "overlap W.W/N of the student's weights", optional_dims=_RUNS, gaps="unfinished"),
    "Sigma": Variable(
        _STUDENTS, "overlap S.S/D of the student's weights in latent space", optional_dims=_RUNS, gaps="unfinished"
    ),
    "T": Variable(("teacher", "teacher_"), "overlap T of the teacher's vectors", gaps="never"),
    "field_mean": Variable(
        ("time", "component", "student"),
        "mean of the student's fields in a component",
        optional_dims=_RUNS,
        gaps="unfinished",
    ),
    "Q_component": Variable(
        ("time", "component", "student", "student_"),
        "covariance of the student's fields in a component",
        optional_dims=_RUNS,
        gaps="unfinished",
    ),
    "R_component": Variable(
        ("time", "component", "student", "teacher"),
        "covariance of student's and teacher's fields in a component",
        optional_dims=_RUNS,
        gaps="unfinished",
    ),
    "component_weight": Variable(
        ("component",), "probability of a component", range=PROBABILITY, gaps="never", coordinate=True
    ),
    "component_scale": Variable(
        ("component",), "standard deviation of latents in a component", range=POSITIVE, gaps="never", coordinate=True
    ),
    "Q_error": Variable(_STUDENTS, "estimated error of Q", range=POSITIVE),
    "R_error": Variable(("time", "student", "teacher"), "estimated error of R", range=POSITIVE),
    "generalisation_error_error": Variable(
        ("time",),
        "estimated error of the generalisation error, of SGD the standard error of its samples",
        optional_dims=_RUNS,
        range=POSITIVE,
        gaps="unfinished",
    ),
}

SPECTRUM = {
    "rho": Variable(("node",), "eigenvalue rho of F F^T/N at a node", range=POSITIVE, gaps="never", coordinate=True),
    "rho_weight": Variable(("node",), "weight of a node", range=PROBABILITY, gaps="never", coordinate=True),
    "r": Variable(
        ("time", "node", "student", "teacher"),
        "density r(rho) of the overlap of student and teacher along eigenvectors",
        gaps="unfinished",
    ),
    "sigma": Variable(
        ("time", "node", "student", "student_"),
        "density sigma(rho) of the student's overlap along eigenvectors",
        gaps="unfinished",
    ),
}

ROWS = ("Q", "R", "Omega", "Sigma", "v", "generalisation_error", "field_mean")
"""Order parameters that SGD keeps of every replica."""


def _statistics(name: str) -> dict[str, Variable]:
    """Mean, covariance and quantiles over replicas of an order parameter; dims that occur twice are marked by _."""
    row = ORDER_PARAMETERS[name]
    what, dims, again = row.long_name.partition(",")[0], row.dims, list(row.dims)
    for dim in row.dims[1:]:
        while dim in again:
            dim += "_"
        again.append(dim)
    spread = "covariance" if len(dims) > 1 else "variance"
    return {
        f"{name}_mean": Variable(dims, f"mean of the {what} over replicas", gaps="unfinished"),
        f"{name}_{spread}": Variable(tuple(again), f"N times the {spread} of the {what} over replicas"),
        f"{name}_quantile": Variable(("quantile", *dims), f"quantile of the {what} over replicas", gaps="unfinished"),
    }


STATISTICS = {"count": SGD_STATISTICS["count"], "quantile": SGD_STATISTICS["quantile"]} | {
    name: variable for row in ROWS for name, variable in _statistics(row).items()
}

OF_FRESH_SAMPLES = _statistics("generalisation_error_error")
"""Statistics of standard errors, which ensembles of earlier versions do not have."""

AVERAGED = {
    "relaxation_steps": Variable(
        ("time",),
        "relaxation time of the means of the student's fields in steps of SGD, where these move within single steps",
        range=POSITIVE,
        gaps="unfinished",
    ),
}

FLUCTUATIONS = ("Q_covariance", "R_covariance", "v_covariance", "generalisation_error_variance")
"""Statistics over runs of SGD that order parameters predict to leading order in 1/N."""

FLUCTUATION_ERRORS = {
    f"{name}_error": Variable(STATISTICS[name].dims, f"estimated error of {STATISTICS[name].long_name}", range=POSITIVE)
    for name in FLUCTUATIONS
}
