"""Covariances and means of the fields in a state of the order parameters, by component and averaged."""

from __future__ import annotations

import numpy as np

from meanfield.families.hidden_manifold.order_parameters.system import State, System
from meanfield.typing import FloatArray


def observables(system: System, state: State) -> dict[str, FloatArray]:
    """Variables of a result by name, with the leading dims of the state.

    Parameters
    ----------
    system : System
    state : State
    """
    M, weight = system.teachers, system.weight
    r = np.einsum("n,...nka->...ka", weight, state.r)
    Sigma = np.einsum("n,...nkl->...kl", weight, state.sigma)
    each = (slice(None), None, None)
    Q = system.rest[each] * state.Omega[..., None, :, :] + system.slope[each] ** 2 * Sigma[..., None, :, :]
    R = (system.slope * system.scale)[each] * r[..., None, :, :M]
    mean = np.zeros((*Q.shape[:-1],))
    for q in np.flatnonzero(system.column >= 0):
        mean[..., q, :] = system.slope[q] / system.scale[q] * r[..., system.column[q]]
    found = {
        "Q": np.einsum("q,...qkl->...kl", system.chance, Q),
        "R": np.einsum("q,...qka->...ka", system.chance, R),
        "Omega": state.Omega,
        "Sigma": Sigma,
        "v": state.v,
        "field_mean": mean,
    }
    return found if len(system.chance) == 1 else found | {"Q_component": Q, "R_component": R}
