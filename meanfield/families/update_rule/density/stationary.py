"""Stationary states of the density of one student of an update rule, without time stepping, as a Dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.density.averages import By, observed, resolved
from meanfield.families.update_rule.density.limit import limit_of
from meanfield.families.update_rule.density.solver import check_density
from meanfield.families.update_rule.density.totals import TotalEquations
from meanfield.families.update_rule.fixed_points.states import SEARCH_TOLERANCE, check_at_rest
from meanfield.families.update_rule.order_parameters.equations import Choices
from meanfield.families.update_rule.order_parameters.errors import chosen_rule, errors_by, other_rules
from meanfield.families.update_rule.order_parameters.trajectory import AVERAGE_SHARE
from meanfield.families.update_rule.problem import Problem
from meanfield.ingredients.priors import PriorSettings
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.condensation import why_none
from meanfield.mckean_vlasov.density.settings import DEFAULT_TOLERANCE, DensitySettings
from meanfield.mckean_vlasov.limit import Limit
from meanfield.mckean_vlasov.stationary import (
    StationaryState,
    all_states,
    density_arrays,
    frozen_words,
    missing_states,
    point_masses,
    what_is_missing,
    why_no_density,
)
from meanfield.mckean_vlasov.stationary.coordinates import VARIANCES, MixedCoordinates
from meanfield.mckean_vlasov.stationary.equations import StationaryEquations
from meanfield.mckean_vlasov.stationary.search import polished
from meanfield.mckean_vlasov.stationary.spectra import LEAST_NOISE
from meanfield.mckean_vlasov.stationary.unknowns import norm_at, overlap_at, weighted_at
from meanfield.numerics.continuation.roots import TOLERANCE
from meanfield.numerics.refinement import missed
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver
from meanfield.results.states import stacked
from meanfield.typing import FloatArray

NONE_FOUND = "failed: no stationary density was found"
"""Beginning of the attribute `status` of a result without states."""

JUDGED = ("R_error", "Q_error", "R_noise_error", "Q_noise_error")
"""Errors that a tolerance is for."""

OF_A_VECTOR = ("q", "g", "residual", "quadrature_error")
"""Variables of states that have other names here, or none."""


@solver
def find_stationary_states(problem: Problem) -> Solved:
    """All stationary states of the density of one student that a search finds, under any prior, with their stability.

    Parameters
    ----------
    problem : Problem
        With one student, one to three features, no side variables, and numbers and rules that do not change in time;
        variances of coordinates may differ.
        The start does not matter, but for a length that a constraint keeps.

    Returns
    -------
    xarray.Dataset
        Along `state`, in the order of R: `R` and `Q` with their errors, `observables`, `r`, `Lambda`, `multiplier`,
        `growth_rate`, `relaxation_rate`, eigenvalues, `stability`, and the density `P` in the form of that of a run;
        with `data.spectrum` also `R_noise` and `Q_noise`, and `growth_rate_error`, by nodes of the spectrum, and `P` is
        given u and the eigenvalue `rho_of_node`.
        The attribute `status` is `complete`, or `failed: why` where no state was found; `warning` says what may be
        missing, where all weights are at rest without noise, and where densities rest that are none. Where a constraint
        keeps the length, the attribute `indices_add_up` says whether the indices of states show a gap.

    Raises
    ------
    InputError
        As for the density; if the rule reads the time.

    Notes
    -----
    All quantities are dimensionless. Source: update_rules.md, section 5.
    """
    check_stationary(problem)
    equations, share = TotalEquations(problem), share_of(problem)
    equations, choices = resolved(equations, [(0.0, equations.start)], share, {})
    equations, choices, limits, stationary, states = resolved_states(equations, choices, share)
    rows = [state.variables | overlap_variables(stationary, limits.others, state.x) for state in states]
    rows = [as_overlaps(row | observable_variables(equations, choices, row)) for row in rows]
    settings, spectrum = problem.density or DensitySettings(), problem.data.spectrum
    u, u_weight = feature_quadrature(problem.coordinates, settings.feature_nodes, spectrum=spectrum)
    arrays = stacked(rows, "stationary", problem)
    arrays |= density_arrays(stationary, states, u, u_weight)
    if spectrum is not None:
        arrays |= {"rho_of_node": u[:, -1]} | _at_variances(stationary, states)
    limit, said = stationary.limit, [stationary.effort.warning, frozen_words(states) if spectrum is None else ""]
    missing = missing_states(stationary, [each.x for each in states], [each.topological_index for each in states])
    said.append(what_is_missing(stationary, missing, lambda: why_none_of(stationary)))
    masses = _of_point_masses(limits.rough)
    errors = [values.max(initial=0.0) for name, values in arrays.items() if name in JUDGED]
    tolerance = settings.tolerance or DEFAULT_TOLERANCE
    said.append(missed("stationary states", float(np.max(errors)), "density.tolerance", tolerance))
    return Solved(
        "stationary",
        arrays | problem.names,
        "complete" if states else f"{NONE_FOUND}; {masses or why_none_of(stationary)}",
        "; ".join(filter(None, [*said, masses if states else ""])),
        attributes={}
        if limit.free_norm or spectrum is not None
        else {"indices_add_up": str(bool(states) and not missing).lower()},
    )


def check_stationary(problem: Problem) -> None:
    """Refuse problems whose stationary states cannot be searched for; see `find_stationary_states`."""
    check_problem(problem, Problem)
    K = len(problem.students)
    if K > 1:
        raise InputError(
            f"students: {K} of them, but stationary states are those of one; remove others, or take the density at a "
            "late time, or fixed_points under a linear prior"
        )
    check_density(problem)
    check_at_rest(problem)
    spectrum = problem.data.spectrum
    least = 1.0 if spectrum is None else float(spectrum.nodes(VARIANCES[-1]).rho.min())
    pulls = problem.prior.name != "none" and problem.prior.strength != 0.0
    if least < LEAST_NOISE and not pulls and problem.constraints[0][0] == "none":
        raise InputError(
            "data.spectrum: has the eigenvalue 0, where weights stay as they start without a prior, so that there is "
            "no one state at rest; give a prior such as l2, or take order_parameters with a late time.stop"
        )


class Limits(NamedTuple):
    """The limit of a problem by several averages of its rule.

    Parameters
    ----------
    limit : Limit
        By rules of quadrature that are as fine as these need to be.
    rough : Limit
        To a few digits, for searches.
    others : tuple of Limit
        By coarser rules, or by independent ones of random points: their states differ by as much as averages are wrong.
    """

    limit: Limit
    rough: Limit
    others: tuple[Limit, ...]

    def under(self, prior: PriorSettings) -> Limits:
        """The same averages with another prior, on which these do not depend."""
        limit, rough, *others = (replace(each, prior=prior) for each in (self.limit, self.rough, *self.others))
        return Limits(limit, rough, tuple(others))


def limits_of(equations: TotalEquations, choices: Choices, share: float) -> Limits:
    """Limits by rules that were chosen, and by coarser ones."""
    rules, fewer = equations.rules(choices, chosen_rule), equations.with_fewer_hidden_nodes()
    assert isinstance(fewer, TotalEquations)
    others = (limit_of(fewer, fewer.rules(choices, which), share, plane=False) for which in other_rules(choices))
    limit, rough = (limit_of(equations, rules, each, plane=False) for each in (share, max(SEARCH_TOLERANCE, share)))
    return Limits(limit, rough, tuple(others))


class Resolved(NamedTuple):
    """All states of a problem, by averages that are as fine as they need to be there.

    Parameters
    ----------
    equations : TotalEquations
    choices : mapping
        Rules of quadrature.
    limits : Limits
    stationary : StationaryEquations
    states : list of StationaryState
    """

    equations: TotalEquations
    choices: Choices
    limits: Limits
    stationary: StationaryEquations
    states: list[StationaryState]


def resolved_states(equations: TotalEquations, choices: Choices, share: float) -> Resolved:
    """All states, by averages that are no coarser than those that are known."""
    near = None
    while True:
        limits = limits_of(equations, choices, share)
        stationary, states = all_states(limits.limit, limits.rough, near)
        found = Resolved(equations, choices, limits, stationary, states)
        if not states:
            return found
        levels = equations.rules(choices, chosen_rule).levels
        overlaps = (_overlaps(limits.limit, each.x) for each in states)
        places = [
            equations.packed(
                np.concatenate([found[name] for name in ("R", "R_noise", "Q_noise", "Q") if name in found])
            )
            for found in overlaps
        ]
        finer, choices = resolved(equations, [(0.0, place) for place in places], share, choices)
        if finer is equations and equations.rules(choices, chosen_rule).levels == levels:
            return found
        equations, near = finer, [each.x for each in states]


def overlap_variables(stationary: StationaryEquations, others: Sequence[Limit], x: FloatArray) -> dict[str, FloatArray]:
    """R and Q of a state with their errors, of averages of the rule and of those over the density."""
    limit, error = stationary.limit, stationary.node_error(x) + TOLERANCE
    found, there = _overlaps(limit, x), []
    for other in others:
        roots = polished(stationary.like(limit=other), [x])
        there.append(_overlaps(other, roots[0] if roots else np.full(len(x), np.nan)))
    found |= errors_by(there, found)
    for end in ("", "_noise") if "Q_noise" in found else ("",):
        found[f"R{end}_error"] = found[f"R{end}_error"] + math.sqrt(found[f"Q{end}"][0]) * error
        found[f"Q{end}_error"] = found[f"Q{end}_error"] + found[f"Q{end}"] * error * (limit.free_norm or end != "")
    return {name: values[None] for name, values in found.items()}


def _at_variances(stationary: StationaryEquations, states: Sequence[StationaryState]) -> dict[str, FloatArray]:
    """Variances of nodes with their shares, and overlaps of weights there."""
    coordinates, d1 = stationary.coordinates, len(stationary.limit.coordinates)
    assert isinstance(coordinates, MixedCoordinates)
    nodes = coordinates.variances
    found = np.full((len(states), len(nodes.rho), d1 + 1), np.nan)
    for row, each in zip(found, states, strict=True):
        state = stationary.state(each.x)
        assert state is not None
        row[:] = [np.append(one.tilts.mean.T @ one.moments[:, 0], one.second) for _, _, one in state.members]
    R, Q = found[:, :, None, :d1], found[:, :, None, d1:]
    return {"rho": nodes.rho, "rho_weight": nodes.weight, "R_rho": R, "Q_rho": Q}


def _overlaps(limit: Limit, x: FloatArray) -> dict[str, FloatArray]:
    """Overlaps at unknowns; also those that are weighted with variances, if these differ."""
    found, weighted = {"R": overlap_at(limit, x), "Q": np.array([norm_at(limit, x)])}, weighted_at(limit, x)
    return found | ({"R_noise": weighted[:-1], "Q_noise": weighted[-1:]} if weighted.size else {})


def observable_variables(
    equations: TotalEquations, choices: Choices, found: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Observables of a state, if there are some, and what the errors of R and Q change in them."""
    by = By(equations, equations.rules(choices, chosen_rule))
    names = [name for name in ("R", "R_noise", "Q_noise", "Q") if name in found]
    y, step = (np.concatenate([found[f"{name}{end}"].ravel() for name in names])[None] for end in ("", "_error"))
    return {name: values[0] for name, values in observed(by, y, step, equations.packed).items()}


