"""Report on the assumptions of the conventional theory: what it, and a matched Gaussian, get wrong in time.

Latents that are one Gaussian N(mean, s^2 I + low rank) need no quadrature over the latter: the fields are jointly
Gaussian, and by Stein's lemma a random direction xi V of the latents pulls the student along V by the sum of A times
the loadings of the fields on xi (hidden_manifold.md, section 4).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from meanfield.ensembles.momentum import check_no_velocity
from meanfield.errors import BlowUpError
from meanfield.families.hidden_manifold.assumptions.laws import MEANS, kurtosis, law_arrays
from meanfield.families.hidden_manifold.expectations.choice import expectations
from meanfield.families.hidden_manifold.initial_state import check_no_file
from meanfield.families.hidden_manifold.order_parameters.averaging.trajectory import averaged
from meanfield.families.hidden_manifold.order_parameters.integration import Path
from meanfield.families.hidden_manifold.order_parameters.rates import fields_at, rates_of_expectations
from meanfield.families.hidden_manifold.order_parameters.system import (
    State,
    System,
    make_system,
    moving_means,
    packed,
    start_of,
    unpacked,
)
from meanfield.families.hidden_manifold.order_parameters.trajectory import (
    FEWEST_NODES,
    LOWEST_ORDER,
    MORE,
    STEP_SHARE,
    refined,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.regimes import averages_close
from meanfield.ingredients.spectra import Nodes
from meanfield.numerics.ode import Tolerance, solve_ode
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

BLOWN_UP = 1e12
"""Order parameter beyond which a run has blown up."""


@solver
def examine_assumptions(problem: Problem) -> Solved:
    """Say which assumption of the conventional theory fails for a problem, and what that changes in time.

    The conventional theory takes each latent for a standard Gaussian and inputs for centred. Beside it stand the exact
    theory of the mixture, where one exists, and that of a single Gaussian with the mixture's mean and covariance: what
    separates these two only the mixture explains.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    xarray.Dataset
        `regime`; means, scales and moments of the components; kurtosis of the fields; `Q`, `R` and
        `generalisation_error` of the mixture with their errors, and of the conventional theory and the matched
        Gaussian under these names with `_conventional` and `_matched`, to the same tolerance. Q and R are covariances
        within components; for the matched Gaussian, those that the spread of means does not add to. In regime III the
        theory of the mixture is averaged over fields that move within single steps, with statistical errors; where
        every latent has a mean there is none, and the conventional theory stands alone.

    Notes
    -----
    All quantities are dimensionless. Source: hidden_manifold.md, section 4.
    """
    check_assumptions(problem)
    times, arrays = problem.time.outputs_at, law_arrays(problem)
    digits = math.ceil(-math.log10(problem.order_parameters.tolerance))
    count, order = math.ceil(MORE * (FEWEST_NODES + digits)), math.ceil(MORE * (LOWEST_ORDER + digits))
    status = "complete"
    fast = str(arrays["regime"]) == MEANS
    if not fast or averages_close(problem):
        system, path, found, _ = (averaged if fast else refined)(problem, times)
        if path.status == "interrupted":
            raise KeyboardInterrupt
        count, status = max(count, len(system.rho)), path.status
        arrays |= {name: found[name] for name in found if name in SHOWN}
        if not fast:
            arrays["kurtosis"] = _kurtosis(found, system.chance)
    nodes = problem.inputs.eigenvalues.nodes(count)
    for name, law in _laws(problem, nodes, order, "Q" in arrays):
        path = follow_gaussian(problem, law, times, STEP_SHARE * problem.order_parameters.tolerance, name)
        arrays |= {f"{key}_{name}": values for key, values in _observed(law, path).items()}
        status = path.status if status == "complete" else status
    return Solved("assumptions", {"time": times} | arrays, status, effort={"nodes": count})


SHOWN = ("Q", "R", "generalisation_error", "Q_error", "R_error", "generalisation_error_error", "field_mean")
"""Variables of the exact theory that the report holds."""


def check_assumptions(problem: Problem) -> None:
    """Refuse what is no problem of the family: the report says itself which theory applies."""
    check_problem(problem, Problem)
    check_no_velocity(problem.training, "order parameters, density and SGD")
    check_no_file(problem, "comparisons with the conventional theory")


def _laws(problem: Problem, nodes: Nodes, order: int, closes: bool) -> list[tuple[str, Gaussian]]:
    """Gaussian latents in place of those of the problem, by name."""
    laws = [("conventional", conventional(problem, nodes, order))]
    return [*laws, ("matched", matched(problem, nodes, order))] if closes else laws


def _observed(law: Gaussian, path: Path) -> dict[str, FloatArray]:
    """Covariances of the fields, without what directions of means add to them, and the generalisation error."""
    K = law.system.students
    C = np.array([fields_at(law.system, y)[0][0] for y in packed(path.state)])
    return {"Q": C[:, :K, :K], "R": C[:, :K, K:], "generalisation_error": path.errors}


def _kurtosis(found: dict[str, Any], chance: FloatArray) -> FloatArray:
    """Kurtosis of the student's fields, shape (times, students)."""
    Q = found.get("Q_component", found["Q"][:, None])
    return kurtosis(chance, found["field_mean"], np.einsum("tqkk->tqk", Q))


