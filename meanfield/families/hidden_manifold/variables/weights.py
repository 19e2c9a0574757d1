"""Variables of densities of weights, of weights of SGD, and of distances between them."""

from __future__ import annotations

from dataclasses import replace

from meanfield.mckean_vlasov.declarations import DENSITY as LIMIT
from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY, TIMES
from meanfield.problems.variable import Variable

DENSITY = {
    "P": Variable(
        ("time", "student", "node", "w"),
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
        ("time", "node", "student", "teacher"),
        "mean of a student's weights given the eigenvalue, per component of the teacher",
        gaps="unfinished",
    ),
    "spread": Variable(
        ("time", "node", "student"),
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
"""Distances of densities and weights, by `meanfield.families.hidden_manifold.density.weights`."""
