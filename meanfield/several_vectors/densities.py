"""Densities of single weights and of two weights as results show them: from cells, or of Gaussian laws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from meanfield.ingredients.laws import CoordinateLaw
from meanfield.mckean_vlasov.cells import cell_arrays
from meanfield.mckean_vlasov.density.settings import PLANE_TOLERANCE, DensitySettings
from meanfield.mckean_vlasov.density.start import Nodes, Symmetric
from meanfield.mckean_vlasov.marginal import marginal_density
from meanfield.several_vectors.display import CELLS, COMBINATIONS, JOINT_CELLS, REACH, joint_outputs
from meanfield.several_vectors.limit import JointLimit
from meanfield.several_vectors.search import search_plane
from meanfield.typing import FloatArray

LEAST_VARIANCE = 1e-12
"""Variance in place of smaller ones: where one weight is a function of the other its law has no width."""

NODE_SCALE = 0.5
"""Factor on the default number of nodes where only densities take them."""


class Solution(NamedTuple):
    """Variables of single weights and of both together, the status, and numbers for the provenance."""

    arrays: dict[str, Any]
    status: str
    effort: dict[str, Any]


def settings_of(settings: DensitySettings) -> DensitySettings:
    """Settings with the default tolerance, if neither it nor cells are given."""
    fixed = settings.tolerance or settings.cells or settings.steps or settings.order
    return settings if fixed else DensitySettings(**settings.model_dump() | {"tolerance": PLANE_TOLERANCE})


def solve_on_cells(limit: JointLimit, settings: DensitySettings, compared: JointLimit | None = None) -> Solution:
    """Density of two vectors by finite volumes.

    Parameters
    ----------
    limit : JointLimit
        Of two vectors.
    settings : DensitySettings
        With a tolerance or cells; see `settings_of`.
    compared : JointLimit, optional
        The same by another quadrature, where coefficients have errors.

    Returns
    -------
    Solution
        `q`, `M`, `r`, the second moments `norm`, the total probability `mass`; `P` and `P_w`, densities of each weight,
        `P_sum` and `P_difference`, those of (w_1 +- w_2)/sqrt(2), and those `OF_BOTH_WEIGHTS`. With a tolerance also
        `q_error`, `M_error`, `r_error`, `P_error` and `F_error`.

    Raises
    ------
    DegenerateError
        If the vectors have no density in the plane, at the start or later.
    InputError
        If the solution needs more memory than is free.

    Notes
    -----
    Cells move with the weights: w = mu_u + S x with the mean mu_u at each node and the common covariance S S^T.
    There a Gaussian law is at rest, however fast overlaps change and however narrow laws become, so that cells are
    few and what they have to resolve is what the prior does. Fluxes are those of Scharfetter and Gummel along the
    lattice directions of the noise. Source: several_channels.md, section 5.
    """
    search, status = search_plane(limit, settings, compared)
    level = search.shown
    moments, kept = search.moments, np.isfinite(limit.kept)
    outputs, d1 = len(moments), len(limit.initial_q)
    q, squares, r, mass = np.split(moments, [2 * d1, 2 * d1 + 4, 2 * d1 + 6], axis=1)
    q, raw = q.reshape(outputs, d1, 2), squares.reshape(outputs, 2, 2)
    norm = np.einsum("tkk->tk", raw)
    scale, lengths = np.where(kept, norm, 1.0), np.where(kept, limit.lengths, 1.0)
    M = raw / np.sqrt(scale[:, :, None] * scale[:, None, :]) * np.outer(lengths, lengths)
    M[:, [0, 1], [0, 1]] = np.where(np.isfinite(norm) & kept, limit.kept, norm)
    q[0], M[0] = limit.initial_q, limit.initial_M  # without tails beyond the cells
    r[0] = np.where(np.isnan(search.initial_work), r[0], search.initial_work)
    nodes = level.nodes.u, level.nodes.u_weight
    densities, between = density_arrays(limit, nodes, level.singles, level.joint, search.half_width, level.kept)
    arrays: dict[str, Any] = {"time": limit.times, "q": q, "M": M, "r": r, "norm": norm, "mass": mass[:, 0]}
    arrays |= densities
    if search.errors is not None:
        P_error, F_error = search.density_errors
        q_error, M_error, r_error = np.split(search.errors, [2 * d1, 2 * d1 + 4], axis=1)
        arrays |= {
            "q_error": q_error.reshape(q.shape),
            "M_error": M_error.reshape(M.shape) * (1.0 - np.diag(np.where(kept, 1.0, 0.0))),
            "r_error": r_error,
            "P_error": P_error + between,
            "F_error": F_error + 0.5 * between,
        }
    return Solution(arrays, status, {"scheme": "finite volumes"} | search.effort)


def gaussian_densities(limit: JointLimit, q: FloatArray, M: FloatArray, feature_nodes: int | None) -> dict[str, Any]:
    """Densities of two vectors at overlaps in time, where they are Gaussian given u, with `P_error` between nodes.

    Parameters
    ----------
    q, M : ndarray, shapes (times, features, 2) and (times, 2, 2)
        NaN at times that were not reached.
    """
    u, _ = nodes = _nodes(limit, feature_nodes)
    half_width = _reach(q, M, u, COMBINATIONS)
    kept = joint_outputs(len(q), len(u))
    singles = _singles(q, M, u, half_width, COMBINATIONS)
    joint = np.array([_joint(q[index], M[index], u, half_width) for index in kept])
    densities, between = density_arrays(limit, nodes, singles, joint, half_width, kept)
    return densities | {"P_error": between}


def density_arrays(
    limit: JointLimit,
    nodes: tuple[FloatArray, FloatArray],
    singles: FloatArray,
    joint: FloatArray,
    half_width: float,
    kept: list[int],
) -> tuple[dict[str, Any], FloatArray]:
    """Variables that describe the density, and the error of the laws of single weights by interpolation in u."""
    joint_edges = np.linspace(-half_width, half_width, JOINT_CELLS + 1)
    alone, errors = single_arrays(limit.coordinates, nodes, singles, half_width, len(limit.lengths))
    arrays = {
        "P_joint": np.einsum("n,tnij->tij", nodes[1], joint),
        "P_joint_given_u": joint,
        "density_time": limit.times[kept],
    }
    axes = {
        name.replace("w", axis): values for axis in ("w1", "w2") for name, values in cell_arrays(joint_edges).items()
    }
    return alone | arrays | axes, errors


def single_arrays(
    coordinates: Sequence[CoordinateLaw],
    nodes: tuple[FloatArray, FloatArray],
    singles: FloatArray,
    half_width: float,
    vectors: int,
) -> tuple[dict[str, Any], FloatArray]:
    """Variables of the laws of single weights, and of the `DIAGONALS` of two, and their error by interpolation in u."""
    u, weight = nodes
    edges = np.linspace(-half_width, half_width, CELLS + 1)
    numbers = range(singles.shape[-1])
    alone = [marginal_density(coordinates, u, weight, edges, singles[..., k]) for k in numbers]
    P, errors = np.stack([density for density, _ in alone], axis=-1), np.max([error for _, error in alone], axis=0)
    arrays = {"P": singles[..., :vectors], "P_w": P[..., :vectors], "u": u, "u_weight": weight} | cell_arrays(edges)
    if vectors == 2:
        arrays |= {"P_sum": P[..., 2], "P_difference": P[..., 3]}
    return arrays, errors


def gaussian_arrays(limit: Symmetric, q: FloatArray, M: FloatArray, feature_nodes: int | None) -> dict[str, Any]:
    """Variables of Gaussian laws at overlaps q, shape (states, d1, d2), and M, shape (states, d2, d2)."""
    vectors = M.shape[-1]
    shown = COMBINATIONS if vectors == 2 else np.eye(vectors)
    nodes = _nodes(limit, feature_nodes)
    half_width = _reach(q, M, nodes[0], shown)
    singles = _singles(q, M, nodes[0], half_width, shown)
    return single_arrays(limit.coordinates, nodes, singles, half_width, vectors)[0]


def _nodes(limit: Symmetric, feature_nodes: int | None) -> tuple[FloatArray, FloatArray]:
    nodes = Nodes.of(limit, feature_nodes, NODE_SCALE)
    return nodes.u, nodes.u_weight


def _reach(q: FloatArray, M: FloatArray, u: FloatArray, shown: FloatArray) -> float:
    """Half-width that the laws need at overlaps q, shape (times, d1, d2), and M, shape (times, d2, d2)."""
    known = np.isfinite(M).all(axis=(1, 2))
    means = np.abs(np.einsum("nf,tfk,ck->tnc", u, q[known], shown)).max(axis=1)
    return float((means + REACH * np.sqrt(_variances(q[known], M[known], shown))).max())


def _singles(q: FloatArray, M: FloatArray, u: FloatArray, half_width: float, shown: FloatArray) -> FloatArray:
    """Densities of combinations of the weights given u, averaged over cells, shape (times, nodes, CELLS, shown)."""
    edges = np.linspace(-half_width, half_width, CELLS + 1)
    means = np.einsum("nf,tfk,ck->tnc", u, q, shown)
    scores = (edges[:, None] - means[:, :, None, :]) / np.sqrt(_variances(q, M, shown))[:, None, None, :]
    return np.asarray(np.diff(ndtr(scores), axis=2) * (0.5 * CELLS / half_width))


def _joint(q: FloatArray, M: FloatArray, u: FloatArray, half_width: float) -> FloatArray:
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
