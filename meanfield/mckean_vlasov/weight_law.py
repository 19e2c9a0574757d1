"""Law of weights given their feature coordinates as a start: known by averages over cells, of a density or of samples.

Between edges of cells the normal score of the distribution function is interpolated: that of a Gaussian law is a
straight line, also far out. Densities take the nodes in u of the law itself; weights are drawn between them, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from scipy.interpolate import CubicSpline, PchipInterpolator, PPoly, RegularGridInterpolator, make_interp_spline
from scipy.special import ndtr, ndtri

from meanfield.errors import InputError
from meanfield.ingredients.laws import CoordinateLaw
from meanfield.numerics.fine_rules import ContinuousLaw
from meanfield.numerics.quadrature import gaussian_trapezoid
from meanfield.typing import FloatArray

LAST_SCORE = 6.0
"""Score beyond which cells hold too little of a law to be known, 1e-9, and no weights are drawn."""

LEAST_SAMPLES, LEAST_SCORE = 3.0, 1.0
"""Number of samples beyond a weight with which a Gaussian goes on there, and the score from which one may."""

SAME_NODE = 1e-9
"""Distance of nodes in u that are one but for rounding."""


@dataclass(frozen=True, eq=False)
class WeightLaw:
    """Law of w given u at nodes in u.

    Parameters
    ----------
    u : ndarray, shape (nodes, d1)
    u_weight : ndarray, shape (nodes,)
    edges : ndarray, shape (cells + 1,)
    P : ndarray, shape (nodes, cells)
        Averages over the cells.
    errors : dict
        Estimated errors of q, r and P by the names of their variables, where they are known.
    kinks : tuple of float
        Weights at which the density has a corner, such as those where the prior's force jumps.
    """

    u: FloatArray
    u_weight: FloatArray
    edges: FloatArray
    P: FloatArray
    errors: dict[str, FloatArray]
    kinks: tuple[float, ...] = ()

    @property
    def moments(self) -> tuple[FloatArray, float]:
        """E[u w], shape (d1,), and E[w^2]."""
        return (self.u_weight * self._given_u(lambda w: w)) @ self.u, self.mean(np.square)

    def mean(self, function: Callable[[FloatArray], FloatArray]) -> float:
        """Average of a function of weights."""
        return float(self.u_weight @ self._given_u(function))

    def _given_u(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Averages of a function of weights at every node."""
        z, share = gaussian_trapezoid(801)
        return np.array([function(score.quantile(z)) @ share for score in self.scores])

    def distance(self, other: WeightLaw) -> float:
        """L1 distance from a law at the same nodes and cells, averaged over u."""
        return float(self.u_weight @ (np.abs(self.P - other.P) @ np.diff(self.edges)))

    @property
    def is_symmetric(self) -> bool:
        """Whether (w, u) -> (-w, -u) leaves the law as it is, but for rounding."""
        mirrored = np.allclose(self.edges, -self.edges[::-1], rtol=0.0, atol=SAME_NODE)
        same = mirrored and np.allclose(self.u, -self.u[::-1], rtol=0.0, atol=SAME_NODE)
        return bool(same and np.allclose(self.P, self.P[::-1, ::-1], rtol=0.0, atol=1e-13 * float(self.P.max())))

    @cached_property
    def scores(self) -> list[Score]:
        """Normal scores of the law at its nodes."""
        return [Score.of(self.edges, P, self.kinks) for P in self.P]

    def at(self, u: FloatArray) -> list[Score]:
        """Normal scores at some of the nodes, shape (nodes, d1)."""
        distance = np.abs(u[:, None, :] - self.u).max(axis=2)
        assert distance.min(axis=1).max() <= SAME_NODE, "a density has the nodes of its initial law"
        return [self.scores[k] for k in distance.argmin(axis=1)]

    def cell_average(self, edges: FloatArray, u: FloatArray) -> FloatArray:
        """Averages over other cells at some of the nodes, shape (nodes, cells)."""
        return np.array([_cell_averages(score, edges) for score in self.at(u)])

    @property
    def is_interpolated(self) -> bool:
        """Whether the law is known between its nodes."""
        return self.u.shape[1] == 1 and len(self.u) >= 4  # for the interpolation

    def sample(self, U: FloatArray, rng: Generator) -> FloatArray:
        """A weight for each row of coordinates, shape (N,); that of the nearest node if none is known in between."""
        z = rng.standard_normal(len(U)).clip(-LAST_SCORE, LAST_SCORE)
        if self.is_interpolated:
            return np.asarray(self._quantiles(np.stack([U[:, 0].clip(self.u.min(), self.u.max()), z], axis=1)))
        nearest = np.square(U[:, None] - self.u).sum(axis=2).argmin(axis=1)
        w = np.empty(len(z))
        for k, score in enumerate(self.scores):
            w[nearest == k] = score.quantile(z[nearest == k])
        return w

    @cached_property
    def _quantiles(self) -> RegularGridInterpolator:
        """Quantiles by coordinate and score: between nodes in u scores at the edges of cells are smooth."""
        w, order = self.edges[1:-1], np.argsort(self.u[:, 0])
        known = self.u[order, 0], np.array([self.scores[k](w) for k in order])
        u, z = np.linspace(known[0][0], known[0][-1], 201), np.linspace(-LAST_SCORE, LAST_SCORE, 1001)
        smooth, monotone = CubicSpline(*known)(u), make_interp_spline(*known, k=1)(u)
        torn = np.any(np.diff(smooth) <= 0.0, axis=1)  # far out, where next to nothing of the law lies
        rows = np.where(torn[:, None], monotone, smooth)
        return RegularGridInterpolator((u, z), np.array([Score(w, row, self.kinks).quantile(z) for row in rows]))


