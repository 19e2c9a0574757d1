"""Variables that sweeps keep of states and of channels."""

from __future__ import annotations

from meanfield.mckean_vlasov.declarations import POSITIVE, PROBABILITY
from meanfield.problems.variable import Variable

KEPT_BY_SWEEPS = {
    "similarity": Variable((), "largest cosine similarity |q| of a state that is not unstable", range=PROBABILITY),
    "least_similarity": Variable((), "least cosine similarity |q| of a state that is not unstable", range=PROBABILITY),
    "state_count": Variable((), "number of stationary states", range=POSITIVE),
    "stable_count": Variable((), "number of stable states", range=POSITIVE),
    "collapsed_share": Variable(
        (), "share of the pairs of channels that have learnt one feature and coincide", range=PROBABILITY
    ),
    "tilted_share": Variable(
        (), "share of the pairs of channels that have learnt one feature and do not coincide", range=PROBABILITY
    ),
    "distinct_share": Variable(
        (), "share of the pairs of channels that have learnt different features", range=PROBABILITY
    ),
}
