"""Operators, gradient, growth rates and selectivities at the initial weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from meanfield.families.latent_tree.initial_state import KEPT_AT_SNAPSHOTS
from meanfield.families.latent_tree.many_nodes.kernels import wide_limit
from meanfield.families.latent_tree.operators import check_operators, fits, operators
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.ring_tables import tables_of
from meanfield.families.latent_tree.sampled import sampled
from meanfield.families.latent_tree.shape import Shape
from meanfield.families.latent_tree.tables import Tables
from meanfield.families.latent_tree.weights import Weights
from meanfield.problems.base import check_problem
from meanfield.process.progress import counted
from meanfield.results.initial_state import first_weights
from meanfield.results.result import Result
from meanfield.results.solved import Solved, solver
from meanfield.typing import FloatArray

IMAGINARY_STEP = 1e-30
"""Imaginary step of derivatives: no digits are lost, however small it is."""


@solver
def find_operators(problem: Problem) -> Solved:
    """Covariance operators of all latents at the initial weights, with the gradient and the growth that it causes.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    xarray.Dataset
        `loss`; `gradient_norm` by level, of the gradient through all branches by the weights without biases;
        `operator_norm` and `operator_top` by latent, of the operator with -grad L = 2 OP vec W (that of the paper,
        which differentiates one branch; exactly so for the root without biases, while below it operators between
        latents of a level add to the gradient); `growth_rate`, `selectivity` and `correlation` by latent and node. A
        growth rate is that of the gap of a pre-activation under the flow W' = -grad L of all weights. For a uniform
        start on leaves 0 and 1 also `correlation_limit` and `growth_limit`, from kernels of infinitely many nodes.
        Where tables of all configurations do not fit averages are those of `operator.samples` views, as the attribute
        `warning` says, with their errors in variables with the suffix `_error`.

    Raises
    ------
    InputError
        If `operator.samples` views do not fit.

    Notes
    -----
    Source: latent_tree.md, sections 1.3, 3.1 and 3.2.
    """
    check_problem(problem, Problem)
    check_operators(problem)
    exact = fits(problem)
    arrays = measured(tables_of(problem)) if exact else sampled(problem, measured)
    limit = wide_limit(problem) if exact else None
    if limit is not None:
        arrays |= {"correlation_limit": limit.correlation, "growth_limit": np.array(limit.growth)}
    arrays["level"] = np.array(problem.shape.levels)
    warning = (
        "" if exact else f"the operators are those of {problem.operator.samples:,} views of each value of the root"
    )
    return Solved("operator", arrays | latent_coordinates(problem.shape), warning=warning)


def measured(tables: Tables) -> dict[str, Any]:
    """Results at the initial weights from averages."""
    problem = tables.problem
    weights = problem.initial_weights
    found = tables.forward(weights)
    evaluation = tables.evaluate(found)
    gradient = tables.gradient(found, tables.by_last(found, evaluation.slope))
    moments = tables.moments(found)
    made = operators(tables, found, evaluation)
    norms, tops = zip(*((each.norm, each.top) for each in counted(made, "operators", "latent")), strict=True)
    return {
        "loss": np.array(evaluation.value),
        "gradient_norm": np.array([np.linalg.norm(W) for W in gradient.W]),
        "operator_norm": np.array(norms),
        "operator_top": np.array(tops),
        "growth_rate": growth_rates(tables, weights, problem.motion.velocity(weights, gradient)),
        "selectivity": moments.selectivity,
        "correlation": moments.correlation,
    }


def growth_rates(tables: Tables, weights: Weights, velocity: FloatArray) -> FloatArray:
    """Growth rates of the gaps of pre-activations while weights move; NaN where there is no gap."""
    gap = tables.moments(tables.forward(weights.like(weights.vector + 1j * IMAGINARY_STEP * velocity))).gap
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap.real != 0.0, gap.imag / IMAGINARY_STEP / gap.real, np.nan)


def latent_coordinates(shape: Shape) -> dict[str, Any]:
    """Coordinates of latents in results."""
    return {"latent": np.arange(len(shape.level_of)), "latent_level": shape.level_of}


def start_of(result: Result) -> FloatArray | None:
    """See `meanfield.extend.Family.start`."""
    problem = result.problem
    if problem.initial is not None:
        return first_weights(result, "weights", KEPT_AT_SNAPSHOTS)
    own = not result.is_prediction and not problem.particles.common_start
    if own or result.method in ("density", "sphere_density", "node_particles"):
        return None
    if not isinstance(problem, Problem):  # on images, which would have to be read to draw the weights by this seed
        return np.array([float(problem.network.initial.seed)])
    return problem.initial_weights.vector
