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
    "roughness": Variable(
        ("time",), "largest rate at which A(v) w changes with v along the sphere, between walls", range=POSITIVE
    ),
    "power_factor": Variable(
        ("time",),
        "factor by which a step of power iteration takes filters beside it towards it, if less than 1, or away",
        range=POSITIVE,
    ),
    "cosine_top": Variable(("time",), "c, the cosine of the filter and the top eigenvector of A(w)", range=PROBABILITY),
    "mu": Variable(("time",), "mu = (1 + c)/(2 c^2) (l_2/l_1)^2 of the existence theorem", range=POSITIVE),
    "nu": Variable(
        ("time",), "nu = 2 kappa L^2 (1 + mu c) + (2 L/gap) sqrt(mu (1 + mu c)) of that theorem", range=POSITIVE
    ),
    "omega": Variable(("time",), "omega = mu + nu: below 1 around it, power iteration converges", range=POSITIVE),
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
        ("time",), "1 where the parameter has an extremum along the branch", range=YES_OR_NO, gaps="never"
    ),
}