def as_overlaps(row: dict[str, Any]) -> dict[str, Any]:
    """Variables of a state that update rules have."""
    return {name: value for name, value in row.items() if name not in OF_A_VECTOR}


def share_of(problem: Problem) -> float:
    """Tolerance of averages of the rule."""
    return AVERAGE_SHARE * ((problem.density or DensitySettings()).tolerance or DEFAULT_TOLERANCE)


def why_none_of(equations: StationaryEquations) -> str:
    """Clause that says why there is no density, at R = 0 where the norm is kept."""
    limit = equations.limit
    if limit.free_norm or limit.spectrum is not None:
        return why_no_density(equations)
    _, diffusion = limit.closure(np.zeros(len(limit.coordinates)))
    more_noise = "raise the rates among model.rule_parameters, or lower model.batch_size"
    return f"at R = 0 {why_none(limit.prior, limit.learning_rate, diffusion, more_noise, limit.initial_norm)}"


def _of_point_masses(limit: Limit) -> str:
    """Sentence about states that are no densities; empty if there is none."""
    places = [f"R = {', '.join(f'{x:.4g}' for x in each.q)}, Q = {each.norm:.4g}" for each in point_masses(limit)]
    if not places:
        return ""
    return (
        f"at {'; and '.join(places)} there is no noise, Lambda = 0, and all weights rest at w = R.u: a point mass, "
        "which has no density; SGD, order_parameters or fixed_points say whether it attracts"
    )