class Gaussian(NamedTuple):
    """Equations for latents of one Gaussian law.

    Parameters
    ----------
    system : System
        With one component; its columns are the teacher's vectors, directions in which latents spread, and the mean.
    spread : slice
        Columns of the directions, each of the length of the standard deviation along it.
    """

    system: System
    spread: slice


def conventional(problem: Problem, nodes: Nodes, order: int) -> Gaussian:
    """Equations that take each latent for a standard Gaussian, and inputs for centred."""
    nothing = np.zeros(problem.teachers)
    return _gaussian(problem, nodes, order, 1.0, nothing, np.zeros((0, 1)), np.zeros((0, problem.teachers)))


def matched(problem: Problem, nodes: Nodes, order: int) -> Gaussian:
    """Equations for one Gaussian with the mean and the covariance of the latents."""
    means, norms = moving_means(problem)
    chance, scale = np.array(problem.inputs.gaussians).T
    vectors = np.hstack([means, np.diag(norms)])
    mean = chance @ vectors
    _, sizes, directions = np.linalg.svd(np.sqrt(chance)[:, None] * (vectors - mean), full_matrices=False)
    rounding = 1e-12 * np.abs(vectors).max(initial=0.0)
    kept = sizes > rounding
    spread = sizes[kept, None] * directions[kept]
    M = problem.teachers
    s = float(np.sqrt(chance @ scale**2))
    if np.abs(mean).max() <= rounding:
        mean = np.zeros(len(mean))
    return _gaussian(problem, nodes, order, s, mean[:M], np.vstack([spread[:, M:], mean[None, M:]]), spread[:, :M])


def _gaussian(
    problem: Problem,
    nodes: Nodes,
    order: int,
    scale: float,
    mean: FloatArray,
    elsewhere: FloatArray,
    spread: FloatArray,
) -> Gaussian:
    """Equations; the last row of `elsewhere` belongs to the mean, those before it to `spread`."""
    T, M = problem.teacher_overlap, problem.teachers
    has_mean = bool(mean.any() or elsewhere[-1:].any())
    rows = np.vstack([spread, mean]) if has_mean else spread
    apart = np.vstack([np.zeros((M, elsewhere.shape[1])), elsewhere[: len(rows)]])
    on_teacher = np.vstack([np.eye(M), rows])
    found = problem.inputs.function.moments(scale)
    variance = found.square - found.mean**2
    system = make_system(problem, nodes, order)._replace(
        t=nodes.teacher[:, None, None] * (on_teacher @ T @ on_teacher.T) + apart @ apart.T,
        chance=np.ones(1),
        slope=np.array([found.slope]),
        scale=np.array([scale]),
        rest=np.array([max(variance - found.slope**2, 0.0)]),
        variance=np.array([variance]),
        constant=np.zeros(1),
        column=np.array([M + len(spread) if has_mean else -1], dtype=np.int64),
    )
    return Gaussian(system, slice(M, M + len(spread)))


def loadings_of(law: Gaussian, state: State) -> FloatArray:
    """Fields (lambda, nu) per unit of xi in each direction, shape (fields, directions)."""
    system, M = law.system, law.system.teachers
    r, t = (np.tensordot(system.weight, part[..., law.spread], axes=1) for part in (state.r, system.t))
    return np.vstack([system.slope[0] / system.scale[0] * r, t[:M]])


def gaussian_rates(law: Gaussian, y: FloatArray) -> tuple[FloatArray, float]:
    """Rates of change of a state, and its generalisation error."""
    system = law.system
    state = unpacked(system, y)
    K = system.students
    M = system.teachers
    C, m, u = fields_at(system, y)
    loadings = loadings_of(law, state)
    C[0] += loadings @ loadings.T
    A, H, G, D = np.zeros((1, K, K + M)), np.zeros((1, K, K)), np.zeros((1, K)), np.zeros((1, K))
    error = float(expectations(system.kind, K, C[0], m[0], u, system.training[3], system.rule, A[0], H[0], G[0], D[0]))
    change = np.empty(len(y))
    rates_of_expectations(system, y, C, m, A, H, G, D, change)
    others = unpacked(system, change)
    pull = float(system.slope[0] / system.scale[0]) * A[0] @ loadings
    along = -system.training[0] / system.aspect_ratio * system.rho[:, None, None] * pull
    half = along @ state.r[..., law.spread].swapaxes(1, 2)
    r = others.r + along @ system.t[:, law.spread]
    return packed(others._replace(r=r, sigma=others.sigma + half + half.swapaxes(1, 2))), error


def follow_gaussian(problem: Problem, law: Gaussian, times: FloatArray, step: float, label: str) -> Path:
    """Order parameters along the path of a problem, with a tolerance of a step; NaN where it was not reached."""
    found = solve_ode(
        lambda _, y: gaussian_rates(law, y)[0],
        start_of(problem, law.system),
        times,
        Tolerance(step, step),
        integrator="DOP853",
        stops=[lambda _, y: BLOWN_UP - float(np.abs(y).max())],
        label=label,
    )
    status = found.status
    if found.stopped_by is not None:
        what = f"order parameters grow beyond {BLOWN_UP:g}"
        status = BlowUpError(found.end_time, what, "lower training.learning_rate").status
    errors = [gaussian_rates(law, y)[1] if np.isfinite(y).all() else np.nan for y in found.values]
    return Path(unpacked(law.system, found.values), np.array(errors), status)
