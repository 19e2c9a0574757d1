"""Declarations of the variables of hidden-manifold results; names are the symbols of hidden_manifold.md."""

from __future__ import annotations

from dataclasses import replace

from meanfield.mckean_vlasov.declarations import AT_REST, POSITIVE, PROBABILITY, TIMES, spectrum_of
from meanfield.mckean_vlasov.declarations import DENSITY as LIMIT
from meanfield.mckean_vlasov.declarations import STATISTICS as SGD_STATISTICS
from meanfield.problems.variable import Variable, averages_of, recorded, statistics_of

_STUDENTS = ("time", "student", "student_")

ORDER_PARAMETERS = {
    "Q": recorded(_STUDENTS, "covariance Q of the student's fields, averaged over components", compared=True),
    "R": recorded(
        ("time", "student", "teacher"),
        "covariance R of student's and teacher's fields, averaged over components",
        compared=True,
    ),
    "generalisation_error": recorded(("time",), "generalisation error E[Delta^2]/2", range=POSITIVE, compared=True),
    "v": recorded(("time", "student"), "second layer v of the student", compared=True),
    "Omega": recorded(_STUDENTS, "overlap W.W/N of the student's weights"),
    "Sigma": recorded(_STUDENTS, "overlap S.S/D of the student's weights in latent space"),
    "T": Variable(("teacher", "teacher_"), "overlap T of the teacher's vectors", gaps="never"),
    "field_mean": recorded(("time", "component", "student"), "mean of the student's fields in a component"),
    "Q_component": recorded(
        ("time", "component", "student", "student_"), "covariance of the student's fields in a component"
    ),
    "R_component": recorded(
        ("time", "component", "student", "teacher"), "covariance of student's and teacher's fields in a component"
    ),
    "component_weight": Variable(
        ("component",), "probability of a component", range=PROBABILITY, gaps="never", coordinate=True
    ),
    "component_scale": Variable(
        ("component",), "standard deviation of latents in a component", range=POSITIVE, gaps="never", coordinate=True
    ),
    "Q_error": Variable(_STUDENTS, "estimated error of Q", range=POSITIVE),
    "R_error": Variable(("time", "student", "teacher"), "estimated error of R", range=POSITIVE),
    "v_error": Variable(("time", "student"), "estimated error of v", range=POSITIVE),
    "generalisation_error_error": recorded(
        ("time",),
        "estimated error of the generalisation error, of SGD the standard error of its samples",
        range=POSITIVE,
    ),
}

SPECTRUM = spectrum_of("F F^T/N") | {
    "r": Variable(
        ("time", "rho", "student", "teacher"),
        "density r(rho) of the overlap of student and teacher along eigenvectors",
        gaps="unfinished",
    ),
    "sigma": Variable(
        ("time", "rho", "student", "student_"),
        "density sigma(rho) of the student's overlap along eigenvectors",
        gaps="unfinished",
    ),
}

AVERAGES = averages_of(ORDER_PARAMETERS, ("Q", "R", "v", "generalisation_error")) | {
    "overlap_average": recorded(_STUDENTS, "overlap W.W'/N of the student's weights and their average", compared=True)
}
"""Order parameters of averages of the student's weights, where `training.average_rate` asks for them."""

AVERAGE_ERRORS = {
    f"{name}_error": Variable(known.dims, f"estimated error of {name}", range=POSITIVE)
    for name, known in AVERAGES.items()
}
AVERAGE_ERRORS |= averages_of(ORDER_PARAMETERS, ["generalisation_error"], ["_error"])

ROWS = ("Q", "R", "Omega", "Sigma", "v", "generalisation_error", "field_mean")
"""Order parameters that SGD keeps of every replica."""

CELLS = 240
"""Number of cells of a density in w, even, so that w = 0 is an edge."""

DENSITY = {
    "P": Variable(
        ("time", "student", "rho", "w"),
        "density of a student's weights along eigenvectors, given the eigenvalue, averaged over a cell",
        range=POSITIVE,
        gaps="unfinished",
    ),
    "P_w": Variable(
        ("time", "student", "w"),
        "density of a student's weights along eigenvectors, averaged over a cell",
        range=POSITIVE,
        gaps="unfinished",
    ),
    "w": replace(LIMIT["w"], long_name="component w of weights along an eigenvector, cell centre"),
    "w_bnds": LIMIT["w_bnds"],
    "regression": Variable(
        ("time", "rho", "student", "teacher"),
        "mean of a student's weights given the eigenvalue, per component of the teacher",
        gaps="unfinished",
    ),
    "spread": Variable(
        ("time", "rho", "student"),
        "standard deviation of a student's weights given the eigenvalue and the teacher's components",
        range=POSITIVE,
        gaps="unfinished",
    ),
}

WEIGHTS = {
    "snapshot_time": TIMES["snapshot_time"],
    "S": Variable(
        ("replica", "snapshot_time", "student", "coordinate"),
        "components S = W F^T/sqrt(N) of the student's weights along eigenvectors",
        gaps="unfinished",
        needs=("snapshot_time", "teacher_components", "rho_of_coordinate"),
    ),
    "teacher_components": Variable(
        ("replica", "coordinate", "teacher"), "components of the teacher's vectors along eigenvectors", gaps="never"
    ),
    "rho_of_coordinate": Variable(
        ("replica", "coordinate"), "eigenvalue of F F^T/N of an eigenvector", range=POSITIVE, gaps="never"
    ),
}

