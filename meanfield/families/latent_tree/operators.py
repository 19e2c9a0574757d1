"""Covariance operators of the latents, exactly: -grad L = 2 OP vec W for each latent alone (latent_tree.md, 1.3).

Two views c, c' with connections K contribute to OP of a latent -G(c, c') (K_c - K_c') (K'_c - K'_c')^T/2, where G is
the derivative of the loss by their distance. K' are the connections of the network, divided by |f| where outputs are
normalised, and K those that also follow the normalisation; without it they are the same, and OP is symmetric.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.ensembles.momentum import check_no_velocity
from meanfield.errors import InputError
from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.sizes import check_tables
from meanfield.families.latent_tree.tables import Pass, Tables
from meanfield.networks.distinct import MOST_PAIRS
from meanfield.networks.population import Evaluation
from meanfield.networks.triples import SUMMED
from meanfield.typing import FloatArray

MOST_NUMBERS = 2e7
"""Largest number of entries of the connections of all latents for all configurations: some 500 megabytes."""

PAIRED = (*SUMMED, "exact")
"""Losses that depend on all pairs of outputs."""

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
    return problem.loss.kind in SUMMED or (problem.loss.kind == "beta" and problem.loss.beta != 0.0)


def fits(problem: Problem) -> bool:
    """Whether operators are exact, from all configurations of the leaves, or from views that are drawn."""
    try:
        check_tables(problem)
    except InputError:
        return False
    views = problem.shape.configurations[-1]
    # Largest number of configurations of the leaves of which there is a table of all pairs: 800 megabytes.
    return not needs_connections(problem) or (views <= 1e4 and _numbers(problem, views) <= MOST_NUMBERS)


def _numbers(problem: Problem, views: int) -> float:
    """Number of entries of the connections of all latents for so many views, or of the signals of which means are."""
    shape = problem.shape
    each = (
        _weights(problem)
        if needs_connections(problem)
        else (len(problem.tree.root) - 1) * len(shape.level_of) * shape.nodes
    )
    return float(views) * each * shape.width(shape.depth)


def _weights(problem: Problem) -> int:
    """Number of weights of all latents."""
    shape = problem.shape
    return sum(n * inputs * shape.nodes for n, inputs in zip(shape.latents[1:], shape.inputs, strict=True))


def check_operators(problem: Problem) -> None:
    """Refuse problems whose operators do not fit, not even those of views that are drawn.

    Raises
    ------
    InputError
        With the size, and what to do instead.
    """
    check_no_velocity(problem.training, "population and SGD")
    shape = problem.shape
    weights = shape.nodes * max(shape.inputs)
    if needs_connections(problem) and weights > MOST_WEIGHTS:
        raise InputError(
            f"loss.kind = '{problem.loss.kind}': a latent has {weights:,} weights, and operators of at most "
            f"{MOST_WEIGHTS:,} fit; lower network.nodes_per_latent, or set loss.kind to 'simple'"
        )
    if fits(problem):
        return
    views = problem.operator.samples * len(problem.tree.root)
    numbers = _numbers(problem, views)
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"operator.samples = {problem.operator.samples:,}: so many views of each value of the root with "
            f"{_weights(problem):,} weights need {numbers:.3g} numbers, and at most {MOST_NUMBERS:.3g} fit; lower it "
            f"to {int(problem.operator.samples * MOST_NUMBERS / numbers):,}, or network.nodes_per_latent"
        )
    if problem.loss.kind in PAIRED and float(views) ** 2 > MOST_PAIRS:
        most = int(MOST_PAIRS**0.5) // len(problem.tree.root)
        raise InputError(
            f"operator.samples = {problem.operator.samples:,}: loss.kind = '{problem.loss.kind}' takes all pairs of "
            f"views, {float(views) ** 2:.3g}, and at most {MOST_PAIRS:.3g} are taken; lower it to {most:,}"
        )


def operators(tables: Tables, found: Pass, evaluation: Evaluation) -> list[Operator]:
    """Operators of all latents, the root first."""
    if evaluation.pull is None and evaluation.within == 0.0:
        return _of_means(tables, found, evaluation)
    return _of_views(tables, found, evaluation)


def _of_means(tables: Tables, found: Pass, evaluation: Evaluation) -> list[Operator]:
    """Operators from the mean connections given the root, one column for each output and contrast of its values."""
    shape, views = found.weights.shape, tables.views
    assert evaluation.between is not None
    # OP is a sum over pairs of values, p p' kappa (K - K')(K - K')^T/2, which is K^T A K of the means of connections.
    pairs = views.p[:, None] * views.p * evaluation.between
    size, contrast = np.linalg.eigh(np.diag(pairs.sum(axis=1)) - pairs)
    counts = np.argsort(np.abs(size))[1:]  # what all values have in common counts for nothing
    contrasts = np.einsum("zk,pzc->kpc", contrast[:, counts], views.P)
    outputs = shape.width(shape.depth)
    slope = contrasts[:, None, ..., None] * np.eye(outputs)[None, :, None, None, :]
    slope = slope.reshape(-1, *slope.shape[2:])
    scale = np.repeat(size[counts], outputs)
    root = np.sqrt(np.abs(scale))  # on both sides, so that their small product is symmetric where OP is
    left = tables.gradient(found, tables.by_last(found, slope)).W
    normalised = tables.problem.normalisation.active
    gain = tables.problem.normalisation.gain(found.before[-1]) if normalised else 1.0
    right = tables.gradient(found, slope * gain).W if normalised else left
    made = []
    for level in reversed(shape.levels):
        for latent in range(shape.latents[level]):
            K, K_ = (side[level - 1][:, latent].reshape(len(scale), -1).T for side in (left, right))
            made.append(Operator(np.sign(scale) * root * K, root * K_, not normalised))
    return made


def _of_views(tables: Tables, found: Pass, evaluation: Evaluation) -> list[Operator]:
    """Operators from the connections of all configurations of the leaves."""
    weights = found.weights
    shape = found.weights.shape
    normalised = tables.problem.normalisation.active
    activity = network.forward(weights, tables.inputs)
    last = activity.last
    unit = np.broadcast_to(np.eye(last.shape[-1])[:, None, :], (last.shape[-1], *last.shape))
    left = network.signals(weights, activity, tables.problem.output.back(last, unit))
    right = network.signals(weights, activity, tables.problem.output.gain(last) * unit) if normalised else left
    pairs = _pairs(tables, evaluation, len(last))
    made = []
    for level in reversed(shape.levels):
        for latent in range(shape.latents[level]):
            x = activity.inputs[level - 1][latent][:, None, :]
            by_output = zip(left[level - 1][:, latent], right[level - 1][:, latent], strict=True)
            # One output after the other: their connections and products fit into the caches.
            matrix = sum(_connections(K, x).T @ (pairs @ _connections(K_, x)) for K, K_ in by_output)
            made.append(Operator(np.asarray(matrix), None, not normalised))
    return made


def _connections(signal: FloatArray, inputs: FloatArray) -> FloatArray:
    """Connections of one output, shape (views, weights), from signals (views, nodes) and inputs (views, 1, inputs)."""
    return (signal[:, :, None] * inputs).reshape(len(signal), -1)


def _pairs(tables: Tables, evaluation: Evaluation, count: int) -> FloatArray:
    """Matrix M of all pairs of views, of which OP is the sum of K_c M(c, c') K'_c' over them and over outputs."""
    if evaluation.pull is not None:
        pulled = evaluation.pull(np.column_stack([np.ones(count), np.eye(count)]))
        return -0.5 * (np.diag(pulled[:, 0]) - pulled[:, 1:])
    p = tables.views.p
    P = tables.views.P[0] if tables.whole else _all_views(tables)
    assert evaluation.between is not None
    given, mean = p[:, None] * P, p @ P
    spread = np.diag(mean) - given.T @ P  # V[.|z], on average
    between = given.T @ P - np.outer(mean, mean)
    return np.asarray(float(evaluation.between[0, 1]) * between - evaluation.within * spread)


def _all_views(tables: Tables) -> FloatArray:
    """Probabilities of all configurations given the root where it has no table."""
    first, *others = tables.given_parent[-1]
    P = first
    for other in others:
        P = (P[:, :, None] * other[:, None, :]).reshape(len(P), -1)
    return np.asarray(P)
