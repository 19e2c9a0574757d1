"""The density of students of an update rule as a Dataset."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from meanfield.errors import InputError
from meanfield.families.update_rule.density.averages import INSTEAD, By, along_its_path, observed
from meanfield.families.update_rule.density.limit import limit_of
from meanfield.families.update_rule.density.several import check_several, solve_several
from meanfield.families.update_rule.density.totals import TotalEquations
from meanfield.families.update_rule.initial_state import check_known, with_errors_of_start
from meanfield.families.update_rule.order_parameters.equations import FIRST_NODES
from meanfield.families.update_rule.order_parameters.trajectory import AVERAGE_SHARE
from meanfield.families.update_rule.problem import Problem
from meanfield.families.update_rule.trial_calls import check_functions
from meanfield.mckean_vlasov.density.settings import DEFAULT_TOLERANCE, DensitySettings
from meanfield.mckean_vlasov.density.solver import MOST_FEATURES, density_of
from meanfield.mckean_vlasov.density.start import kinks_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.problems.base import check_problem
from meanfield.problems.phases import pieces_of
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

NAMES = {
    "q": "R", "norm": "Q", "q_noise": "R_noise", "norm_noise": "Q_noise", "q_rho": "R_rho", "norm_rho": "Q_rho",
}  # fmt: skip
"""Names here of variables of densities of one vector."""


OFF_WITH_AVERAGES = ("q_error", "norm_error", "q_noise_error", "norm_noise_error", "r_error")
"""Errors of averages over weights, which follow those of averages of the rule."""


@solver
def solve_density(problem: Problem) -> Solved:
    """Density of the weights of students given the features, under any prior, with norms that are kept or free.

    Of one student or two it is found on cells, of more by interacting particles of the limit. Coefficients are averages
    of the rule at the overlaps of the density itself, by quadrature that is as fine as these need at the start and
    along the path. `density.tolerance` is the error allowed in R, Q and r = E[w phi(w)], of particles in R and Q.

    Parameters
    ----------
    problem : Problem
        Without side variables; with one to three features where there is one student.

    Returns
    -------
    xarray.Dataset
        `R`, `Q`, `r`, `observables`, `Lambda`, `P`, `P_w`, `u`, `u_weight`, `w`, `w_bnds` and `mass`; with a tolerance
        also the estimates `R_error`, `Q_error`, `r_error`, `observables_error` and `P_error`. With `data.spectrum` also
        `R_noise` and `Q_noise` with their errors, and `R_rho`, `Q_rho` as of order parameters; `P` is given u and the
        eigenvalue `rho_of_node`. Of two students `P` and `P_w` are those of each, and `P_sum` and `P_difference` those
        of (w_1 +- w_2)/sqrt(2). Of particles `w_sample` and `u_sample` take the place of densities, and the attribute
        `warning` says why where two students have none on cells. The attribute `status` is `complete`, `interrupted` or
        `failed: ...`; output times that were not reached are NaN.

    Raises
    ------
    InputError
        If there are no features or too many, side variables, a spectrum of the noise that features know or of several
        students; if averages of the rule do not exist or cannot be resolved without random points; if the solution does
        not fit into the free memory; if cells are asked for, and two students have no density on them, or one moves
        without noise; if a prior brings weights that do so to rest where it jumps.

    Notes
    -----
    All quantities are dimensionless. Source: update_rules.md, section 5.
    """
    check_density(problem)
    if len(problem.students) > 1:
        return solve_several(problem)
    settings = problem.density or DensitySettings()
    share = AVERAGE_SHARE * (settings.tolerance or DEFAULT_TOLERANCE)

    def solve(by: By[TotalEquations], _: By[TotalEquations]) -> tuple[tuple[Limit, Solved], FloatArray]:
        limit = limit_of(*by, share)
        solved = density_of(limit, settings, problem.particles.dimension)
        return (limit, solved), np.array([by.equations.packed(row) for row in _overlaps(solved.arrays)])

    by, (limit, solved) = along_its_path(TotalEquations(problem), share, solve)
    arrays = _as_kept(limit, solved.arrays, share)
    errors = _overlaps(arrays, "_error") if "q_error" in arrays else None
    more = observed(by, _overlaps(arrays), errors, by.equations.packed)
    return replace(solved, arrays=with_errors_of_start(problem, _as_overlaps(arrays) | more) | problem.names)


def check_density(problem: Problem) -> None:
    """Refuse problems whose density cannot be computed; see `solve_density`."""
    check_problem(problem, Problem)
    K, M = len(problem.students), len(problem.features)
    if not 1 <= M <= (MOST_FEATURES if K == 1 else np.inf):
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
    check_known(problem, "a density")
    check_functions(problem)
    if K > 1:
        return check_several(problem)
    q, norm = problem.initial_R[0], problem.initial_Q[0, 0]
    if q @ q >= norm * (1.0 - 1e-12):  # rounding
        raise InputError(
            "features.initial_overlap: the student begins as a sum of the features, without weights of its own that "
            "could have a density; lower initial_overlap, or raise students.initial_norm"
        )
    scheme = None if problem.density is None else problem.density.scheme
    if scheme not in (None, "lagrangian", "eulerian"):
        raise InputError(
            f"density.scheme = '{scheme}': it is for several students; take 'lagrangian' or 'eulerian', or leave the "
            "key out"
        )
    for piece in pieces_of(problem):
        _check_transport(piece.problem)
    return None


def _check_transport(problem: Problem) -> None:
    """Refuse weights that move without noise on cells, which smear them, and under priors that bring them to rest."""
    if any(any(kind.gains) for kind in problem.kinds):
        return
    without = "no kind of samples has a gain, so that weights move without noise"
    if problem.density is not None and problem.density.scheme == "eulerian":
        raise InputError(
            f"density.scheme = 'eulerian': {without}, and cells that stay where they are smear their density; take "
            "'lagrangian', without cells, steps, order and half_width, or leave the table out"
        )
    kinks, jumps, _ = kinks_of(problem.prior)
    if np.any(jumps > 0.0):
        raise InputError(
            f"prior.name = '{problem.prior.name}': {without}, and its pull jumps at w = {kinks[jumps.argmax()]:g}, "
            "where weights come to rest and have no density; take a smooth prior, such as 'smooth_l1', or particles"
        )


def _overlaps(arrays: dict[str, FloatArray], end: str = "") -> FloatArray:
    """R, those that are weighted with variances if there are such, and Q, shape (outputs, numbers); or their errors."""
    names = (f"{name}{end}" for name in ("q", "q_noise", "norm_noise", "norm"))
    return np.column_stack([arrays[name] for name in names if name in arrays])


def _as_kept(limit: Limit, arrays: dict[str, FloatArray], share: float) -> dict[str, FloatArray]:
    """Variables with the prior's work by the strength of the time itself, and with the norm that is kept.

    Averages of the rule may be off by a share of their size, and overlaps by that much besides what is stated.
    """
    arrays = arrays | {name: arrays[name] + share for name in OFF_WITH_AVERAGES if name in arrays}
    for name in ("r", "r_error"):  # with the strength of the time itself
        if name in arrays:
            arrays[name] = arrays[name] * limit.learning_rates
    if not limit.free_norm:
        norm = arrays["norm"]
        arrays["norm"] = np.where(np.isfinite(norm), limit.initial_norm, norm)
        arrays |= {"norm_error": np.zeros(norm.shape)} if "q_error" in arrays else {}
    return arrays


def _as_overlaps(arrays: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Variables of a result under the names that update rules give them."""
    found = {
        name: values for name, values in arrays.items() if name != "g" and name.removesuffix("_error") not in NAMES
    }
    for name, own in NAMES.items():
        for end in ("", "_error"):
            if f"{name}{end}" in arrays:
                values = arrays[f"{name}{end}"]
                dims = values.shape if name.startswith("q") else (*values.shape, 1)
                found[f"{own}{end}"] = values.reshape(*dims[:-1], 1, dims[-1])
    return found
