"""Variables of results of several vectors that train together, under the name that a family has for a vector."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from meanfield.mckean_vlasov.declarations import DISTANCES, POSITIVE, SUM_TOLERANCE, cell_variables
from meanfield.problems.variable import Variable


def plane_of(vector: str) -> dict[str, Variable]:
    """Variables of the density of two vectors that train together, called so."""
    return {
        **{
            name: Variable(
                ("time", "w"),
                f"density of (w_1 {sign} w_2)/sqrt(2), averaged over a cell",
                only=("diagonal",),
                range=(-SUM_TOLERANCE, inf),
                gaps="unfinished",
            )
            for name, sign in (("P_sum", "+"), ("P_difference", "-"))
        },
        "P_joint": Variable(
            ("density_time", "w1", "w2"),
            f"density P_t(w_1, w_2) of the weights of both {vector}s, averaged over a cell",
            range=(-SUM_TOLERANCE, inf),
            gaps="unfinished",
            needs=("density_time",),
        ),
        "P_joint_given_u": Variable(
            ("density_time", "node", "w1", "w2"),
            "conditional density P_t(w_1, w_2|u) at a node, averaged over a cell",
            range=(-SUM_TOLERANCE, inf),
            gaps="unfinished",
            needs=("density_time",),
        ),
        "density_time": Variable(
            ("density_time",),
            "time t = k/N at which the joint density was kept",
            range=POSITIVE,
            gaps="never",
            increasing=True,
        ),
        **cell_variables("w1", "weight w_1"),
        **cell_variables("w2", "weight w_2"),
    }


OF_BOTH_WEIGHTS = ("P_joint", "P_joint_given_u", "density_time", "w1", "w2", "w1_bnds", "w2_bnds")
"""Variables of the density of both weights together. It has a result of its own: in a table of a whole density each of
its cells would stand beside each cell of single weights. Files up to version 5 have them in one."""

_OF_ALL = ("W1", "W1_expected", "KS", "KS_expected")


def sample_of(vector: str) -> dict[str, Variable]:
    """Variables of interacting particles of the limit of several vectors, called so."""
    return {
        "u_sample": Variable(("particle", "feature"), "feature coordinates u of a particle of the limit", gaps="never"),
        "w_sample": Variable(
            ("snapshot_time", "particle", vector),
            f"weights w of all {vector}s of a particle of the limit",
            gaps="unfinished",
            needs=("snapshot_time", "u_sample"),
        ),
    }


def distances_of(vector: str) -> dict[str, Variable]:
    """Distances of each of several vectors that train together, and of the sums and differences of two."""
    each = (*_OF_ALL, *(f"{name}_given_u" for name in _OF_ALL))
    diagonal = {
        f"{name}_diagonal": replace(
            DISTANCES[name],
            dims=("pair", "snapshot_time", "diagonal"),
            only=("diagonal",),
            long_name=f"{DISTANCES[name].long_name}, for (w_1 + w_2)/sqrt(2) and (w_1 - w_2)/sqrt(2)",
        )
        for name in _OF_ALL
    }
    return {name: replace(DISTANCES[name], last_dims=(vector,)) for name in each} | diagonal
