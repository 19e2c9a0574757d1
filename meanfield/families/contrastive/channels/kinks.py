"""Rules for averages over one sample of outputs with kinks: Gauss-Legendre panels between them.

Direction by direction the range of a normal variable is cut where a pre-activation that the directions before and this
one determine meets a kink. Averages over later directions are smooth then, but for layers about the kinks of what these
hardly change, which get panels of their own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.channels.one_sample import OneSample, Rule, covariance_factor, means_of
from meanfield.process import own_numba as numba
from meanfield.typing import FloatArray

CUTOFF = 8.25
"""Standard deviations at which Gaussians are cut where there are kinks: 1e-14 of the variance lies beyond."""

LAYERS = np.array([0.0, -2.0, 2.0, -6.0, 6.0])
"""Edges of layers about a kink, in units of what later directions change."""


class PanelRule(NamedTuple):
    """Rule on [-1, 1] that is laid on panels between kinks.

    Parameters
    ----------
    nodes, weights : ndarray, shape (n,)
    kinks : ndarray
        Pre-activations at which the activation has a kink.
    """

    nodes: FloatArray
    weights: FloatArray
    kinks: FloatArray

    def at(self, law: OneSample, q: FloatArray, M: FloatArray) -> Rule:
        """Rule for the normal variables at these overlaps."""
        targets = law.views * q.shape[1]
        parts = []
        for a in range(law.probability.size):
            factor, mean = covariance_factor(law, a, q, M)[:targets], means_of(law, a, q)[:targets]
            parts.append(_nodes_between_kinks(self.nodes, self.weights, self.kinks, factor, mean))
        nodes, weights = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        return Rule(nodes, weights, np.cumsum([0, *(part[1].size for part in parts)]))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _nodes_between_kinks(points, shares, kinks, factor, mean):  # type: ignore[no-untyped-def]
    """Nodes, shape (directions, n), and weights for functions of Theta = mean + factor xi with kinks in Theta."""
    targets, directions = factor.shape
    nodes, weights = np.zeros((directions, 1)), np.ones(1)
    cuts = np.empty(2 + kinks.size * targets * LAYERS.size)
    for j in range(directions):
        total = 0
        for n in range(weights.size):
            total += _add_panels(points, shares, kinks, factor, mean, nodes, n, j, cuts, nodes, weights, np.int64(-1))
        wider, heavier = np.zeros((directions, total)), np.empty(total)
        count = np.int64(0)
        for n in range(weights.size):
            heavier[count] = weights[n]
            count += _add_panels(points, shares, kinks, factor, mean, nodes, n, j, cuts, wider, heavier, count)
        nodes, weights = wider, heavier
    total_weight = 0.0
    for n in range(weights.size):
        total_weight += weights[n]
    for n in range(weights.size):
        weights[n] /= total_weight
    return nodes, weights


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_panels(points, shares, kinks, factor, mean, old, n, j, cuts, nodes, weights, start):  # type: ignore[no-untyped-def]
    """Number of nodes of direction j behind node n of the directions before; they are written from `start` on.

    With a negative `start` they are counted only. Else weights[start] holds the weight of node n.
    """
    ends = _sorted_cuts(kinks, factor, mean, old[:, n], j, cuts)
    count, before = 0, weights[max(start, 0)]
    for i in range(ends - 1):
        pieces = max(1, math.ceil((cuts[i + 1] - cuts[i]) / 4.125))  # largest width of a panel
        half = 0.5 * (cuts[i + 1] - cuts[i]) / pieces
        for piece in range(pieces if start >= 0 else 0):
            for k in range(points.size):
                x = cuts[i] + (2 * piece + 1 + points[k]) * half
                at = start + count + piece * points.size + k
                for column in range(j):
                    nodes[column, at] = old[column, n]
                nodes[j, at] = x
                weights[at] = before * half * shares[k] * math.exp(-0.5 * x * x)
        count += pieces * points.size
    return count


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sorted_cuts(kinks, factor, mean, xi, j, cuts):  # type: ignore[no-untyped-def]
    """Ends of the range of direction j and places where it is cut, given the directions before; their number."""
    cuts[0], cuts[1] = -CUTOFF, CUTOFF
    count = 2
    for i in range(factor.shape[0]):
        loading, centre = factor[i, j], mean[i]
        later = 0.0
        for column in range(j + 1, factor.shape[1]):
            later += factor[i, column] ** 2
        if loading == 0.0 or later > loading * loading:
            continue
        width = math.sqrt(later) / abs(loading)
        for column in range(j):
            centre += factor[i, column] * xi[column]
        for kink in kinks:
            for layer in range(1 if width == 0.0 else LAYERS.size):
                x = (kink - centre) / loading + LAYERS[layer] * width
                if -CUTOFF < x < CUTOFF:
                    place = count
                    while cuts[place - 1] > x:
                        cuts[place] = cuts[place - 1]
                        place -= 1
                    cuts[place] = x
                    count += 1
    return count
