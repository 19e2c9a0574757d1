"""The density of two channels: on cells, or by formula under a linear prior, where w given u is Gaussian."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from meanfield.families.contrastive.channels.density.display import (
    CELLS,
    COMBINATIONS,
    JOINT_CELLS,
    REACH,
    joint_outputs,
)
from meanfield.families.contrastive.channels.density.search import search_plane
from meanfield.families.contrastive.channels.in_time import ChannelsInTime
from meanfield.families.contrastive.channels.trajectory import averages_along, trajectory_of_channels
from meanfield.families.contrastive.initial_state import with_errors_of_start
from meanfield.families.contrastive.problem import Problem
from meanfield.families.contrastive.results import KINDS, OF_BOTH_WEIGHTS
from meanfield.mckean_vlasov.cells import cell_arrays
from meanfield.mckean_vlasov.declarations import ODE_ACCURACY
from meanfield.mckean_vlasov.density.settings import FIXED_KEYS, PLANE_TOLERANCE, DensitySettings
from meanfield.mckean_vlasov.density.start import Nodes, Symmetric
from meanfield.mckean_vlasov.marginal import marginal_density
from meanfield.results.solved import Solved
from meanfield.typing import FloatArray

LEAST_VARIANCE = 1e-12
"""Variance in place of smaller ones: where one weight is a function of the other its law has no width."""

NODE_SCALE = 0.5
"""Factor on the default number of nodes where only densities take them."""


class Solution(NamedTuple):
    """Variables of both results, the status, and numbers for the provenance."""

    arrays: dict[str, Any]
    status: str
    effort: dict[str, Any]


def solve_plane(closure: ChannelsInTime) -> tuple[Solved, Solved]:
    """Density of the weights of two channels by finite volumes, or by formula where it is Gaussian.

    Parameters
    ----------
    closure : ChannelsInTime
        Of a problem of two channels with a start that is not random.

    Returns
    -------
    density : Solved
        `q`, `M`, `r`, the second moments `norm`, the total probability `mass`; `P` and `P_w`, densities of each
        weight, `P_sum` and `P_difference`, those of (w_1 +- w_2)/sqrt(2); `P_gain`, `D` and `Lambda`. With a tolerance
        also `q_error`, `M_error`, `r_error` and `P_error`.
    joint : Solved
        Of the kind `joint_density`: `P_joint` and `P_joint_given_u`, densities of both weights at some times.

    Raises
    ------
    DegenerateError
        If the prior is not linear and the channels have no density in the plane, at the start or later.
    InputError
        If the solution needs more memory than is free.

    Notes
    -----
    Cells move with the weights: w = mu_u + S x with the mean mu_u at each node and the common covariance S S^T.
    There a Gaussian law is at rest, however fast overlaps change and however narrow laws become, so that cells are
    few and what they have to resolve is what the prior does. Under linear priors the law stays Gaussian, and the
    overlaps give it; with `density.scheme = "finite_volumes"`, or given cells or steps, cells solve it
    independently of them. Fluxes are those of Scharfetter and Gummel along the lattice directions of the noise.
    Source: several_channels.md, section 5.
    """
    problem = closure.problem
    settings = problem.density
    free = settings.scheme == "automatic" and all(getattr(settings, key) is None for key in FIXED_KEYS)
    solve = _gaussian if free and all(prior.functions.linear for prior in closure.priors) else _by_finite_volumes
    arrays, status, effort = solve(closure)
    alone = {name: array for name, array in arrays.items() if name not in OF_BOTH_WEIGHTS}
    together = {name: arrays[name] for name in KINDS["joint_density"].variables}
    return Solved("density", alone, status, effort=effort), Solved("joint_density", together, status, effort=effort)


def settings_of(problem: Problem) -> DensitySettings:
    """Settings with the default tolerance, if neither it nor cells are given."""
    settings = problem.density
    fixed = settings.tolerance or settings.cells or settings.steps or settings.order
    return settings if fixed else DensitySettings(**settings.model_dump() | {"tolerance": PLANE_TOLERANCE})


def _gaussian(closure: ChannelsInTime) -> Solution:
    """Density by the overlaps alone."""
    problem = closure.problem
    found, status = trajectory_of_channels(closure)
    q, M = found["q"], found["M"]
    u, weight = nodes = _nodes(closure, problem)
    half_width = _gaussian_reach(q, M, u, COMBINATIONS)
    kept = joint_outputs(len(q), len(u))
    singles = _gaussian_singles(q, M, u, half_width, COMBINATIONS)
    joint = np.array([_gaussian_joint(q[index], M[index], u, half_width) for index in kept])
    known = np.where(np.isfinite(q).all(axis=(1, 2)), 1.0, np.nan)
    priors = [closure.largest_at(time).problem.prior for time in problem.time.outputs_at]
    r = np.array([prior.force(np.ones(1)) for prior in priors])
    densities, between = _densities(problem, nodes, singles, joint, half_width, kept)
    arrays = found | densities
    arrays |= {"r": r * known[:, None] * np.ones(2), "norm": known[:, None] * np.ones(2), "mass": known}
    if status != "interrupted":
        arrays = _errors_of_overlaps(q, M) | arrays
        arrays |= {"r_error": np.zeros((len(q), 2)), "P_error": between + ODE_ACCURACY}
    return Solution(arrays, status, {"scheme": "gaussian", "nodes": len(weight)})


def _errors_of_overlaps(q: FloatArray, M: FloatArray) -> dict[str, FloatArray]:
    """Errors of overlaps where trajectories state no others."""
    pairs = 1.0 - np.eye(2)
    return {"q_error": np.full(q.shape, ODE_ACCURACY), "M_error": np.broadcast_to(ODE_ACCURACY * pairs, M.shape).copy()}


def _nodes(limit: Symmetric, problem: Problem) -> tuple[FloatArray, FloatArray]:
    nodes = Nodes.of(limit, problem.density.feature_nodes, NODE_SCALE)
    return nodes.u, nodes.u_weight


def _by_finite_volumes(closure: ChannelsInTime) -> Solution:
    problem = closure.problem
    search, status = search_plane(closure, settings_of(problem))
    level = search.shown
    moments = search.moments
    outputs, d1 = len(moments), len(problem.features)
    q, squares, r, mass = np.split(moments, [2 * d1, 2 * d1 + 4, 2 * d1 + 6], axis=1)
    q, raw = q.reshape(outputs, d1, 2), squares.reshape(outputs, 2, 2)
    norm = np.einsum("tkk->tk", raw)
    M = raw / np.sqrt(norm[:, :, None] * norm[:, None, :])
    M[:, [0, 1], [0, 1]] = np.where(np.isfinite(norm), 1.0, np.nan)
    q[0], M[0] = problem.initial_overlap, problem.initial_channel_overlap  # without tails beyond the cells
    r[0] = np.where(np.isnan(search.initial_work), r[0], search.initial_work)
    nodes = level.nodes.u, level.nodes.u_weight
    densities, between = _densities(problem, nodes, level.singles, level.joint, search.half_width, level.kept)
    arrays: dict[str, Any] = {"time": problem.time.outputs_at, "q": q, "M": M, "r": r, "norm": norm, "mass": mass[:, 0]}
    arrays |= densities | averages_along(closure, q, M)
    if search.errors is not None and search.density_error is not None:
        q_error, M_error, r_error = np.split(search.errors, [2 * d1, 2 * d1 + 4], axis=1)
        arrays |= {
            "q_error": q_error.reshape(q.shape),
            "M_error": M_error.reshape(M.shape) * (1.0 - np.eye(2)),
            "r_error": r_error,
            "P_error": search.density_error + between,
        }
        arrays = with_errors_of_start(problem, arrays)
    return Solution(arrays, status, {"scheme": "finite volumes"} | search.effort)


def _densities(
    problem: Problem,
    nodes: tuple[FloatArray, FloatArray],
    singles: FloatArray,
    joint: FloatArray,
    half_width: float,
    kept: list[int],
) -> tuple[dict[str, Any], FloatArray]:
    """Variables that describe the density, and the error of the laws of single weights by interpolation in u."""
    joint_edges = np.linspace(-half_width, half_width, JOINT_CELLS + 1)
    alone, errors = single_arrays(problem, nodes, singles, half_width)
    arrays = {
        "P_joint": np.einsum("n,tnij->tij", nodes[1], joint),
        "P_joint_given_u": joint,
        "density_time": problem.time.outputs_at[kept],
    }
    axes = {
        name.replace("w", axis): values for axis in ("w1", "w2") for name, values in cell_arrays(joint_edges).items()
    }
    return alone | arrays | axes, errors


def single_arrays(
    problem: Problem, nodes: tuple[FloatArray, FloatArray], singles: FloatArray, half_width: float
) -> tuple[dict[str, Any], FloatArray]:
    """Variables of the laws of single weights, and of the `DIAGONALS` of two, and their error by interpolation in u."""
    (u, weight), channels = nodes, problem.model.channels
    edges = np.linspace(-half_width, half_width, CELLS + 1)
    numbers = range(singles.shape[-1])
    alone = [marginal_density(problem.coordinates, u, weight, edges, singles[..., k]) for k in numbers]
    P, errors = np.stack([density for density, _ in alone], axis=-1), np.max([error for _, error in alone], axis=0)
    arrays = {"P": singles[..., :channels], "P_w": P[..., :channels], "u": u, "u_weight": weight} | cell_arrays(edges)
    if channels == 2:
        arrays |= {"P_sum": P[..., 2], "P_difference": P[..., 3]}
    return arrays, errors


def gaussian_arrays(problem: Problem, q: FloatArray, M: FloatArray) -> dict[str, Any]:
    """Variables of Gaussian laws at overlaps q, shape (states, d1, d2), and M, shape (states, d2, d2)."""
    channels = problem.model.channels
    shown = COMBINATIONS if channels == 2 else np.eye(channels)
    nodes = _nodes(problem, problem)
    half_width = _gaussian_reach(q, M, nodes[0], shown)
    return single_arrays(problem, nodes, _gaussian_singles(q, M, nodes[0], half_width, shown), half_width)[0]


def _gaussian_reach(q: FloatArray, M: FloatArray, u: FloatArray, shown: FloatArray) -> float:
    """Half-width that the laws need at overlaps q, shape (times, d1, d2), and M, shape (times, d2, d2)."""
    known = np.isfinite(M).all(axis=(1, 2))
    means = np.abs(np.einsum("nf,tfk,ck->tnc", u, q[known], shown)).max(axis=1)
    return float((means + REACH * np.sqrt(_variances(q[known], M[known], shown))).max())


def _gaussian_singles(q: FloatArray, M: FloatArray, u: FloatArray, half_width: float, shown: FloatArray) -> FloatArray:
    """Densities of combinations of the weights given u, averaged over cells, shape (times, nodes, CELLS, shown)."""
    edges = np.linspace(-half_width, half_width, CELLS + 1)
    means = np.einsum("nf,tfk,ck->tnc", u, q, shown)
    scores = (edges[:, None] - means[:, :, None, :]) / np.sqrt(_variances(q, M, shown))[:, None, None, :]
    return np.asarray(np.diff(ndtr(scores), axis=2) * (0.5 * CELLS / half_width))


def _gaussian_joint(q: FloatArray, M: FloatArray, u: FloatArray, half_width: float) -> FloatArray:
    """Density of both weights given u at one time, averaged over cells, shape (nodes, JOINT_CELLS, JOINT_CELLS).

    The law of w_2 is that given w_1 at the centre of its cell.
    """
    edges = np.linspace(-half_width, half_width, JOINT_CELLS + 1)
    centres = 0.5 * (edges[1:] + edges[:-1])
    K, means = M - q.T @ q, u @ q
    variance = max(K[0, 0], LEAST_VARIANCE)
    left = max(K[1, 1] - K[0, 1] ** 2 / variance, LEAST_VARIANCE)
    first = np.diff(ndtr((edges - means[:, :1]) / np.sqrt(variance)), axis=1)
    second = means[:, 1:] + K[0, 1] / variance * (centres - means[:, :1])
    given = np.diff(ndtr((edges - second[:, :, None]) / np.sqrt(left)), axis=2)
    return np.asarray(first[:, :, None] * given * (0.5 * JOINT_CELLS / half_width) ** 2)


def _variances(q: FloatArray, M: FloatArray, shown: FloatArray) -> FloatArray:
    """Variances of combinations given u, shape (times, shown)."""
    K = M - np.swapaxes(q, 1, 2) @ q
    return np.asarray(np.maximum(np.einsum("ck,tkl,cl->tc", shown, K, shown), LEAST_VARIANCE))
