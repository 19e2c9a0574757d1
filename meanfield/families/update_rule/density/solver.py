"""The density of one student of an update rule as a Dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.density.limit import limit_of
from meanfield.families.update_rule.density.totals import TotalEquations
from meanfield.families.update_rule.order_parameters.equations import FIRST_NODES, Choices, Place, Rules
from meanfield.families.update_rule.order_parameters.errors import chosen_rule
from meanfield.families.update_rule.order_parameters.trajectory import AVERAGE_SHARE, places_along
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.trial_calls import check_functions
from meanfield.mckean_vlasov.density.settings import DEFAULT_TOLERANCE, DensitySettings
from meanfield.mckean_vlasov.density.solver import MOST_FEATURES, density_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

INSTEAD = "take particles, or order_parameters under a linear prior"

NAMES = {
    "q": "R", "norm": "Q", "q_noise": "R_noise", "norm_noise": "Q_noise", "q_rho": "R_rho", "norm_rho": "Q_rho",
}  # fmt: skip
"""Names here of variables of densities of one vector."""


@solver
def solve_density(problem: Problem) -> Solved:
    """Density of the weights of one student given the features, under any prior, with a norm that is kept or free.

    Coefficients are averages of the rule at the overlaps of the density itself, by quadrature that is as fine as these
    need at the start and along the path. `density.tolerance` is the error allowed in R, Q and r = E[w phi(w)].

    Parameters
    ----------
    problem : Problem
        With one student, one to three features, and no side variables.

    Returns
    -------
    xarray.Dataset
        `R`, `Q`, `r`, `observables`, `Lambda`, `P`, `P_w`, `u`, `u_weight`, `w`, `w_bnds` and `mass`; with a tolerance
        also the estimates `R_error`, `Q_error`, `r_error`, `observables_error` and `P_error`. The attribute `status` is
        `complete`, `interrupted` or `failed: ...`; output times that were not reached are NaN.

    Raises
    ------
    InputError
        If there are more students or features, side variables, or a spectrum of the noise; if averages of the rule do
        not exist or cannot be resolved without random points; if the solution does not fit into the free memory.

    Notes
    -----
    All quantities are dimensionless. Source: update_rules.md, section 5.
    """
    check_density(problem)
    settings = problem.density or DensitySettings()
    share = AVERAGE_SHARE * (settings.tolerance or DEFAULT_TOLERANCE)
    equations = TotalEquations(problem)
    equations, choices = resolved(equations, [(0.0, equations.start)], share, {})
    while True:
        rules = equations.rules(choices, chosen_rule)
        limit = limit_of(equations, rules, share)
        solved = density_of(limit, settings, problem.particles.dimension)
        path = np.array([equations.packed(row) for row in _overlaps(solved.arrays)])
        finer, choices = resolved(equations, list(places_along(equations, path)), share, choices)
        if finer is equations and equations.rules(choices, chosen_rule).levels == rules.levels:
            return replace(solved, arrays=_as_overlaps(equations, rules, limit, solved.arrays) | problem.names)
        equations = finer


def check_density(problem: Problem) -> None:
    """Refuse problems whose density cannot be computed; see `solve_density`."""
    check_problem(problem, Problem)
    K, M = len(problem.students), len(problem.features)
    if K != 1:
        raise InputError(f"students: {K} of them, but the density is solved for one; remove others, or {INSTEAD}")
    if not 1 <= M <= MOST_FEATURES:
        raise InputError(
            f"features: {M} of them, but the density is solved for one to {MOST_FEATURES}; "
            f"{'add' if M == 0 else 'remove'} some, or {INSTEAD}"
        )
    if problem.side:
        raise InputError(
            f"side.{next(iter(problem.side))}: the density follows no side variables; remove them, or {INSTEAD}"
        )
    spectrum = problem.data.spectrum
    if spectrum is not None and np.any(np.abs(spectrum.nodes(FIRST_NODES).teacher - 1.0) > 1e-9):  # rounding
        raise InputError(
            "data.spectrum.teacher: the density is solved for features that know nothing of the variances; remove the "
            f"key, or {INSTEAD}"
        )
    q, norm = problem.initial_R[0], problem.initial_Q[0, 0]
    if q @ q >= norm * (1.0 - 1e-12):  # rounding
        raise InputError(
            "features.initial_overlap: the student begins as a sum of the features, without weights of its own that "
            "could have a density; lower initial_overlap, or raise students.initial_norm"
        )
    scheme = None if problem.density is None else problem.density.scheme
    if scheme not in (None, "lagrangian", "eulerian"):
        raise InputError(
            f"density.scheme = '{scheme}': it is for several channels; take 'lagrangian' or 'eulerian', or leave the "
            "key out"
        )
    check_functions(problem)


def resolved(
    equations: TotalEquations, places: Sequence[Place], share: float, known: Choices
) -> tuple[TotalEquations, Choices]:
    """Nodes of hidden variables and rules of quadrature that averages need at some places, no coarser ones than known.

    Raises
    ------
    InputError
        If averages do not exist, or take random points.
    """
    choices = equations.choose(places, share, known)
    if any(choice.rule.kind == "random" for choice in choices.values()):
        raise InputError(
            "model.rule: its averages take random points, whose errors the density does not follow; let the rule read "
            f"fewer numbers, or {INSTEAD}"
        )
    finer = equations.with_enough_hidden_nodes(places, choices, share)
    assert isinstance(finer, TotalEquations)
    return (finer if finer.hidden_nodes > equations.hidden_nodes else equations), choices


def _overlaps(arrays: dict[str, FloatArray], end: str = "") -> FloatArray:
    """R, those that are weighted with variances if there are such, and Q, shape (outputs, numbers); or their errors."""
    names = (f"{name}{end}" for name in ("q", "q_noise", "norm_noise", "norm"))
    return np.column_stack([arrays[name] for name in names if name in arrays])


def _as_overlaps(
    equations: TotalEquations, rules: Rules, limit: Limit, arrays: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """Variables of a result under the names that update rules give them, with observables."""
    arrays = dict(arrays)
    for name in ("r", "r_error"):  # with the strength of the time itself
        if name in arrays:
            arrays[name] = arrays[name] * limit.learning_rates
    if not limit.free_norm:
        norm = arrays["norm"]
        arrays["norm"] = np.where(np.isfinite(norm), limit.initial_norm, norm)
        arrays |= {"norm_error": np.zeros(norm.shape)} if "q_error" in arrays else {}
    found = {
        name: values for name, values in arrays.items() if name != "g" and name.removesuffix("_error") not in NAMES
    }
    for name, own in NAMES.items():
        for end in ("", "_error"):
            if f"{name}{end}" in arrays:
                values = arrays[f"{name}{end}"]
                dims = values.shape if name.startswith("q") else (*values.shape, 1)
                found[f"{own}{end}"] = values.reshape(*dims[:-1], 1, dims[-1])
    return found | (_observed(equations, rules, arrays) if equations.problem.measured else {})


def _observed(equations: TotalEquations, rules: Rules, arrays: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Observables, and what the errors of overlaps change in them."""
    overlaps = _overlaps(arrays)

    def at(overlaps: FloatArray) -> FloatArray:
        values = np.full((len(overlaps), len(equations.problem.measured)), np.nan)
        for row in np.flatnonzero(np.isfinite(overlaps).all(axis=1)):
            values[row] = equations.measured(rules, float(equations.times[row]), equations.packed(overlaps[row]))
        return values

    values = at(overlaps)
    if "q_error" not in arrays:
        return {"observables": values}
    errors = _overlaps(arrays, "_error")
    moved = [at(overlaps + np.where(np.arange(overlaps.shape[1]) == k, errors, 0.0)) for k in range(overlaps.shape[1])]
    return {"observables": values, "observables_error": np.abs(np.array(moved) - values).sum(axis=0)}
