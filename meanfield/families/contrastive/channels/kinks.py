"""Rules for averages over one sample of outputs with kinks: Gauss-Legendre panels between them.

Pre-activations are forms of the normal variables, and kinks their levels (`gaussian_moments.panels`).
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from meanfield.families.contrastive.channels.one_sample import OneSample, Rule, covariance_factor, means_of
from meanfield.numerics.gaussian_moments.half_lines import NO_HALF_LINES
from meanfield.numerics.gaussian_moments.panels import Panels, panel_nodes
from meanfield.typing import FloatArray

ENDS = np.array([-8.25, 8.25])
"""Standard deviations at which Gaussians are cut where there are kinks: 1e-14 of the variance lies beyond."""

LAYERS = np.array([0.0, -2.0, 2.0, -6.0, 6.0])
"""Edges of layers about a kink, in units of what later directions change."""

WIDEST = 4.125
"""Largest width of a panel."""


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
        none, bounded = np.empty(0), (NO_HALF_LINES, NO_HALF_LINES)
        panels = Panels(self.nodes, self.weights, WIDEST, ENDS, LAYERS, 1.0, none, none, *bounded, np.inf, sys.maxsize)
        levels = np.tile(self.kinks, (targets, 1))
        parts = []
        for a in range(law.probability.size):
            factor, mean = covariance_factor(law, a, q, M)[:targets], means_of(law, a, q)[:targets]
            parts.append(panel_nodes(panels, np.pad(factor, ((0, 0), (0, 1))), mean, levels))
        nodes, weights = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        return Rule(nodes, weights, np.cumsum([0, *(part[1].size for part in parts)]))
