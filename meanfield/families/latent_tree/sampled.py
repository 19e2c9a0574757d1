"""Averages over views that are drawn, where tables of all configurations do not fit, and what they are off by.

Views of one root value are independent, and blocks of them are left out in turn: the change says what averages are off
by, on average, because they are of finitely many views (which is taken off), and by chance (a jackknife).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from meanfield.families.latent_tree import network
from meanfield.families.latent_tree.problem import Problem
from meanfield.families.latent_tree.samples import Sampler, Values
from meanfield.families.latent_tree.tables import Gates, Moments, Pass, Tables, gap_of, rows_of
from meanfield.families.latent_tree.weights import Weights
from meanfield.networks.population import Views
from meanfield.process.progress import counted
from meanfield.typing import FloatArray

BLOCKS = 8
"""Number of blocks of views."""

ERRORS = 3.5
"""Standard errors of a stated error: with 7 degrees of freedom one average of a hundred is further off."""


@dataclass(frozen=True)
class SampledTables(Tables):
    """Averages of one problem over views; see `Tables`.

    Parameters
    ----------
    drawn : tuple of ndarray, shape (views, latents)
        Values of the latents by level, the root first, as many views for each of its values.
    """

    drawn: tuple[Values, ...]

    @property
    def whole(self) -> bool:
        """See `Tables.whole`."""
        return True

    @cached_property
    def views(self) -> Views:
        """See `Tables.views`."""
        p = np.array(self.problem.tree.root)
        of_root = self.drawn[0][:, 0] == np.arange(len(p))[:, None]
        return Views(p, (of_root / of_root.sum(axis=1, keepdims=True))[None])

    @cached_property
    def inputs(self) -> FloatArray:
        """See `Tables.inputs`."""
        return Sampler(self.problem).leaves(list(self.drawn))

    def forward(self, weights: Weights, gates: Gates | None = None) -> Pass:
        """See `Tables.forward`; gates are those of the weights."""
        found = network.forward(weights, self.inputs)
        return Pass(weights, [], found.before, [], found.inputs)

    def gradient(self, found: Pass, by_last: FloatArray) -> Weights:
        """See `Tables.gradient`."""
        return network.gradient(found.weights, network.Activity(found.after, found.before), by_last[..., 0, :, :])

    def moments(self, found: Pass) -> Moments:
        """See `Tables.moments`."""
        share = self.views.p @ self.views.whole
        kinds = []
        for level, u in zip(reversed(found.weights.shape.levels), reversed(found.before), strict=True):
            p, values = self.chances[level], self.drawn[found.weights.shape.depth - level].T
            given = (values[:, None] == np.arange(p.shape[1])[:, None]) * share
            given = given / np.maximum(given.sum(axis=2, keepdims=True), 1e-300)  # of values that no view has
            mean = given @ u
            gap, variance = gap_of(mean, p)
            spread = (p[:, None] @ (given @ (u * u) - mean * mean))[:, 0] + variance * gap * gap
            active = gap if level == found.weights.shape.depth else gap_of(given @ np.maximum(u, 0.0), p)[0]
            kinds.append((gap, spread, variance, 0.5 * active if p.shape[1] == 2 else active))
        gaps, spreads, variances, selectivities = zip(*kinds, strict=True)
        nodes = found.weights.shape.nodes
        gap, spread, selectivity = (rows_of(list(rows), nodes) for rows in (gaps, spreads, selectivities))
        return Moments(gap, spread, np.concatenate(variances), selectivity)


def draw_views(problem: Problem) -> tuple[Values, ...]:
    """Values of latents by level, the root first, of `operator.samples` views of each value of the root."""
    settings, values = problem.operator, len(problem.tree.root)
    roots = np.repeat(np.arange(values), settings.samples).astype(bool if values == 2 else np.uint8)
    return tuple(Sampler(problem).below(np.random.default_rng(settings.seed), roots))


def sampled(problem: Problem, measure: Callable[[Tables], dict[str, Any]]) -> dict[str, Any]:
    """What is measured on views, less what it is off by on average, and with the suffix `_error` its errors.

    Growth rates of gaps that are not known to differ from 0 are left out.
    """
    drawn = draw_views(problem)
    block = np.tile(np.arange(problem.operator.samples) % BLOCKS, len(problem.tree.root))
    kept = [block >= 0, *(block != out for out in range(BLOCKS))]
    first, *others = (
        measure(SampledTables(problem, tuple(level[some] for level in drawn)))
        for some in counted(kept, "operators of samples", "sample")
    )
    found: dict[str, Any] = {}
    for name, value in first.items():
        without = np.stack([other[name] for other in others])
        found[name] = BLOCKS * value - (BLOCKS - 1) * without.mean(axis=0)
        found[f"{name}_error"] = ERRORS * np.sqrt(BLOCKS - 1) * without.std(axis=0)
    # The rate of a gap that may be 0 may be infinite.
    found["growth_rate"][np.abs(found["correlation"]) < found["correlation_error"]] = np.nan
    found["correlation"] = np.clip(found["correlation"], -1.0, 1.0)
    for name in ("gradient_norm", "operator_norm"):
        found[name] = np.maximum(found[name], 0.0)
    return found
