"""Extrapolation of levels in their points, and estimates of what more points and more nodes in u would change.

A rule in u has its first levels. How few nodes finer levels need follows from what more nodes change on these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.mckean_vlasov.density.lagrangian.level import Level
from meanfield.mckean_vlasov.density.lagrangian.points import Frames
from meanfield.numerics.extrapolation import SMOOTH_POWERS
from meanfield.typing import FloatArray

LEAST_LEVELS = 3
"""Number of levels from which an error can be estimated."""

MOST_LEVELS = 4
"""Number of levels that are extrapolated at most."""


def weights_of(points: Sequence[int]) -> FloatArray:
    """Weights of levels that eliminate the leading even powers of their spacing, one over the number of intervals."""
    spacing = 1.0 / (np.array(points, dtype=float) - 1.0)
    rows = np.array([(spacing / spacing[-1]) ** p for p in (0, *SMOOTH_POWERS[: len(points) - 1])])
    return np.linalg.solve(rows, np.eye(len(points))[0])


def extrapolated(levels: Sequence[Level]) -> FloatArray:
    """Moments by extrapolation over the last levels, shape (outputs, d1 + 3)."""
    used = levels[-MOST_LEVELS:]
    weights = weights_of([level.points for level in used])
    return np.asarray(sum(weight * level.moments for weight, level in zip(weights, used, strict=True)))


def estimated(levels: Sequence[Level], tolerance: float) -> FloatArray:
    """Estimated errors of q, r and a free norm by the number of points, shape (outputs, judged).

    Twice the change by one power less and a share of the change by the last level, the largest of all output times
    because changes pass through zero where errors need not. Where differences of levels do not fall like the square of
    the spacing, points do not resolve the solution, and the largest last difference is added.
    """
    used, judged = levels[-MOST_LEVELS:], levels[-1].limit.judged
    best = extrapolated(used)
    change = np.abs(best - extrapolated(used[1:]))[:, :judged]
    # With the factor below, the last level counts in full: of three levels only the assumed powers tell what is left,
    # and coarse ones need not follow them yet.
    change = change + 0.5 * np.abs(best - extrapolated(used[:-1]))[:, :judged]
    # A safety factor: errors of points that hop across a corner look random from level to level, and single changes
    # miss them by chance.
    change = np.broadcast_to(2.0 * change.max(axis=0), change.shape).copy()
    first, second, third = used[-3:]
    last, before = third.moments - second.moments, second.moments - first.moments
    squares = [1.0 / (level.points - 1.0) ** 2 for level in (first, second, third)]
    expected = before * (squares[2] - squares[1]) / (squares[1] - squares[0])
    for k in range(change.shape[1]):
        size = np.abs(last[:, k]).max()
        # A last difference that is off second order by more than 30 % is not extrapolated.
        if np.abs(last - expected)[:, k].max() > 0.3 * size + 0.1 * tolerance:
            change[:, k] += size
    return np.asarray(change)


NODES_SAFETY = 2.0
"""Factor on the change by more nodes: 1/(1 - MORE_NODES^-p) with p = 2.3, where kinks in u keep the order p low."""

LARGEST_CORRECTION = 30.0
"""Largest change of q, r and E[w^2] by more nodes that is added to finer levels of fewer ones, in units of the
tolerance: what it changes in turn is of second order."""

MIXED_SHARE = 0.2
"""Largest difference of that change between the first level and the first two, as a share of the tolerance."""


@dataclass(eq=False)
class Rule:
    """A rule in u with its first level, and the second one where that was needed.

    Parameters
    ----------
    scale : float
        Factor on the default number of nodes.
    frames : Frames
    trial : Level or None
        Trial run that led to the frames.
    first : Level
    second : Level, optional
    on_panels : bool
        Whether nodes lie on panels; with two features these are no products of nodes in each.
    """

    scale: float
    frames: Frames
    trial: Level | None
    first: Level
    second: Level | None = None
    on_panels: bool = False

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.frames.nodes.u_weight)

    def moments(self, levels: int) -> FloatArray:
        """q, r and E[w^2] of the first level, or by extrapolation of two; shape (outputs, d1 + 2)."""
        return extrapolated([each for each in (self.first, self.second)[:levels] if each is not None])[:, :-1]


@dataclass(frozen=True)
class Correction:
    """What more nodes change in levels of a rule.

    Parameters
    ----------
    moments : ndarray, shape (outputs, d1 + 2)
        Change of q, r and E[w^2].
    error : ndarray, shape (judged,)
        Error of q, r and a free norm by the nodes that is left, the largest of all output times: changes pass through
        zero.
    """

    moments: FloatArray
    error: FloatArray


def change(rule: Rule, better: Rule, levels: int) -> FloatArray:
    """Largest change of q, r and a free norm by more nodes, shape (judged,)."""
    return np.asarray(np.abs(better.moments(levels) - rule.moments(levels))[:, : rule.first.limit.judged].max(axis=0))


def mixed_change(rules: Sequence[Rule]) -> FloatArray:
    """Largest difference of the last change by more nodes between the first level and the first two, shape (d1 + 2,).

    It is that of q, r and E[w^2], which more nodes hardly change: where they seem to, points do.

    Where it is not small, errors of points differ from node to node, and the first level does not tell what more nodes
    change. It is zero where a second level is missing.
    """
    rule, better = rules[max(len(rules) - 2, 0)], rules[-1]
    if rule.second is None or better.second is None:
        return np.zeros(rule.moments(1).shape[1])
    first, both = (better.moments(levels) - rule.moments(levels) for levels in (1, 2))
    return np.asarray(np.abs(both - first).max(axis=0))


def without_correction(rule: Rule, last_change: FloatArray) -> Correction:
    """No correction of a rule of which more nodes change little."""
    return Correction(np.zeros_like(rule.moments(1)), NODES_SAFETY * last_change)


def fewest_nodes(rules: Sequence[Rule], last_change: FloatArray, tolerance: float) -> tuple[Rule, Correction] | None:
    """The rule of fewest nodes to which the last one is a small correction, and this correction; None if there is none.

    The correction is that of two levels as far as there are two, and of the first one beyond.
    """
    last, paired = rules[-1], [rule for rule in rules if rule.second is not None]
    for rule in (each for each in paired if each is not last):
        found = corrected(rule, paired[-1], last, last_change)
        mixed = mixed_change([rule, paired[-1]])[: last_change.size]
        small = np.abs(found.moments).max() <= LARGEST_CORRECTION * tolerance
        if small and mixed.max() <= MIXED_SHARE * tolerance:
            return rule, found
    return None


def corrected(rule: Rule, better: Rule, last: Rule, last_change: FloatArray) -> Correction:
    """Correction of a rule to a better one by two levels, and from there to the last one by the first level."""
    correction = better.moments(2) - rule.moments(2) + last.moments(1) - better.moments(1)
    return Correction(correction, last_change + mixed_change([rule, better])[: last_change.size])
