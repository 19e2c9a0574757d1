"""Report on the assumptions of the conventional theory: what it, and a matched Gaussian, get wrong in time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from meanfield.families.hidden_manifold.assumptions.gaussian import (
    Gaussian,
    conventional,
    fields_of,
    follow_gaussian,
    matched,
)
from meanfield.families.hidden_manifold.assumptions.laws import MEANS, kurtosis, law_arrays
from meanfield.families.hidden_manifold.order_parameters.averaging.trajectory import averaged
from meanfield.families.hidden_manifold.order_parameters.integration import Path
from meanfield.families.hidden_manifold.order_parameters.system import State
from meanfield.families.hidden_manifold.order_parameters.trajectory import (
    FEWEST_NODES,
    LOWEST_ORDER,
    MORE,
    STEP_SHARE,
    refined,
)
from meanfield.families.hidden_manifold.problem import Problem
from meanfield.families.hidden_manifold.regimes import averages_close
from meanfield.families.hidden_manifold.spectra import Nodes
from meanfield.problems.base import check_problem
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray


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
    nodes = problem.inputs.spectrum.nodes(problem.inputs.aspect_ratio, count)
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


def _laws(problem: Problem, nodes: Nodes, order: int, closes: bool) -> list[tuple[str, Gaussian]]:
    """Gaussian latents in place of those of the problem, by name."""
    laws = [("conventional", conventional(problem, nodes, order))]
    return [*laws, ("matched", matched(problem, nodes, order))] if closes else laws


def _observed(law: Gaussian, path: Path) -> dict[str, FloatArray]:
    """Covariances of the fields, without what directions of means add to them, and the generalisation error."""
    K = law.system.students
    fields = [fields_of(law, State(*parts)) for parts in zip(*path.state, strict=True)]
    C = np.array([C - loadings @ loadings.T for C, _, loadings in fields])
    return {"Q": C[:, :K, :K], "R": C[:, :K, K:], "generalisation_error": path.errors}


def _kurtosis(found: dict[str, Any], chance: FloatArray) -> FloatArray:
    """Kurtosis of the student's fields, shape (times, students)."""
    Q = found.get("Q_component", found["Q"][:, None])
    return kurtosis(chance, found["field_mean"], np.einsum("tqkk->tqk", Q))
