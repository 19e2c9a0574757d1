"""Exact averages for nodes that see objects on a ring: four patterns, and ReLU nodes as outputs."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.settings import FIELD
from meanfield.families.latent_tree.tables import Gates, Moments, Pass, Tables
from meanfield.families.latent_tree.weights import Array, Weights
from meanfield.networks.contrast import Contrast
from meanfield.networks.population import Evaluation, Views, evaluate
from meanfield.typing import FloatArray

PATTERNS = np.indices((2,) * FIELD).reshape(FIELD, -1).T.astype(float)
"""Pixels of the patterns 00, 01, 10, 11."""


class RingTables(Tables):
    """Exact averages of a problem on a ring; see `Tables`. Configurations are patterns of two pixels."""

    @property
    def whole(self) -> bool:
        """See `Tables.whole`."""
        return True

    @cached_property
    def views(self) -> Views:
        """See `Tables.views`; both objects are equally frequent."""
        assert self.problem.data is not None
        return Views(np.array([0.5, 0.5]), self.problem.data.given_object[None])

    @property
    def inputs(self) -> FloatArray:
        """See `Tables.inputs`."""
        return PATTERNS

    @cached_property
    def chances(self) -> list[FloatArray]:
        """See `Tables.chances`, of the object alone."""
        return [self.views.p[None]]

    def forward(self, weights: Weights, gates: Gates | None = None) -> Pass:
        """See `Tables.forward`."""
        u = PATTERNS @ weights.W[0][0, :, :, 0].T
        if weights.b:
            u = u + weights.b[0][0]
        before = u[None]
        active = [(before.real > 0.0).astype(float)] if gates is None else gates
        return Pass(weights, [], [before], active, [active[0] * before])

    def evaluate(self, found: Pass, contrast: Contrast | None = None) -> Evaluation:
        """See `Tables.evaluate`."""
        return evaluate(contrast or self.problem.contrast, self.views, self.problem.normalisation.value(found.after[0]))

    def by_last(self, found: Pass, slope: FloatArray) -> FloatArray:
        """See `Tables.by_last`."""
        return self.problem.normalisation.back(found.after[0], slope) * found.gates[0]

    def gradient(self, found: Pass, by_last: FloatArray) -> Weights:
        """See `Tables.gradient`."""
        by = by_last[..., 0, :, :]
        W: Array = np.swapaxes(by, -1, -2) @ PATTERNS
        b = [by.sum(axis=-2)[..., None, :]] if found.weights.b else []
        return Weights(found.weights.shape, [W[..., None, :, :, None]], b)

    def moments(self, found: Pass) -> Moments:
        """See `Tables.moments`: the latent is the object, its values 0 and 1 the first and the second."""
        P, u = self.views.whole, found.before[0][0]
        mean, square = P @ u, P @ (u * u)
        gap = mean[1] - mean[0]
        spread = square.mean(axis=0) - mean.mean(axis=0) ** 2
        active = P @ found.after[0][0]
        rows = (part[None] for part in (gap, spread, 0.5 * (active[1] - active[0])))
        gap, spread, selectivity = rows
        return Moments(gap, spread, self.chances[0].prod(axis=1, keepdims=True), selectivity)


def tables_of(problem: Problem) -> Tables:
    """Exact averages of a problem."""
    return Tables(problem) if problem.data is None else RingTables(problem)