class Score:
    """Normal score z of a law: Phi(z(w)) is its distribution function; a straight line beyond the last known values.

    Parameters
    ----------
    w, z : ndarray, shape (n,)
        Both increasing.
    kinks : tuple of float
        Weights at which z may have a corner.
    """

    def __init__(self, w: FloatArray, z: FloatArray, kinks: tuple[float, ...] = ()) -> None:
        places = np.unique([0, *(int(np.abs(w - kink).argmin()) for kink in kinks), len(w) - 1])
        cuts = [places[0], *(k for k in places[1:-1] if 4 <= k < len(w) - 4), places[-1]]
        pieces = [slice(first, last + 1) for first, last in pairwise(cuts)]
        self._of_w = _joined([_increasing(w[piece], z[piece]) for piece in pieces])
        self._of_z = _joined([_increasing(z[piece], w[piece]) for piece in pieces])
        self._w, self._z = w, z

    @classmethod
    def of(cls, edges: FloatArray, P: FloatArray, kinks: tuple[float, ...]) -> Score:
        """Score of a law by averages over cells."""
        mass = np.maximum(P * np.diff(edges), 0.0)
        mass = mass / mass.sum()
        below, above = np.cumsum(mass)[:-1], np.cumsum(mass[::-1])[::-1][1:]
        z = np.where(below < 0.5, ndtri(below), -ndtri(above))
        known = np.abs(z) < LAST_SCORE
        known[1:] &= z[1:] > z[:-1]
        return cls(edges[1:-1][known], z[known], kinks)

    def __call__(self, w: FloatArray) -> FloatArray:
        """Score of some weights."""
        return _with_lines(self._of_w, self._w, w)

    def moved(self, scale: float, shift: float) -> Score:
        """Score of the weights times a factor, plus a number."""
        return Score(scale * self._w + shift, self._z)

    def with_gaussian_tails(self, spread: float) -> Score:
        """Score that goes on like that of a Gaussian of a standard deviation."""
        steps = np.arange(1.0, 9.0)
        w = [self._w[0] - spread * steps[::-1], self._w, self._w[-1] + spread * steps]
        return Score(np.concatenate(w), np.concatenate([self._z[0] - steps[::-1], self._z, self._z[-1] + steps]))

    def quantile(self, z: FloatArray) -> FloatArray:
        """Weights of some scores."""
        return _with_lines(self._of_z, self._z, z)


def _increasing(x: FloatArray, y: FloatArray) -> PPoly:
    """Spline of fourth order, or one of lower order that cannot oscillate where that would."""
    spline = CubicSpline(x, y)
    fine = np.linspace(x[:-1], x[1:], 5, axis=1).ravel()
    return spline if (spline(fine, 1) > 0.0).all() else PchipInterpolator(x, y)


def _joined(pieces: list[PPoly]) -> PPoly:
    """One function of pieces that meet at their ends."""
    places = np.concatenate([pieces[0].x, *(piece.x[1:] for piece in pieces[1:])])
    return PPoly(np.concatenate([piece.c for piece in pieces], axis=1), places)


def _with_lines(spline: PPoly, x: FloatArray, at: FloatArray) -> FloatArray:
    inside = np.clip(at, x[0], x[-1])
    ends = spline(x[[0, -1]], 1)
    slope = np.where(at < inside, ends[0], ends[1])
    return np.asarray(spline(inside) + slope * (at - inside))


