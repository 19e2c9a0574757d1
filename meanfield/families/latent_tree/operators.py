"""Covariance operators of the latents, exactly: -grad L = 2 OP vec W for each latent alone (latent_tree.md, 1.3).

Two views c, c' with connections K contribute to OP of a latent -G(c, c') (K_c - K_c') (K'_c - K'_c')^T/2, where G is
the derivative of the loss by their distance. K' are the connections of the network, divided by |f| where outputs are
normalised, and K those that also follow the normalisation; without it they are the same, and OP is symmetric.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.errors import InputError
from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.tables import Pass, Tables, check_tables
from meanfield.networks.population import Evaluation
from meanfield.typing import FloatArray

MOST_NUMBERS = 2e7
"""Largest number of entries of the connections of a latent for all configurations: some 100 megabytes, and seconds."""

MOST_WEIGHTS = 3000
"""Largest number of weights of a latent whose operator is listed: some seconds for its eigenvalues."""


class Operator(NamedTuple):
    """Operator of one latent as a product OP = left right^T, with few columns, or as a square matrix `left`."""

    left: FloatArray
    right: FloatArray | None
    symmetric: bool

    @property
    def norm(self) -> float:
        """Frobenius norm."""
        if self.right is None:
            return float(np.linalg.norm(self.left))
        return float(np.sqrt(max(np.sum((self.left.T @ self.left) * (self.right.T @ self.right)), 0.0)))

    @property
    def top(self) -> float:
        """Largest real part of an eigenvalue."""
        small = self.left if self.right is None else self.right.T @ self.left
        found = np.linalg.eigvalsh(0.5 * (small + small.T)) if self.symmetric else np.linalg.eigvals(small).real
        return float(max(found.max(), 0.0) if self.right is not None else found.max())

    @property
    def matrix(self) -> FloatArray:
        """OP itself."""
        return self.left if self.right is None else self.left @ self.right.T


def needs_connections(problem: Problem) -> bool:
    """Whether operators need the connections of single configurations, and not their means given the root alone."""
    return problem.loss.kind in ("triplet", "infonce") or (problem.loss.kind == "beta" and problem.loss.beta != 0.0)


def check_operators(problem: Problem) -> None:
    """Refuse problems whose operators do not fit.

    Raises
    ------
    InputError
        With the size, and what to do instead.
    """
    check_tables(problem)
    if not needs_connections(problem):
        return
    shape = problem.shape
    weights = shape.nodes * max(shape.inputs)
    numbers = float(shape.configurations[-1]) * weights * shape.nodes
    if numbers > MOST_NUMBERS or weights > MOST_WEIGHTS:
        raise InputError(
            f"loss.kind = '{problem.loss.kind}': operators need {weights:,} weights of a latent, {shape.nodes} outputs "
            f"and {shape.configurations[-1]:,} configurations of the leaves at once, {numbers:.3g} numbers, and "
            f"at most {MOST_NUMBERS:.3g} and {MOST_WEIGHTS:,} weights fit; lower tree.depth or "
            "network.nodes_per_latent, or set loss.kind to 'simple'"
        )


def operators(tables: Tables, found: Pass, evaluation: Evaluation) -> list[Operator]:
    """Operators of all latents, the root first."""
    if evaluation.pairs is None and evaluation.within == 0.0:
        return _of_means(tables, found, evaluation)
    return _of_views(tables, found, evaluation)


def _of_means(tables: Tables, found: Pass, evaluation: Evaluation) -> list[Operator]:
    """Operators from the differences of the mean connections given the root, one column for each output."""
    shape, views = found.weights.shape, tables.views
    assert evaluation.between is not None
    scale = float(views.p.prod() * evaluation.between[0, 1])
    difference = views.P[:, 1] - views.P[:, 0]
    outputs = shape.width(shape.depth)
    slope = difference[None, :, :, None] * np.eye(outputs)[:, None, None, :]
    left = tables.gradient(found, tables.by_last(found, slope)).W
    normalised = tables.problem.network.output_normalisation
    right = tables.gradient(found, slope * _gain(tables, found)).W if normalised else left
    made = []
    for level in reversed(shape.levels):
        for latent in range(shape.latents[level]):
            K, K_ = (side[level - 1][:, latent].reshape(outputs, -1).T for side in (left, right))
            made.append(Operator(scale * K, K_, not normalised))
    return made


def _gain(tables: Tables, found: Pass) -> FloatArray:
    return tables.problem.network.normalisation.gain(found.before[-1])


def _of_views(tables: Tables, found: Pass, evaluation: Evaluation) -> list[Operator]:
    """Operators from the connections of all configurations of the leaves."""
    weights, shape, normalisation = found.weights, found.weights.shape, tables.problem.network.normalisation
    leaves = np.array(tables.problem.tree.leaves)
    activity = network.forward(weights, leaves[np.indices((2,) * shape.latents[0]).reshape(shape.latents[0], -1).T])
    last = activity.last
    unit = np.broadcast_to(np.eye(last.shape[-1])[:, None, :], (last.shape[-1], *last.shape))
    left = network.signals(weights, activity, normalisation.back(last, unit))
    right = network.signals(weights, activity, normalisation.gain(last) * unit) if normalisation.active else left
    weigh = _weigher(tables, evaluation)
    made = []
    for level in reversed(shape.levels):
        for latent in range(shape.latents[level]):
            x = activity.inputs[level - 1][latent]
            K = _connections(x, left[level - 1][:, latent])
            K_ = _connections(x, right[level - 1][:, latent]) if normalisation.active else K
            matrix = np.tensordot(K, weigh(K_), axes=((0, 2), (0, 2)))
            made.append(Operator(matrix, None, not normalisation.active))
    return made


def _connections(inputs: FloatArray, signal: FloatArray) -> FloatArray:
    """Connections, shape (views, weights, outputs), from inputs (views, inputs) and signals (outputs, views, nodes)."""
    K = np.einsum("bsn,si->snib", signal, inputs)
    return np.asarray(K.reshape(len(inputs), -1, len(signal)))


def _weigher(tables: Tables, evaluation: Evaluation):  # type: ignore[no-untyped-def]
    """Linear map of connections K' with which OP is the sum of K times its result over views and outputs."""
    p = tables.views.p
    if evaluation.pairs is not None:
        both = evaluation.pairs + evaluation.pairs.T
        alone = both.sum(axis=1)[:, None, None]
        return lambda K: -0.5 * (alone * K - np.tensordot(both, K, axes=1))
    P = tables.given_latent[-1][0] if tables.whole else _all_views(tables)
    assert evaluation.between is not None
    kappa, beta = float(evaluation.between[0, 1]), evaluation.within

    def weigh(K: FloatArray) -> FloatArray:
        means = np.tensordot(P, K, axes=1)
        total = np.tensordot(p, means, axes=1)
        between = np.tensordot((p[:, None] * P).T, means - total, axes=1)
        within = (p @ P)[:, None, None] * K - np.tensordot((p[:, None] * P).T, means, axes=1)
        return np.asarray(kappa * between - beta * within)

    return weigh


def _all_views(tables: Tables) -> FloatArray:
    """Probabilities of all configurations given the root where it has no table."""
    first, *others = tables.given_parent[-1]
    P = first
    for other in others:
        P = (P[:, :, None] * other[:, None, :]).reshape(2, -1)
    return np.asarray(P)
