"""Mixtures over a parameter u of laws of w that are known at quadrature nodes in u only.

Averages over w of every smooth function are right with nodes that are further apart than the laws are wide. The density
of the mixture is not: the sum over nodes has a peak at each of them. Where that matters the laws between the nodes are
interpolated by splines in u, in one of two ways:

- by normal scores z at fixed w, which is exact for Gaussian laws whose mean moves steadily with u, and good where peaks
  stay where they are, as at w = 0 under an l1 prior, or where wells trade probability;
- by curves (w - E[w|u], z), which is exact for laws of any shape that moves steadily, and good where narrow peaks move
  along a bend.

The distance of two interpolations, or of one of them from itself with every other node, tells the error, and the best
one is taken. Where the sum over nodes agrees with interpolation it stands, because it converges exponentially.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from meanfield.numerics.fine_rules import COARSEST, FINEST, ContinuousLaw, Rule
from meanfield.numerics.mixed_laws import Block, Mixture, distance
from meanfield.process import own_numba as numba
from meanfield.typing import BoolArray, FloatArray

FINE_STEP = 1.0
"""Step of normal scores between nodes of a rule for interpolated laws, which leaves an L1 error of 8e-7."""

GOOD_ENOUGH = 3e-5
"""Error of a mixture with which no other interpolation is tried, where it is all that is shown."""

INTERPOLATION_SAFETY = 2.0
"""Safety factor on the distance of two interpolations, both of which may be wrong, but not alike."""

SMOOTH_DEGREE, ROUGH_DEGREE = 5, 3
"""Degree of splines in u, and that of splines which must bear with laws that change much from node to node."""

LARGEST_CURVE_SCORE = 6.0
"""Largest score of points of a curve, and of those for which its probability is computed: beyond lies 1e-9."""

LAWS_AT_ONCE = 128
"""Number of laws that are interpolated at a time: their scores stay in the fast memory of a processor."""


def resolved(
    law: ContinuousLaw,
    u: FloatArray,
    weight: FloatArray,
    edges: FloatArray,
    F: FloatArray,
    z: FloatArray,
    spacing: float | None = None,
    good_enough: float = GOOD_ENOUGH,
    mirrored: bool = False,
) -> Mixture:
    """Mixture of laws that are known at the nodes of a quadrature rule, on a rule that resolves them.

    Parameters
    ----------
    law : ContinuousLaw
        Law of the parameter; it can be hashed.
    u, weight : ndarray, shape (nodes,)
        Increasing nodes, and weights that add up to one.
    edges : ndarray, shape (cells + 1,)
    F, z : ndarray, shape (nodes, cells + 1)
        Distribution functions at the edges, and their normal scores by
        `meanfield.numerics.normal_scores.normal_scores`.
    spacing : float, optional
        Largest distance of nodes; without it the nodes stay those of the quadrature where their laws add up.
    good_enough : float
        Error with which no other interpolation is tried.
    mirrored : bool
        Whether (w, u) -> (-w, -u) takes the laws to each other: half of the rule then makes the average, and a mixture
        that is not the sum over nodes has no other nodes than that.
    """
    nodes = Mixture.of(u, weight, F)
    step = largest_step(weight, z)
    if len(u) < 2:
        return nodes
    if spacing is None and step <= 0.6:  # their sum is then exact to exp(-2 pi^2/0.6^2)
        return replace(nodes, error=_error_of_rule(law, u.tobytes(), weight.tobytes(), _steepness(u, weight, z)))
    rule = Rule.between(law, u, np.minimum(spacing or COARSEST, _resolving_spacings(u, weight, z)), mirrored)
    best = replace(nodes, error=np.inf)
    # Up to a step of 1.4 the sum, with an error of some 1e-4, is better than interpolation where they disagree.
    for mixture in _candidates(nodes, edges, z, rule, spacing is None and step <= 1.4):
        best = min(best, mixture, key=lambda each: each.error)
        if best.error <= good_enough:
            break
    return replace(best, error=best.error + 5e-6)  # of rules for interpolated laws, and of straight tails


def _candidates(nodes: Mixture, edges: FloatArray, z: FloatArray, rule: Rule, sum_is_good: bool) -> Iterator[Mixture]:
    """Mixtures with their errors, the cheapest first."""
    u, half = nodes.u, slice(None, None, 2)
    smooth = _by_scores(u, z, rule, SMOOTH_DEGREE)
    yield replace(nodes if sum_is_good else smooth, error=INTERPOLATION_SAFETY * distance(nodes, smooth))
    yield replace(smooth, error=distance(smooth, _by_scores(u[half], z[half], rule, ROUGH_DEGREE)))
    if sum_is_good:
        return
    masses = np.diff(ndtr(z))
    for count in (201, 1201):  # laws with jumps take the second
        curves = _curves(z, masses, edges, count)
        every, error = _by_curves(u, curves, edges, rule), _error_of_points(u, curves, masses, edges, rule)
        few = _Curves(curves.points, curves.v[half], curves.mean[half])
        apart = distance(every, _by_curves(u[half], few, edges, rule))
        yield replace(every, error=error + apart)
        if apart > error:
            return  # more points would not help


def largest_step(weight: FloatArray, z: FloatArray) -> float:
    """Largest step of visible normal scores from a node to the next."""
    return float(_largest_steps(weight, z).max(initial=0.0))


def resolving_spacing(u: FloatArray, weight: FloatArray, z: FloatArray) -> float:
    """Distance of nodes that resolves laws with these normal scores everywhere."""
    return float(_resolving_spacings(u, weight, z).min(initial=COARSEST))


def _resolving_spacings(u: FloatArray, weight: FloatArray, z: FloatArray) -> FloatArray:
    """Resolving spacing of each gap between nodes, of whose visible scores that of the steepest edge counts."""
    slopes = _largest_steps(weight, z) / np.diff(u)
    return np.clip(FINE_STEP / np.maximum(slopes, FINE_STEP), FINEST, COARSEST)


def _largest_steps(weight: FloatArray, z: FloatArray) -> FloatArray:
    """Largest steps of visible normal scores from each node to the next, shape (nodes - 1,)."""
    below, above = z[:-1], z[1:]
    visible = (np.minimum(np.abs(below), np.abs(above)) < 3.0) | (below * above < 0)  # 0.1 % lies beyond
    visible &= (np.minimum(weight[:-1], weight[1:]) > 1e-7)[:, None]  # steps between lighter nodes do not
    return np.asarray(np.max(np.abs(above - below), axis=1, where=visible, initial=0.0))


def _steepness(u: FloatArray, weight: FloatArray, z: FloatArray) -> float:
    """Largest slope of visible normal scores in u; the next power of sqrt(2), so that there are few."""
    slope = float((_largest_steps(weight, z) / np.diff(u)).max(initial=0.0))
    # Errors of rules are computed from this slope on.
    return float(2.0 ** (0.5 * np.ceil(2.0 * np.log2(max(slope, 0.1)))))


@lru_cache(maxsize=16)
def _error_of_rule(law: ContinuousLaw, nodes: bytes, weights: bytes, slope: float) -> float:
    """L1 error that a quadrature rule leaves in a mixture of Gaussian laws with scores of some slope in u.

    It comes of cutting the law of u, say. The mixture has a variance near 1.
    """
    u, weight, w = np.frombuffer(nodes), np.frombuffer(weights), np.linspace(-20.0, 20.0, 401)
    x, fine = Rule.between(law, u, np.full(len(u) - 1, FINE_STEP / slope)).nodes
    deviation = 1.0 / np.sqrt(1.0 + slope * slope)
    sums = [each @ ndtr(w / deviation - slope * at[:, None]) for each, at in ((weight, u), (fine, x))]
    return INTERPOLATION_SAFETY * float(np.abs(np.diff(sums[0] - sums[1])).sum())


def _by_scores(u: FloatArray, z: FloatArray, rule: Rule, degree: int) -> Mixture:
    """Mixture by interpolation of normal scores at fixed w.

    Where both neighbouring nodes have no probability there is none between them, whatever a spline through their far
    tails may say.
    """
    matrix, x = rule.interpolation(u, degree), rule.nodes[0]
    gap = np.where((x > u[0]) & (x < u[-1]), np.searchsorted(u, x) - 1, -1)  # the last one stands for none
    none = np.zeros((1, z.shape[1]), dtype=bool)
    below = np.concatenate([np.maximum(z[:-1], z[1:]) < -LARGEST_CURVE_SCORE, none])
    above = np.concatenate([np.minimum(z[:-1], z[1:]) > LARGEST_CURVE_SCORE, none])

    def scores(rows: slice) -> tuple[slice, FloatArray]:
        met = np.unique(gap[rows])
        near = _columns(below[met].all(axis=0), above[met].all(axis=0))
        nodes = rule.neighbours(u, rows)
        between = matrix[rows, nodes] @ z[nodes, near]
        between[below[gap[rows], near]] = -LARGEST_CURVE_SCORE
        between[above[gap[rows], near]] = LARGEST_CURVE_SCORE
        return near, between

    return _from_scores(rule, z.shape[1], scores)


def _columns(below: BoolArray, above: BoolArray) -> slice:
    """Columns between those to the left that lie below and those to the right that lie above, at least one."""
    first = int(np.argmin(below))
    last = len(above) - int(np.argmin(above[::-1]))
    return slice(min(first, last - 1), max(last, first + 1))


class _Curves(NamedTuple):
    """Curves (v, z) of laws, v = w - E[w|u], by values of v at the same sums v + z for all of them.

    Along the sum even a jump of w with z is a straight line.

    Parameters
    ----------
    points : ndarray, shape (points,)
        The sums.
    v : ndarray, shape (nodes, points)
    mean : ndarray, shape (nodes,)
        E[w|u].
    """

    points: FloatArray
    v: FloatArray
    mean: FloatArray


def _curves(z: FloatArray, masses: FloatArray, edges: FloatArray, count: int) -> _Curves:
    """Curves with some number of points of laws with these scores at the edges, and masses between them."""
    mean = masses @ (0.5 * (edges[1:] + edges[:-1]))
    v = edges - mean[:, None]
    along = z + v
    ends = [np.interp((-LARGEST_CURVE_SCORE, LARGEST_CURVE_SCORE), *pair) for pair in zip(z, along, strict=True)]
    points = np.linspace(np.min(ends), np.max(ends), count)
    return _Curves(points, np.array([np.interp(points, *pair) for pair in zip(along, v, strict=True)]), mean)


def _error_of_points(u: FloatArray, curves: _Curves, masses: FloatArray, edges: FloatArray, rule: Rule) -> float:
    """Error of the mixture of the laws at the nodes by the finite number of points of curves."""
    again = np.diff(ndtr(_scores_on(curves.v, curves.points, edges - curves.mean[:, None])))
    change = rule.shares(u) @ (again - masses)
    return float(np.abs(0.5 * (change + change[::-1]) if rule.halved else change).sum())


def _by_curves(u: FloatArray, curves: _Curves, edges: FloatArray, rule: Rule) -> Mixture:
    """Mixture by interpolation of curves at fixed sums of both coordinates."""
    points, v, mean = curves
    matrix = rule.interpolation(u, ROUGH_DEGREE)

    def scores(rows: slice) -> tuple[slice, FloatArray]:
        nodes = rule.neighbours(u, rows)
        each = matrix[rows, nodes]
        inner, means = _increasing(each @ v[nodes]), each @ mean[nodes]
        reached = points - inner
        first = np.maximum(np.argmax(reached > -LARGEST_CURVE_SCORE, axis=1) - 1, 0)
        beyond = reached >= LARGEST_CURVE_SCORE
        last = np.where(beyond.any(axis=1), np.argmax(beyond, axis=1), len(points) - 1)
        here = np.arange(len(each))
        ends = float(np.min(means + inner[here, first])), float(np.max(means + inner[here, last]))
        near = _columns(edges < ends[0], edges > ends[1])
        return near, _scores_on(inner, points, edges[near] - means[:, None])

    return _from_scores(rule, len(edges), scores)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _scores_on(curves, points, v):  # type: ignore[no-untyped-def]
    """Normal scores at increasing values of v on curves that are given by values of v at sums of v and the score.

    Infinite where v is not on the curve. Interpolation row by row in NumPy took most of the time of hard mixtures.
    """
    result, last = np.empty_like(v), points.size - 1
    for row in range(v.shape[0]):
        curve, i = curves[row], 0
        of, slope = -1, 0.0
        for j in range(v.shape[1]):
            x = v[row, j]
            while i < last and curve[i + 1] <= x:
                i += 1
            if i == last:
                along = points[last] if x == curve[last] else np.inf
            elif x < curve[i]:
                along = -np.inf
            else:
                if i != of:  # divisions take longer than all the rest
                    of, slope = i, (points[i + 1] - points[i]) / (curve[i + 1] - curve[i])
                along = points[i] + (x - curve[i]) * slope
            result[row, j] = along - x
    return result


def _increasing(rows: FloatArray) -> FloatArray:
    """Rows without steps down, which splines may make between rows without."""
    falling = np.any(rows[:, 1:] < rows[:, :-1], axis=1)
    rows[falling] = np.maximum.accumulate(rows[falling], axis=1)
    return rows


def _from_scores(rule: Rule, edges: int, scores: Callable[[slice], tuple[slice, FloatArray]]) -> Mixture:
    """Mixture of laws at the nodes of a rule.

    Normal scores are asked for some of them at a time, and at the edges that these laws do not have all on one side:
    laws that ask for the finest rules are narrow.
    """
    u, weight = rule.nodes
    average, blocks = np.zeros(edges), []
    for first in range(0, len(u), LAWS_AT_ONCE):
        rows = slice(first, first + LAWS_AT_ONCE)
        columns, between = scores(rows)
        z = _increasing(np.clip(between, -LARGEST_CURVE_SCORE, LARGEST_CURVE_SCORE))
        near = np.abs(z) < LARGEST_CURVE_SCORE
        F = np.array(z > 0.0, dtype=float)
        F[near] = ndtr(z[near])
        # What lies beyond the cells is put into the outermost ones.
        F[:, 0] = 0.0 if columns.start == 0 else F[:, 0]
        F[:, -1] = 1.0 if columns.stop == edges else F[:, -1]
        average[columns] += weight[rows] @ F
        average[columns.stop :] += weight[rows].sum()
        blocks.append(Block(columns.start, F))
    return Mixture(u, weight, 0.5 * (average + 1.0 - average[::-1]) if rule.halved else average, blocks)
