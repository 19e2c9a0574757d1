"""Variables of a Dataset that describe a stationary state, except for its density."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from meanfield.mckean_vlasov.stationary.coordinates import MixedCoordinates
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations, coordinates_of
from meanfield.mckean_vlasov.stationary.interpolation import at_many
from meanfield.mckean_vlasov.stationary.line import Line
from meanfield.mckean_vlasov.stationary.stability import Stability, stability
from meanfield.mckean_vlasov.stationary.state import State
from meanfield.typing import FloatArray

NUMBERS = (
    "r",
    "Lambda",
    "multiplier",
    "multiplier_residual",
    "residual",
    "quadrature_error",
    "growth_rate",
    "relaxation_rate",
    "stability",
)
"""Variables of a state that are one number."""


def state_variables(equations: StationaryEquations, state: State) -> dict[str, Any]:
    """The variables of one state that do not depend on w, as the schema names them."""
    c, limit, norm = state.coefficients, equations.limit, state.norm
    r = _work(equations, state)
    spectrum = _stability(equations, state)
    check = equations.check(state)
    errors = {} if limit.spectrum is None else {"growth_rate_error": _rate_error(equations, state, spectrum)}
    return errors | {
        "q": state.q,
        "r": r,
        "g": c.g,
        "Lambda": c.diffusion,
        "multiplier": state.G + equations.shift,
        "multiplier_residual": state.G
        - (
            state.overlaps @ c.g
            + (limit.learning_rate * r - equations.shift * norm)
            - 0.5 * limit.mean_variance * c.diffusion
        )
        / norm,
        "residual": check.residual,
        "quadrature_error": check.error,
        "growth_rate": spectrum.growth_rate,
        "relaxation_rate": spectrum.gap,
        "eigenvalue_real": spectrum.eigenvalues.real,
        "eigenvalue_imag": spectrum.eigenvalues.imag,
        "stability": np.int8(spectrum.verdict),
    }


def without_states(features: int) -> dict[str, Any]:
    """Variables of a result without states: arrays whose leading dimension is 0."""
    vectors = {name: np.empty((0, features)) for name in ("q", "g")}
    modes = {name: np.empty((0, features + 2)) for name in ("eigenvalue_real", "eigenvalue_imag")}
    return vectors | modes | {name: np.empty(0) for name in NUMBERS}


def _work(equations: StationaryEquations, state: State) -> float:
    """Return r = E[w phi(w)]."""
    found = 0.0
    for _, share, each in state.members:

        def means(tilts: FloatArray, each: State = each) -> tuple[FloatArray, int]:
            line = Line(equations, each, tilts)
            return line.means(line.points * equations.limit.prior.force(line.points))[:, None], 0

        tilts, places = np.unique(each.tilts.tilt, return_inverse=True)
        values, _ = at_many(means, tilts)
        found += share * float(each.tilts.weight @ values[places, 0])
    return found


def _stability(equations: StationaryEquations, state: State) -> Stability:
    """Stability with the fewest nodes in u: rates need fewer digits than overlaps.

    Nodes that stand for many have weights of both signs, and then there may be rates that do not exist. Where merged
    nodes, which have positive weights and give three digits, do not confirm them, those of the latter are taken. Of a
    spectrum they have its ends besides its nodes.
    """
    coordinates = equations.coordinates
    if isinstance(coordinates, MixedCoordinates):
        return _at_ends(equations, state, coordinates.rung) or _of_nodes(equations, state)
    coarse = equations.like(coordinates_of(equations.limit))
    fewer = coarse.state(state.x) if coordinates.rung > 0 else None
    return _of_nodes(equations, state) if fewer is None else _of_nodes(coarse, fewer)


def _at_ends(equations: StationaryEquations, state: State, rung: int) -> Stability | None:
    """Stability with the nodes of a rung and the ends of the spectrum, None where a density is none there."""
    assert isinstance(equations.coordinates, MixedCoordinates)
    ends = equations.like(equations.coordinates.at_ends(rung))
    there = ends.state(state.x)
    return None if there is None else _of_nodes(ends, there)


def _rate_error(equations: StationaryEquations, state: State, found: Stability) -> float:
    """What other nodes change in the growth rate, coarser ones but for the coarsest, and what differences may."""
    coordinates = equations.coordinates
    other = found if coordinates.exact else _at_ends(equations, state, abs(coordinates.rung - 1))
    change = math.nan if other is None else abs(other.growth_rate - found.growth_rate)
    return found.resolution + change


def _of_nodes(equations: StationaryEquations, state: State) -> Stability:
    few = equations.on_a_line(state)
    if all(np.all(each.state.tilts.weight >= 0.0) for each in few.members):
        return stability(equations, few)
    rough = stability(equations, equations.on_a_line(state, positive=True))
    try:
        sharp = stability(equations, few)
    except np.linalg.LinAlgError:  # weights below 0 may leave a function without a length
        return rough
    return sharp if sharp.agrees_with(rough) else rough
