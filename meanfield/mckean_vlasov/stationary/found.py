"""All stationary states of a limit, with what is known of each but its density on cells."""

from __future__ import annotations

from typing import Any, NamedTuple

from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary.effort import Effort
from meanfield.mckean_vlasov.stationary.equations import Coefficients, StationaryEquations
from meanfield.mckean_vlasov.stationary.images import mapped_coefficients
from meanfield.mckean_vlasov.stationary.search import check_features, in_order, index_by, resolved
from meanfield.mckean_vlasov.stationary.variables import state_variables
from meanfield.process.progress import progress_bar
from meanfield.typing import FloatArray


class Found(NamedTuple):
    """A stationary state by the numbers that its density takes, see `meanfield.mckean_vlasov.stationary.equations`.

    Parameters
    ----------
    q : ndarray, shape (d1,)
    G : float
    coefficients : Coefficients
    topological_index : float
        Sign of det(-dF/dq).
    variables : dict
        Those of `state_variables`.
    """

    q: FloatArray
    G: float
    coefficients: Coefficients
    topological_index: float
    variables: dict[str, Any]


def all_states(limit: Limit) -> tuple[StationaryEquations, list[Found]]:
    """All stationary states in the order of q, and the equations that they solve.

    Parameters
    ----------
    limit : Limit
        Limit with one to three features; its start does not matter.

    Notes
    -----
    The `effort` of the equations says what may be missing.

    Raises
    ------
    InputError
        If there are more features.
    """
    check_features(len(limit.coordinates))
    equations, orbits = resolved(limit, Effort())
    states = []
    with progress_bar(len(orbits), "stability of stationary states", "state") as bar:
        for orbit in orbits:
            state = equations.state(orbit.q)
            bar.update()
            if state is None:
                equations.effort.lost += 1
                continue
            index = index_by(equations.like().slopes(state)[:-1])  # leaves the hint for the states that follow
            row, c = state_variables(equations, state), state.coefficients
            for T in orbit.maps:
                q, mapped = T @ state.q, mapped_coefficients(T, c)
                states.append(Found(q, state.G, mapped, index, row | {"q": q, "g": mapped.g}))
    return equations, sorted(states, key=lambda found: in_order(found.q))
