"""Variables of fixed points, and of the escape from them."""

from __future__ import annotations

from meanfield.mckean_vlasov.declarations import POSITIVE
from meanfield.problems.variable import Variable

STATES = {
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
