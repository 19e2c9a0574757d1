"""Variables of critical points of a filter."""

from __future__ import annotations

from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY
from meanfield.problems.variable import Variable

YES_OR_NO = (0.0, 1.0)

CRITICAL_POINTS = {
    "energy": Variable(
        ("time",),
        "energy E_alpha = tr C_alpha[f]/2 of the outputs f",
        optional_dims=("replica",),
        gaps="unfinished",
        compared=True,
    ),
    "objective": Variable(("time",), "objective G of a network of this filter alone", gaps="never"),
    "eigenvalue": Variable(("time",), "w.A w, the eigenvalue of a filter that is an eigenvector of A(w)", gaps="never"),
    "rate": Variable(("time",), "largest growth rate of small deviations, alpha moving with the filter"),
    "rate_frozen": Variable(("time",), "largest growth rate of small deviations, alpha held fixed"),
    "stable": Variable(("time",), "1 where filters come to it from all sides, else 0", range=YES_OR_NO, gaps="never"),
    "wall": Variable(("time",), "1 on a wall w.x = 0 of an atom, else 0", range=YES_OR_NO, gaps="never"),
    "lme": Variable(
        ("time",),
        "1 for a locally maximal eigenvector: of the simple top eigenvalue of A(w)",
        range=YES_OR_NO,
        gaps="never",
    ),
    "gap": Variable(("time",), "gap of the two largest eigenvalues of A(w)", range=POSITIVE, gaps="never"),
    "basin_share": Variable(
        ("time",), "share of the sphere from which filters come to it", range=PROBABILITY, gaps="never"
    ),
}
