"""What a Dataset says of stationary states, whether they belong to one problem or to a branch."""

from __future__ import annotations

from typing import Any

import numpy as np

from meanfield.families.contrastive.results import OF_A_STATE
from meanfield.families.contrastive.stationary.coordinates import Coordinates
from meanfield.families.contrastive.stationary.equations import State, StationaryEquations
from meanfield.families.contrastive.stationary.line import Line
from meanfield.families.contrastive.stationary.potential import has_potential, potential
from meanfield.families.contrastive.stationary.stability import Stability, stability


def summary(equations: StationaryEquations, state: State) -> dict[str, Any]:
    """The variables of one state that do not depend on w."""
    c = state.coefficients
    line = Line(equations, state)
    r = line.average(line.points * equations.problem.prior.force(line.points))
    spectrum = _stability(equations, line, state)
    norm = float(state.tilts.weight @ state.moments[:, 1])
    result = {
        "q": state.q,
        "r": r,
        "g": c.g,
        "Lambda": c.diffusion,
        "multiplier": state.G,
        "multiplier_residual": state.G
        - (state.q @ c.g + equations.problem.model.learning_rate * r - 0.5 * c.diffusion),
        "residual": max(float(np.abs(state.residual).max()), abs(norm - 1.0)),
        "quadrature_error": equations.node_error(state.q),
        "growth_rate": spectrum.growth_rate,
        "relaxation_rate": spectrum.gap,
        "eigenvalue_real": spectrum.eigenvalues.real,
        "eigenvalue_imag": spectrum.eigenvalues.imag,
        "stability": np.int8(spectrum.verdict),
    }
    if has_potential(equations.problem):
        result["potential"] = potential(equations.closure, state.q)
    return result


def _stability(equations: StationaryEquations, line: Line, state: State) -> Stability:
    """Stability with the fewest nodes in u: rates need fewer digits than overlaps."""
    if equations.coordinates.rung > 0:
        few = Coordinates(equations.problem)
        coarse = StationaryEquations(equations.problem, equations.closure, few)
        coarse.hint = equations.hint
        fewer = coarse.state(state.q)
        if fewer is not None:
            return stability(Line(coarse, fewer), fewer)
    return stability(line, state)


def stacked(rows: list[dict[str, Any]], d1: int) -> dict[str, Any]:
    """Variables of all states, each with one more leading dimension."""
    if rows:
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}
    vectors = {name: np.empty((0, d1)) for name in ("q", "g")}
    modes = {name: np.empty((0, d1 + 2)) for name in ("eigenvalue_real", "eigenvalue_imag")}
    return {name: np.empty(0) for name in OF_A_STATE} | vectors | modes
