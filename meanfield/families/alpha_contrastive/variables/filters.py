"""Variables of filters and of networks of them, which several methods share."""

from __future__ import annotations

from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY
from meanfield.problems.variable import Variable

FILTERS = {
    "w": Variable(("time", "coordinate"), "filter w, of length 1", range=(-1.0 - 1e-9, 1.0 + 1e-9), gaps="never"),
}

NETWORKS = {
    "G": Variable((), "objective G of the network", optional_dims=("time",), gaps="unfinished"),
    "certificate_gap": Variable(
        (),
        "E_alpha of the best filter above its average over the network, a bound of what is missing to the best G",
        optional_dims=("time",),
        range=POSITIVE,
        gaps="unfinished",
    ),
}

OPTIMAL = {
    "weight": Variable(("time",), "weight of a filter, its share of the network", range=PROBABILITY, gaps="never"),
}
