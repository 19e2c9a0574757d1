"""Points of all nodes at t = 0: where they gather, where they lie along their curves, and what weights they stand for.

Points gather at kinks of the prior, and around the core that a prior of bounded pull leaves behind. A prior whose pull
phi(w) grows slower than w, such as l1, draws most weights into a core of width D/(tau phi) with D = Lambda/2, while
some may escape for ever (condensation). Points that kept their quantile would cross the corner between core and
survivors one by one. Graded points stay where they are in w, uniformly within the core, where the density falls by
`CORE_EXPONENT` powers of e, and at growing distances beyond.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from meanfield.ingredients.laws.residual import GaussianResidual
from meanfield.mckean_vlasov.density.start import Nodes, kinks_of
from meanfield.mckean_vlasov.limit import Limit
from meanfield.numerics.quantile_frame.frame import BOUNDED, LANES, LOGARITHMIC
from meanfield.numerics.quantile_frame.inversion import invert
from meanfield.typing import FloatArray

CORE_EXPONENT = 30.0
"""Potential difference, in units of the noise, at which the core of a density ends."""

CORE_AMPLITUDE, CORE_ENDS, TAIL_AMPLITUDE = 11.0, 1.85, 0.8
"""Half the number of spacings in the core, the width on which they become longer in units of that of the core, and
points per factor e of the distance beyond. The density of the first level falls by a factor of two or three from point
to point of the core: with half as many points, waves start where few survivors take over, and shorten the steps."""

WIDEST_SMOOTH_CORE = 12.0
"""Largest width of a core that is graded where phi has no jump: there the potential may rise as slowly as a logarithm
around a narrow core."""

NARROWEST_LAYER, SMALLEST_NOISE = 1e-9, 1e-300
"""Least width of a layer that is resolved, and the noise that stands for none."""

CONDENSED_REACH = 8.5
PLAIN_REACH = 7.5
"""Quantiles at which points end, on the scale of the normal law: beyond them lie 4e-14 and 1e-17 of the probability."""

WEIGHT_OF_LINEAR_PULL = 1e8
"""Weight at which the linear part of a prior is read off."""


@dataclass(frozen=True)
class Grading:
    """Terms of psi, and the quantile up to which points reach.

    Parameters
    ----------
    terms : ndarray, shape (4, terms)
        Amplitudes, centres, inverse widths and kinds.
    """

    terms: FloatArray
    reach: float

    def reaching(self, further: float) -> Grading:
        """Grading with points that reach further."""
        return replace(self, reach=self.reach + further)


def grading_of(limit: Limit, noise: FloatArray | float, deficit: float = 0.0) -> Grading:
    """Grading for the smallest noise D = Lambda/2 of a run.

    Where several phases have terms at one place, those of the narrowest layer gather points for all of them.

    Parameters
    ----------
    noise : float or ndarray, shape (phases,)
    deficit : float
        Quantiles by which the last points have moved inwards in a trial run, because their weights grew.
    """
    found: dict[float, list[Term]] = {}
    for phase, least in zip(limit.phases, np.broadcast_to(noise, len(limit.phases)).tolist(), strict=True):
        if phase.prior.functions.linear or phase.prior.strength == 0.0 or phase.learning_rate == 0.0:
            continue
        for centre, terms in _terms(phase, max(least, SMALLEST_NOISE)).items():
            found[centre] = max(found.get(centre, terms), terms, key=lambda each: each[0][2])
    terms = [term for of_centre in found.values() for term in of_centre]
    reach = CONDENSED_REACH + deficit if terms else PLAIN_REACH
    return Grading(np.array(terms, dtype=float).reshape(-1, 4).T.copy(), reach)


Term = tuple[float, float, float, float]
"""Amplitude, centre, inverse width and kind."""


def _terms(limit: Limit, noise: float) -> dict[float, list[Term]]:
    """Terms around the jumps of phi, or else around the core of a sublinear prior, by their centres."""
    jumps = [(kink, jump) for kink, jump, _ in kinks_of(limit.prior).T if jump > 0.0]
    if jumps:
        terms = {}
        for kink, jump in jumps:
            layer = max(2.0 * noise / (limit.learning_rate * jump), NARROWEST_LAYER)
            # In a core wider than 3 lies the whole density, whose points need no grading.
            core = CORE_EXPONENT * layer if CORE_EXPONENT * layer < 3.0 else None
            # Next to a jump points are equally spaced within half of the layer D/(tau |phi|), and at most 0.1.
            terms[kink] = _around(kink, core, min(0.5 * layer, 0.1), len(jumps))
        return terms
    if not _sublinear(limit):
        return {}
    core = _core_width(limit, noise)
    return {0.0: _around(0.0, core, core, 1)} if core < WIDEST_SMOOTH_CORE else {}


def _around(centre: float, core: float | None, layer: float, shares: int) -> list[Term]:
    """Terms for a core of points, if there is one, and a tail from a layer on."""
    terms = [(TAIL_AMPLITUDE / shares, centre, 1 / layer, LOGARITHMIC)]
    if core is not None:
        terms.append((CORE_AMPLITUDE / shares, centre, 1 / (CORE_ENDS * core), BOUNDED))
    return terms


def _sublinear(limit: Limit) -> bool:
    """Whether phi(w)/w falls far out, after its linear part has been removed."""
    far = float(limit.prior.force(np.array([WEIGHT_OF_LINEAR_PULL]))[0]) / WEIGHT_OF_LINEAR_PULL
    near, out = (float(limit.prior.force(np.array([w]))[0]) / w - far for w in (4.0, 40.0))
    return bool(np.isfinite(far)) and near > 0.0 and out < 0.9 * near  # a pull that rises more slowly than w


def _core_width(limit: Limit, noise: float) -> float:
    """Weight at which the potential of the prior is CORE_EXPONENT times the noise, or more than any core has."""
    w = np.concatenate([[0.0], np.geomspace(1e-6, 2 * WIDEST_SMOOTH_CORE, 400)])
    potential = np.concatenate([[0.0], np.cumsum(limit.prior.potential_steps(w))]) * limit.learning_rate / noise
    beyond = np.flatnonzero(potential > CORE_EXPONENT)
    return float(w[beyond[0]]) if beyond.size else 2 * WIDEST_SMOOTH_CORE


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
        deviation = limit.initial_deviation
        u, _ = self.nodes.solved
        reach = self.grading.reach
        ranges = []
        starts = limit.initial_law.at(u) if limit.initial_law is not None else [None] * len(u)
        for mean, start, jumps in zip(limit.initial_means(u), starts, self.jumps, strict=True):
            ends = np.array([mean - deviation * reach, mean + deviation * reach])
            if start is not None:
                ends = start.quantile(np.array([-reach, reach]))
            zeta = np.array([-reach, reach]) + graded(ends, self.grading.terms)
            eta = zeta + graded(zeta, jumps)
            ranges.append((float(eta[0]), float(eta[1])))
        return ranges

    def start(self, limit: Limit, points: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coordinates zeta, their spacing h and the weights X at t = 0, each of shape (nodes, points)."""
        u, weight = self.nodes.solved
        deviation, means = limit.initial_deviation, limit.initial_means(u)
        shape = len(weight), points
        zeta, spacing, X = np.empty(shape), np.empty(shape), np.empty(shape)
        slopes = np.empty(points)
        gaussian = limit.initial_law is None and isinstance(limit.initial_residual, GaussianResidual)
        for k, (low, high) in enumerate(self._ranges(limit)):
            eta = np.linspace(low, high, points)
            invert(eta, 1.0, 0.0, self.jumps[k], zeta[k], slopes)
            spacing[k] = (high - low) / (points - 1) / slopes
            if gaussian:
                invert(zeta[k], 1 / deviation, -means[k] / deviation, self.grading.terms, X[k], slopes)
        if limit.initial_law is not None:
            for k, score in enumerate(limit.initial_law.at(u)):
                X[k] = self._start_of(score, zeta[[k]], np.zeros(1), 1.0)
        elif not gaussian:
            X[:] = self._start_of(limit.initial_residual.score, zeta, means, deviation)
        return zeta, spacing, X

    def _start_of(
        self, score: Callable[[FloatArray], FloatArray], zeta: FloatArray, means: FloatArray, deviation: float
    ) -> FloatArray:
        """Weights at t = 0 with a residual of any normal score, by bracketed interpolation (Chandrupatla's method)."""
        from scipy.optimize import elementwise

        def short_of(residual: FloatArray, zeta: FloatArray, mean: FloatArray) -> FloatArray:
            there = graded(mean + deviation * residual, self.grading.terms)
            return np.asarray(score(residual) + there - zeta)

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