def check_sampled(law: WeightLaw | None, coordinates: Sequence[CoordinateLaw], path: str) -> None:
    """Refuse a law from which no weights can be drawn, as it is known at its nodes alone.

    Raises
    ------
    InputError
    """
    between = any(isinstance(coordinate, ContinuousLaw) for coordinate in coordinates)
    if law is not None and between and not law.is_interpolated:
        raise InputError(
            f"initial.from = '{path}': its density has {len(law.u)} nodes in u, and weights between them are drawn for "
            "one feature with at least four nodes; name a result of SGD with snapshots of weights"
        )


def law_of_samples(w: FloatArray, U: FloatArray, nodes: tuple[FloatArray, FloatArray], smoothing: float) -> WeightLaw:
    """Law of samples of weights and coordinates with smooth quantiles, and the overlaps and norm of the samples.

    Parameters
    ----------
    w : ndarray, shape (n,)
    U : ndarray, shape (n, d1)
    nodes : tuple of ndarray
        Nodes in u where the law is wanted, shape (nodes, d1), and their weights. Samples nearby are moved there along
        with the mean of w given u.
    smoothing : float
        Width in the normal score of weights, and in continuous coordinates.
    """
    q = np.linalg.lstsq(U, w, rcond=None)[0]
    reach = np.abs(w - U @ q).max() + np.abs(nodes[0] @ q).max() + 4.0
    edges = np.linspace(-reach, reach, 1001)
    shares = [_nearby(np.square(U - node).sum(axis=1), smoothing) for node in nodes[0]]
    moved = (w + (node - U) @ q for node in nodes[0])
    scores = [_smoothed(each, share, smoothing) for each, share in zip(moved, shares, strict=True)]
    overlap = U.T @ w / len(w)
    for _ in range(4):  # until samples on cells have their norm and overlaps
        P = np.array([_cell_averages(score, edges) for score in scores])
        law = WeightLaw(*nodes, edges, P, {})
        found, square = law.moments
        scale = math.sqrt((1.0 - overlap @ overlap) / (square - found @ found))
        shift = nodes[0] @ (overlap - scale * found)
        scores = [score.moved(scale, by) for score, by in zip(scores, shift.tolist(), strict=True)]
    return law


def _nearby(distance: FloatArray, width: float) -> FloatArray:
    """Shares of samples by the square of their distance, of Gaussians that are wide enough to hold some of them."""
    while True:
        share = np.exp(-0.5 * (distance - distance.min()) / width**2)
        if _number(share) >= min(10.0 * LEAST_SAMPLES, 0.5 * len(share)):
            return np.asarray(share)
        width *= 1.5


def _number(share: FloatArray) -> float:
    """Number of samples of equal shares that tell as much."""
    return float(share.sum() ** 2 / (share @ share))


def _smoothed(w: FloatArray, share: FloatArray, width: float) -> Score:
    """Score of weighted samples, whose quantiles are smoothed by lines through neighbours in the score.

    A core of many small weights keeps its width then, which a Gaussian in w itself would spread.
    """
    order = np.argsort(w)
    w, probability = w[order], share[order] / share.sum()
    z = ndtri(np.clip(np.cumsum(probability) - 0.5 * probability, 1e-12, 1.0 - 1e-12))
    last = max(LEAST_SCORE, -float(ndtri(min(0.5, LEAST_SAMPLES / _number(share)))))
    at = np.linspace(-last, last, 2 * math.ceil(last / (0.5 * width)) + 1)
    near = probability * np.exp(-0.5 * ((z - at[:, None]) / width) ** 2)
    off = z - at[:, None]
    zeroth, first, second = near.sum(axis=1), (near * off).sum(axis=1), (near * off * off).sum(axis=1)
    lines = (second * (near @ w) - first * ((near * off) @ w)) / (zeroth * second - first**2)
    rising = np.maximum.accumulate(lines) + SAME_NODE * np.arange(len(at))
    spread = math.sqrt(probability @ (w - probability @ w) ** 2)
    return Score(rising, at).with_gaussian_tails(spread)


def _cell_averages(score: Score, edges: FloatArray) -> FloatArray:
    z = score(edges)
    # differences of the smaller tail are accurate
    mass = np.where(z[:-1] > 0, ndtr(-z[:-1]) - ndtr(-z[1:]), ndtr(z[1:]) - ndtr(z[:-1]))
    return np.asarray(mass / np.diff(edges))
