"""Exact averages over a latent tree, from tables of all configurations of the leaves below each latent.

A pre-activation is a sum over children, which are independent given their parent. So tables of a level follow from
those below it by a product and a sum, and gradients by the same steps backwards. Losses that depend on means and
variances given the root need no table of the root unless outputs are normalised (latent_tree.md, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.weights import Array, Weights
from meanfield.networks.contrast import Contrast
from meanfield.networks.population import MOMENTS, Evaluation, Views, evaluate
from meanfield.typing import FloatArray

Gates = list[FloatArray]
"""Slope of the activation of each node, for each configuration, at levels 1, 2, ...: 1 where it is active, 0 where not,
and between them while its pre-activation stays at 0; shapes (latents, configurations, nodes)."""


class Pass(NamedTuple):
    """Tables of a network.

    Parameters
    ----------
    parts : list of ndarray, shape (latents, children, configurations of a child, nodes)
        What each child adds to the pre-activations at levels 1, 2, ..., L; biases are with the first child.
    before : list of ndarray, shape (latents, configurations, nodes)
        Pre-activations at the levels that have a table.
    gates : Gates
        Of the levels below the root.
    after : list of ndarray
        Activations, of the leaves first.
    """

    weights: Weights
    parts: list[Array]
    before: list[Array]
    gates: Gates
    after: list[Array]


class Moments(NamedTuple):
    """Moments of the nodes of each latent given its value, root first, shape (latents, nodes).

    A root with fewer outputs than a latent has nodes has their moments at the nodes in turns.

    Parameters
    ----------
    gap : ndarray
        Difference of the mean pre-activations for the values 1 and 0, or for more values their standard deviation.
    spread : ndarray
        Variance of the pre-activations.
    variance : ndarray, shape (latents, 1)
        Variance of the mean of a pre-activation given the latent by the square of the gap.
    selectivity : ndarray
        Half the difference of the mean activations for the values 1 and 0, or for more values their standard deviation;
        at the root activations are pre-activations.
    """

    gap: Array
    spread: Array
    variance: FloatArray
    selectivity: Array

    @property
    def correlation(self) -> FloatArray:
        """Correlations of latents and pre-activations, Pearson's or multiple ones; NaN where these are constant."""
        spread = np.maximum(self.spread, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(spread > 0.0, np.sqrt(self.variance) * self.gap / np.sqrt(spread), np.nan)
        return np.clip(found, -1.0, 1.0)


@dataclass(frozen=True)
class Tables:
    """Exact averages of one problem."""

    problem: Problem

    @property
    def whole(self) -> bool:
        """Whether the root has a table."""
        return needs_the_root(self.problem)

    @cached_property
    def given_parent(self) -> list[FloatArray]:
        """Probabilities of configurations given the parent's value, at levels 0 to L - 1, as `given_latent`."""
        return [edge @ P for edge, P in zip(self.problem.tree.edges, self.given_latent, strict=False)]

    @cached_property
    def given_latent(self) -> list[FloatArray]:
        """Probabilities of configurations given the values of latents, shape (latents, values, configurations)."""
        shape, tree = self.problem.shape, self.problem.tree
        found = [np.broadcast_to(np.eye(shape.values), (shape.latents[0], shape.values, shape.values))]
        for level in range(1, shape.depth + self.whole):
            below = tree.edges[level - 1] @ found[-1]
            children = below.reshape(shape.latents[level], shape.children[level - 1], *below.shape[1:])
            P = children[:, 0]
            for child in range(1, children.shape[1]):
                P = (P[..., None] * children[:, child, :, None, :]).reshape(*P.shape[:2], -1)
            found.append(P)
        return found

    @cached_property
    def views(self) -> Views:
        """Law of the views of a sample, which is the value of the root."""
        p = np.array(self.problem.tree.root)
        return Views(p, self.given_latent[-1] if self.whole else self.given_parent[-1])

    @property
    def inputs(self) -> FloatArray:
        """All configurations of the leaves, shape (configurations, leaves times their inputs)."""
        shape = self.problem.shape
        values = np.indices((shape.values,) * shape.latents[0]).reshape(shape.latents[0], -1).T
        return self.problem.tree.inputs[values].reshape(len(values), -1)

    @cached_property
    def chances(self) -> list[FloatArray]:
        """Probabilities of the values of latents at levels 0, 1, ..., L, shapes (latents, values)."""
        shape, tree = self.problem.shape, self.problem.tree
        found = [np.array(tree.root)[None]]
        for edge, children in zip(reversed(tree.edges), reversed(shape.children), strict=True):
            found.append((np.repeat(found[-1], children, axis=0)[:, None, :] @ edge)[:, 0])
        return found[::-1]

    def forward(self, weights: Weights, gates: Gates | None = None) -> Pass:
        """Tables of all levels, the root's only where it is needed; gates are those of the weights, or given ones."""
        shape = weights.shape
        leaves = self.problem.tree.inputs
        after: list[Array] = [np.broadcast_to(leaves, (shape.latents[0], *leaves.shape))]
        parts, before, open_ = [], [], []
        for level in shape.levels:
            W, children = weights.W[level - 1], shape.children[level - 1]
            f = after[-1].reshape(shape.latents[level], children, *after[-1].shape[1:])
            A = f @ W.transpose(0, 2, 3, 1)
            if weights.b:
                A[:, 0] += weights.b[level - 1][:, None, :]
            parts.append(A)
            if level == shape.depth and not self.whole:
                break
            u = _sums(A)
            before.append(u)
            if level < shape.depth:
                open_.append((u.real > 0.0).astype(float) if gates is None else gates[level - 1])
                after.append(open_[-1] * u)
        return Pass(weights, parts, before, open_, after)

    def outputs(self, found: Pass) -> FloatArray:
        """Outputs of views, as sums of parts that are independent given the root, shape (parts, views, outputs)."""
        return self.problem.normalisation.value(found.before[-1]) if self.whole else found.parts[-1][0]

    def evaluate(self, found: Pass, contrast: Contrast | None = None) -> Evaluation:
        """Loss, that of the problem by default, and its derivative by the outputs."""
        return evaluate(contrast or self.problem.contrast, self.views, self.outputs(found))

    def gap(self, outputs: FloatArray) -> float:
        """Delta, the difference of the mean outputs for the values 1 and 0 of the root; of several its length."""
        low, high = (self.views.P @ outputs).sum(axis=0)
        return float(np.linalg.norm(high - low)) if len(low) > 1 else float(high[0] - low[0])

    def by_last(self, found: Pass, slope: FloatArray) -> FloatArray:
        """Derivative by the last layer of what has the derivative `slope` by the outputs; of the same shape."""
        if not self.whole:
            return slope
        return self.problem.normalisation.back(found.before[-1], slope)

    def by_children(self, by_last: FloatArray) -> FloatArray:
        """Derivatives by what each child adds to the last layer, shape (..., 1, children, configurations, outputs).

        Parameters
        ----------
        by_last : ndarray, shape (..., parts, views, outputs)
            Derivatives by the last layer.
        """
        children = self.problem.shape.children[-1]
        return _marginal(by_last, children) if self.whole else by_last[..., None, :, :, :]

    def of_children(self, parts: FloatArray, contrast: Contrast | None = None) -> tuple[float, float, FloatArray]:
        """Loss and Delta, and the derivative of the loss by what each child adds to the last layer.

        Parameters
        ----------
        parts : ndarray, shape (children, configurations of a child, outputs)
            What each child adds.
        contrast : Contrast, optional
            The loss, by default that of the problem.
        """
        output = self.problem.normalisation
        last = _sums(parts[None]) if self.whole else parts
        y = output.value(last)
        found = evaluate(contrast or self.problem.contrast, self.views, y)
        return found.value, self.gap(y), self.by_children(output.back(last, found.slope))[0]

    def gradient(self, found: Pass, by_last: FloatArray) -> Weights:
        """Derivatives by the weights of what has the derivative `by_last` by the last layer.

        Parameters
        ----------
        by_last : ndarray, shape (..., parts, views, outputs)
            Several at once where there are more dims, which then precede those of the weights.
        """
        shape, weights = found.weights.shape, found.weights
        by_parts = self.by_children(by_last)
        W: list[Array] = []
        b: list[Array] = []
        for level in reversed(shape.levels):
            f = found.after[level - 1].reshape(
                shape.latents[level], shape.children[level - 1], -1, shape.width(level - 1)
            )
            W.append(np.moveaxis(np.swapaxes(by_parts, -1, -2) @ f, -3, -2))
            if weights.b:
                b.append(by_parts[..., 0, :, :].sum(axis=-2))
            if level > 1:
                by_after = by_parts @ weights.W[level - 1].transpose(0, 2, 1, 3)
                by_after = by_after.reshape(*by_after.shape[:-4], -1, *by_after.shape[-2:])
                by_parts = _marginal(found.gates[level - 2] * by_after, shape.children[level - 2])
        return Weights(shape, W[::-1], b[::-1])

    def loss_and_gradient(
        self, weights: Weights, gates: Gates | None = None, contrast: Contrast | None = None
    ) -> tuple[float, Weights]:
        """Population loss, by default that of the problem, and its gradient by all weights, through all branches."""
        found = self.forward(weights, gates)
        evaluation = self.evaluate(found, contrast)
        return evaluation.value, self.gradient(found, self.by_last(found, evaluation.slope))

    def moments(self, found: Pass) -> Moments:
        """Moments of pre-activations and activations given the latent that they belong to."""
        shape = found.weights.shape
        gaps = []
        spreads = []
        variances = []
        selectivities = []
        for level in reversed(shape.levels):
            A, p = found.parts[level - 1], self.chances[level]
            Q = self.given_parent[level - 1].reshape(*A.shape[:2], p.shape[1], -1)
            means = Q @ A
            mean = means.sum(axis=1)
            within = (Q @ (A * A) - means * means).sum(axis=1)
            gap, variance = gap_of(mean, p)
            gaps.append(gap)
            variances.append(variance)
            spreads.append((p[:, None] @ within)[:, 0] + variance * gap * gap)
            if level < shape.depth:
                gap, _ = gap_of(self.given_latent[level] @ found.after[level], p)
            selectivities.append(0.5 * gap if p.shape[1] == 2 else gap)
        gap, spread, selectivity = (rows_of(found, shape.nodes) for found in (gaps, spreads, selectivities))
        return Moments(gap, spread, np.concatenate(variances), selectivity)


def gap_of(mean: Array, p: FloatArray) -> tuple[Array, FloatArray]:
    """How far means given a latent are from each other, and the variance of these means by the square of that.

    Parameters
    ----------
    mean : ndarray, shape (latents, values, nodes)
    p : ndarray, shape (latents, values)
        Probabilities of the values.

    Returns
    -------
    gap : ndarray, shape (latents, nodes)
        The difference for two values, with its sign; the standard deviation for more.
    variance : ndarray, shape (latents, 1)
    """
    if p.shape[1] == 2:
        return mean[:, 1] - mean[:, 0], p.prod(axis=1, keepdims=True)
    off = mean - p[:, None] @ mean
    return np.sqrt((p[:, None] @ (off * off))[:, 0]), np.ones((len(p), 1))


def rows_of(levels: list[Array], nodes: int) -> Array:
    """Rows of all latents."""
    return np.concatenate([rows[:, np.arange(nodes) % rows.shape[1]] for rows in levels])


def _sums(parts: Array) -> Array:
    """Sums of what children add, for all of their configurations, shape (latents, configurations, nodes)."""
    u = parts[:, 0]
    for child in range(1, parts.shape[1]):
        u = (u[:, :, None, :] + parts[:, child, None, :, :]).reshape(len(u), -1, u.shape[-1])
    return u


def _marginal(table: Array, children: int) -> Array:
    """Sums of a table over the configurations of all children but one, shape (..., latents, children, C, nodes)."""
    size = round(table.shape[-2] ** (1.0 / children))
    kept = []
    for child in range(children):
        cut = (*table.shape[:-2], size**child, size, -1, table.shape[-1])
        kept.append(table.reshape(cut).sum(axis=(-4, -2)))
    return np.stack(kept, axis=-3)


def needs_the_root(problem: Problem) -> bool:
    """Whether a loss needs outputs for every configuration of all leaves."""
    return problem.network.output_normalisation or problem.loss.kind not in MOMENTS