_PLACES = ("pair", "snapshot_time", "student")

DISTANCES = {
    "W1": Variable(_PLACES, "Wasserstein-1 distance of residuals of weights", range=POSITIVE, judged=True),
    "W1_expected": Variable(_PLACES, "mean of W1 for independent samples of that size", range=POSITIVE),
    "KS": Variable(_PLACES, "Kolmogorov-Smirnov distance of residuals of weights", range=PROBABILITY, judged=True),
    "KS_expected": Variable(_PLACES, "mean of KS for independent samples of that size"),
}
"""Distances of densities and weights, by `meanfield.families.hidden_manifold.density`."""

DISCREPANCIES = {
    f"{name}_rmse": Variable(
        ("pair", *ORDER_PARAMETERS[name].dims[1:]),
        f"root mean square over output times of the difference of {name}, means over replicas",
        range=POSITIVE,
    )
    for name in ("Q", "R", "v")
}
"""What Bae and Jeong (2024), equation (18), call tLog-RMSE where output times are evenly spaced in their logarithms."""

REDUCED = {
    "latent_divergence": Variable((), "KL(P, N(0, 1)) of the law of a latent before standardisation", range=POSITIVE),
    **{
        key: Variable(
            (),
            f"{words} of the root mean square over output times of the difference of {name} from the ODE "
            "of its own start, mean over entries and replicas",
            range=POSITIVE,
        )
        for name in ("Q", "R", "v")
        for key, words in ((f"{name}_discrepancy", "mean"), (f"{name}_discrepancy_error", "standard error"))
    },
}
"""What sweeps keep by `meanfield.families.hidden_manifold.discrepancy`."""

STATES = {name: each for name, each in AT_REST.items() if name != "kind"} | {
    "leading_direction": Variable(
        ("time", "student", "teacher"), "change of R along the leading perturbation, with largest entry 1"
    ),
}

ESCAPE = {
    "antisymmetric_part": Variable(
        ("time",),
        "length of the part of R that tells students apart, a standard deviation for random starts",
        range=POSITIVE,
        gaps="unfinished",
    ),
    "antisymmetric_part_error": Variable(("time",), "estimated error of that length", range=POSITIVE),
    "antisymmetric_rate": Variable(("time",), "growth rate of that length"),
    "escape_time_quantile": Variable(
        ("quantile",), "time by which a share of starts has left the symmetric plateau", range=POSITIVE
    ),
}

_THEORIES = {
    "conventional": "by the theory of standard Gaussian latents",
    "matched": "by one Gaussian with the mean and covariance of the latents",
}

ASSUMPTIONS = {
    "regime": Variable(
        (),
        "kind of latents: Gaussian, I component per coordinate, II per sample, III means of length sqrt(N)",
        words=True,
        choices=("Gaussian", "I", "II", "III"),
    ),
    "component_mean_norm": Variable(
        ("component",), "length of the mean of latents in a component", range=POSITIVE, gaps="never"
    ),
    "teacher_field_mean": Variable(
        ("component", "teacher"), "mean of the teacher's fields in a component", gaps="never"
    ),
    "input_mean": Variable(
        ("component",), "root mean square of the means of inputs in a component", range=POSITIVE, gaps="never"
    ),
    "f_slope": Variable(("component",), "b = E[u f(s u)] in a component", gaps="never"),
    "f_square": Variable(("component",), "c = E[f(s u)^2] in a component", range=POSITIVE, gaps="never"),
    "radius_variance": Variable((), "variance of |C|^2/D from sample to sample, in the limit", range=POSITIVE),
    "kurtosis": Variable(("time", "student"), "kurtosis of the student's fields, 3 if Gaussian", range=POSITIVE),
    "teacher_kurtosis": Variable(("teacher",), "kurtosis of the teacher's fields, 3 if Gaussian", range=POSITIVE),
} | {
    f"{name}_{theory}": Variable(
        ORDER_PARAMETERS[name].dims,
        f"{ORDER_PARAMETERS[name].long_name.partition(',')[0]} {words}",
        gaps="unfinished",
    )
    for theory, words in _THEORIES.items()
    for name in ("Q", "R", "generalisation_error")
}


STATISTICS = {"count": SGD_STATISTICS["count"], "quantile": SGD_STATISTICS["quantile"]} | {
    name: variable for row in ROWS for name, variable in statistics_of(row, ORDER_PARAMETERS[row]).items()
}


OF_FRESH_SAMPLES = statistics_of("generalisation_error_error", ORDER_PARAMETERS["generalisation_error_error"])
"""Statistics of standard errors, which ensembles of earlier versions do not have."""


AVERAGE_ROWS = AVERAGES | {name: AVERAGE_ERRORS[name] for name in ("generalisation_error_average_error",)}
"""Variables that SGD keeps of averages."""

AVERAGE_STATISTICS = {
    name: variable for row, known in AVERAGE_ROWS.items() for name, variable in statistics_of(row, known).items()
}


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
