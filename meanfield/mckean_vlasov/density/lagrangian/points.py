"""Points of all nodes at t = 0: where they lie along their curves, and the weights that they stand for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from meanfield.ingredients.laws.residual import GaussianResidual
from meanfield.mckean_vlasov.density.lagrangian.grading import Grading
from meanfield.mckean_vlasov.density.start import Nodes
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.quantile_frame.frame import BOUNDED, LANES
from meanfield.numerics.quantile_frame.inversion import invert
from meanfield.typing import FloatArray

START_ROUNDING = 4.0 * float(np.finfo(float).eps)
"""Accuracy of these weights, relative and absolute."""


@dataclass(frozen=True)
class Frames:
    """Map from equally spaced numbers to coordinates along the curve, for every node that is solved.

    Parameters
    ----------
    jumps : tuple of ndarray, each of shape (4, jumps)
        For every node: amplitudes, centres, inverse widths and kinds of further terms that gather points where X jumps.
    spacing : float
        Largest distance of neighbouring points in the first level.
    """

    nodes: Nodes
    grading: Grading
    jumps: tuple[FloatArray, ...]
    spacing: float

    @classmethod
    def plain(cls, nodes: Nodes, grading: Grading, spacing: float) -> Frames:
        """Frames without jumps."""
        return cls(nodes, grading, tuple(np.zeros((4, 0)) for _ in range(len(nodes.solved[1]))), spacing)

    def with_jumps(self, jumps: tuple[FloatArray, ...]) -> Frames:
        """Frames with other jumps."""
        return replace(self, jumps=jumps)

    def first_points(self, limit: Limit) -> int:
        """Number of points of the first level, for the node with the largest range."""
        return math.ceil(max(high - low for low, high in self._ranges(limit)) / self.spacing)

    def _ranges(self, limit: Limit) -> list[tuple[float, float]]:
        """First and last of the equally spaced numbers of every node."""
        q = limit.initial_overlap
        deviation = math.sqrt(1 - q @ q)
        u, _ = self.nodes.solved
        reach = self.grading.reach
        ranges = []
        for mean, jumps in zip(u @ q, self.jumps, strict=True):
            ends = np.array([mean - deviation * reach, mean + deviation * reach])
            zeta = np.array([-reach, reach]) + graded(ends, self.grading.terms)
            eta = zeta + graded(zeta, jumps)
            ranges.append((float(eta[0]), float(eta[1])))
        return ranges

    def start(self, limit: Limit, points: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coordinates zeta, their spacing h and the weights X at t = 0, each of shape (nodes, points)."""
        u, weight = self.nodes.solved
        q = limit.initial_overlap
        deviation, means = math.sqrt(1 - q @ q), u @ q
        shape = len(weight), points
        zeta, spacing, X = np.empty(shape), np.empty(shape), np.empty(shape)
        slopes = np.empty(points)
        gaussian = isinstance(limit.initial_residual, GaussianResidual)
        for k, (low, high) in enumerate(self._ranges(limit)):
            eta = np.linspace(low, high, points)
            invert(eta, 1.0, 0.0, self.jumps[k], zeta[k], slopes)
            spacing[k] = (high - low) / (points - 1) / slopes
            if gaussian:
                invert(zeta[k], 1 / deviation, -means[k] / deviation, self.grading.terms, X[k], slopes)
        if not gaussian:
            X[:] = self._start_of(limit, zeta, means, deviation)
        return zeta, spacing, X

    def _start_of(self, limit: Limit, zeta: FloatArray, means: FloatArray, deviation: float) -> FloatArray:
        """Weights at t = 0 with a residual of any law, by bracketed interpolation (Chandrupatla's method)."""
        from scipy.optimize import elementwise

        def short_of(residual: FloatArray, zeta: FloatArray, mean: FloatArray) -> FloatArray:
            there = graded(mean + deviation * residual, self.grading.terms)
            return np.asarray(limit.initial_residual.score(residual) + there - zeta)

        far = np.full_like(zeta, 40.0)  # where the search for them begins
        arguments = zeta, np.broadcast_to(means[:, None], zeta.shape)
        found = elementwise.find_root(
            short_of, (-far, far), args=arguments, tolerances={"xatol": START_ROUNDING, "xrtol": START_ROUNDING}
        )
        return np.asarray(means[:, None] + deviation * found.x)


def graded(w: FloatArray, terms: FloatArray) -> FloatArray:
    """Sum of the terms at w."""
    total = np.zeros_like(w)
    for amplitude, centre, inverse_width, kind in terms.T:
        z = inverse_width * (w - centre)
        total += amplitude * (z / np.sqrt(1.0 + z * z) if kind == BOUNDED else np.arcsinh(z))
    return total


def packed(values: FloatArray) -> FloatArray:
    """Flat layout of the kernel: (nodes, points) -> [block][point][lane], filled up with copies of the last node."""
    nodes, points = values.shape
    blocks = -(-nodes // LANES)
    padded = np.concatenate([values, np.repeat(values[-1:], blocks * LANES - nodes, axis=0)])
    return np.ascontiguousarray(padded.reshape(blocks, LANES, points).transpose(0, 2, 1)).reshape(-1)


def unpacked(flat: FloatArray, nodes: int, points: int) -> FloatArray:
    """Inverse of `packed`."""
    return np.ascontiguousarray(flat.reshape(-1, points, LANES).transpose(0, 2, 1).reshape(-1, points)[:nodes])
