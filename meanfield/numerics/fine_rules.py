"""Rules for a law of u, as fine from place to place as laws of w between the nodes of a coarse rule ask for.

A jump between two wells, or the bend of a narrow law, asks for nodes a thousandth apart, but in one or two gaps between
coarse nodes. Panels are halved there alone.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.interpolate import make_interp_spline

from meanfield.numerics.quadrature import panel_rule, widest_panel
from meanfield.typing import FloatArray

FINEST, COARSEST = 1e-3, 0.25
"""Least and largest distance of nodes."""

PROBABILITY_LEFT_OUT = 1e-8
"""Probability at each end of a law that rules leave out."""

SPLINE_REACH = 40
"""Number of nodes up to which a spline depends on values: every node takes off a factor of 0.43 at degree five."""


@runtime_checkable
class ContinuousLaw(Protocol):
    """Law of a parameter with a density, which is smooth between neighbouring points of `support`."""

    support: ClassVar[tuple[float, ...]]

    def density(self, u: FloatArray) -> FloatArray:
        """Probability density at u."""

    def __hash__(self) -> int:
        """Equal laws share their rules."""


class Rule(NamedTuple):
    """Rule for a law with nodes at most some distance apart in each gap between some values of the parameter.

    Parameters
    ----------
    values, spacing : bytes
        Increasing values, and the largest distance of nodes in the gap to the next value, one less of them.
    halved : bool
        Whether nodes above zero are left out, and those below have the weights of both: the law is symmetric.
    """

    law: ContinuousLaw
    values: bytes
    spacing: bytes
    halved: bool

    @classmethod
    def between(cls, law: ContinuousLaw, values: FloatArray, spacing: FloatArray, halved: bool = False) -> Rule:
        """Rule for the distances of nodes that gaps between values ask for.

        They are rounded to powers of two, so that there are few rules, and kept within `FINEST` and `COARSEST`.
        """
        steps = np.clip(2.0 ** np.floor(np.log2(spacing)), FINEST, COARSEST)
        return cls(law, values.tobytes(), steps.tobytes(), halved)

    @property
    def nodes(self) -> tuple[FloatArray, FloatArray]:
        """Nodes and weights."""
        return _nodes(self)

    def shares(self, u: FloatArray) -> FloatArray:
        """Probability that a parameter is nearest to each of some values."""
        x, weight = self.nodes
        return np.asarray(np.bincount(np.searchsorted(0.5 * (u[1:] + u[:-1]), x), weight, len(u)), dtype=float)

    def neighbours(self, u: FloatArray, rows: slice) -> slice:
        """Nodes that splines at some nodes of the rule depend on, to rounding."""
        x = self.nodes[0][rows]
        first, last = np.searchsorted(u, (x[0], x[-1]))
        return slice(max(int(first) - SPLINE_REACH, 0), int(last) + SPLINE_REACH)

    def interpolation(self, u: FloatArray, degree: int) -> FloatArray:
        """Matrix that takes values at some nodes to those at the nodes of the rule."""
        return _splines(u.tobytes(), self, min(degree, len(u) - 1))


@lru_cache(maxsize=64)
def _nodes(rule: Rule) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of a rule, without those at both ends that count for nothing."""
    law, values, spacing = rule.law, np.frombuffer(rule.values), np.frombuffer(rule.spacing)
    cuts = [_halved(np.array(ends), values, spacing) for ends in pairwise(law.support)]
    x, weight = panel_rule(np.concatenate([cuts[0], *(each[1:] for each in cuts[1:])]), law.density)
    below = np.cumsum(weight)
    kept = (below > PROBABILITY_LEFT_OUT) & (x < 0.0 if rule.halved else below - weight < 1.0 - PROBABILITY_LEFT_OUT)
    return x[kept], weight[kept] / weight[kept].sum()


def _halved(cuts: FloatArray, values: FloatArray, spacing: FloatArray) -> FloatArray:
    """Ends of panels, halved until the nodes of each are as close as all gaps ask for that it meets."""
    while True:
        first = np.clip(np.searchsorted(values, cuts[:-1], side="right") - 1, 0, len(spacing) - 1)
        last = np.clip(np.searchsorted(values, cuts[1:]) - 1, 0, len(spacing) - 1)
        bounds = np.column_stack([first, last + 1]).ravel()
        needed = np.minimum.reduceat(np.append(spacing, COARSEST), bounds)[::2]
        wide = np.diff(cuts) > widest_panel(needed)
        if not wide.any():
            return cuts
        cuts = np.sort(np.concatenate([cuts, 0.5 * (cuts[1:] + cuts[:-1])[wide]]))


@lru_cache(maxsize=64)
def _splines(nodes: bytes, rule: Rule, degree: int) -> FloatArray:
    """Splines between nodes, and straight lines beyond them."""
    u, at = np.frombuffer(nodes), rule.nodes[0]
    if degree == 0:
        return np.ones((len(at), 1))
    spline = make_interp_spline(u, np.eye(len(u)), k=degree)
    within = np.clip(at, u[0], u[-1])
    return spline(within) + spline.derivative()(within) * (at - within)[:, None]
