"""Variables of starts at random: growth from nothing, and who escapes when."""

from __future__ import annotations

from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY
from meanfield.problems.variable import Variable

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
