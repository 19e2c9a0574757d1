"""Fixed points of several channels as a Dataset, their arrangements in words, and what grows from nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from meanfield.errors import InputError
from meanfield.families.contrastive.channels.states.field import COINCIDING, SmoothField
from meanfield.families.contrastive.channels.states.search import ChannelState, find_channel_states
from meanfield.families.contrastive.channels.states.symmetry import ZERO_TOLERANCE
from meanfield.families.contrastive.channels.thresholds import conditional_rates, uninformed_rates
from meanfield.families.contrastive.order_parameters.field import check_linear
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.variables import ARRANGEMENTS
from meanfield.results.solved import Solved, solver
from meanfield.results.states import stacked
from meanfield.typing import FloatArray

NONE_LEARNT, SOME_LEARNT, COLLAPSED, PARTLY_COLLAPSED, TILTED, DISTINCT, ROTATED, MIXTURE = ARRANGEMENTS

STARTS = 24
"""Number of random starts: a share has a standard error of 0.1 or less."""


@solver
def solve_channel_states(problem: Problem, starts: int = STARTS, seed: int = 0) -> Solved:
    """Fixed points of several channels, what attracts random starts, and growth from nothing.

    Parameters
    ----------
    problem : Problem
        With several channels and a prior that closes the ODEs. Its start does not matter.
    starts : int
        Number of random starts of order 1: channels that are uniform on the unit sphere in d1 + d2 dimensions; and of
        starts from nothing.
    seed : int
        Seed of the random starts.

    Returns
    -------
    xarray.Dataset
        Result of the method `dynamics`. Along `state`, one of each set of fixed points that are images of each other by
        symmetries: `q`, `M`, `Lambda`, eigenvalues, `kind`, `arrangement`, `copies`, and `region_share`, the share of
        the random starts of order 1 that they attract; `limit_share` is that of starts from nothing as N grows.
        `uninformed_channel_rate` and `conditional_rate`: growth rates of channels that have learnt nothing. The last
        three are absent where that is no state at rest, or features are not independent. No search can prove that it
        has found all fixed points.

    Raises
    ------
    InputError
        If the prior does not close the ODEs, averages take random batches, or there is no start.

    Notes
    -----
    Source: several_channels.md, section 6.
    """
    check_linear(problem)
    if starts < 1:
        raise InputError(f"starts = {starts}: shares are of random starts; give at least one")
    return channel_states(problem, starts, seed)


def channel_states(problem: Problem, starts: int = STARTS, seed: int = 0) -> Solved:
    """Fixed points of several channels as `solve_channel_states` returns them, of a problem that is checked."""
    field = SmoothField(problem)
    growth = _growth(field, problem)
    rates = growth["uninformed_channel_rate"].max(axis=1) if growth else None
    found, indices = find_channel_states(field, starts, seed, rates)
    arrays = stacked([state_variables(field, state) for state in found], "dynamics", problem) | {
        "copies": np.array([state.copies for state in found]),
        "orbit": np.array([state.orbit for state in found]),
        "region_share": np.array([state.share for state in found]),
    }
    if growth:
        arrays |= growth | {"limit_share": np.array([state.limit_share for state in found])}
    missing = indices not in (1.0, None)
    return Solved(
        "dynamics",
        arrays,
        warning=f"states are missing: indices add up to {indices:g}, and those of all states to 1" if missing else "",
        attributes={} if indices is None else {"indices_add_up": str(not missing).lower()},
        variable_attributes={"region_share": {"starts": starts, "seed": seed}},
    )


def _growth(field: SmoothField, problem: Problem) -> dict[str, FloatArray]:
    """Growth rates from nothing, if nothing learnt is a state at rest that each feature leaves by itself."""
    nothing = np.zeros(field.unknowns)
    learnt = field.features * field.channels
    slope = field.jacobian(nothing)[:learnt, :learnt]
    coupling = np.abs(slope - np.diag(np.diag(slope))).max()
    if max(np.abs(field(nothing)[:learnt]).max(), coupling) > field.resolution:
        return {}
    return {"uninformed_channel_rate": uninformed_rates(problem), "conditional_rate": conditional_rates(problem)}


def state_variables(field: SmoothField, state: ChannelState) -> dict[str, Any]:
    """The variables of one state."""
    return {
        "q": np.where(np.abs(state.q) < ZERO_TOLERANCE, 0.0, state.q),
        "M": np.where(np.abs(state.M) < ZERO_TOLERANCE, 0.0, state.M),
        "Lambda": field.closure(state.q, state.M).Lambda,
        "growth_rate": state.eigenvalues[0].real,
        "eigenvalue_real": state.eigenvalues.real,
        "eigenvalue_imag": state.eigenvalues.imag,
        "stability": np.int8(state.verdict),
        "kind": state.kind,
        "arrangement": arrangement_of(state.q, state.M),
    }


def arrangement_of(q: FloatArray, M: FloatArray) -> str:
    """Arrangement of a state of several channels.

    Parameters
    ----------
    q : ndarray, shape (d1, d2)
    M : ndarray, shape (d2, d2)

    Returns
    -------
    str
        `nothing learned`; `some channels only` if others have learnt nothing; `collapsed` if all channels coincide up
        to signs and `partly collapsed` if some do; `distinct` if each has a feature of its own, `rotated` if each has a
        main feature of its own and parts of others, `tilted` if channels with the same main feature do not coincide;
        `mixture` if a channel has no main feature.
    """
    size = np.sort(np.abs(q), axis=0)[::-1]
    present = size >= 0.01  # smaller overlaps are no part of what a channel has learnt
    learnt = present[0]
    if not learnt.any():
        return NONE_LEARNT
    if not learnt.all():
        return SOME_LEARNT
    pairs = np.abs(M[np.triu_indices(len(M), 1)]) >= COINCIDING
    if pairs.any():
        return COLLAPSED if pairs.all() else PARTLY_COLLAPSED
    if len(size) > 1 and np.any(size[0] - size[1] < 1e-6):  # no feature of the channel is its main one
        return MIXTURE
    main = np.abs(q).argmax(axis=0)
    if len(set(main.tolist())) < len(main):
        return TILTED
    return DISTINCT if len(size) == 1 or not present[1].any() else ROTATED
