"""(problem, q) -> drift gain g and diffusion Lambda.

With e ~ N(0, 1), c ~ P_c, (zeta1, zeta2) ~ N(0, V) and Theta_l = c.q + sqrt(1 - q.q) e + zeta_l, write
s_l = sigma(Theta_l) - ybar_l, p_l = sigma'(Theta_l) and D = d/dTheta1 + d/dTheta2. Since h12 + h21 = 2 D(s1 s2),
theory.md, section 2, reads

    g      = tau (q <D^2 (s1 s2)> - <c D(s1 s2)>)
    Lambda = (tau^2/m) [(1 + v22) <s1^2 p2^2> + (1 + v11) <s2^2 p1^2> + 2 (1 + v12) <s1 s2 p1 p2>]

so g = -tau grad_q <s1 s2> at fixed ybar. D acts on B = c.q + sqrt(1 - q.q) e alone, so that only first derivatives of
sigma are needed: <D^2 (s1 s2)> is the average of the derivative of the tabulated <D(s1 s2) | B>, jumps included.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np

from meanfield.closures.brackets import DIFFUSION_ROWS, bracket_table
from meanfield.closures.mixture import TAIL, Mixture, averages
from meanfield.closures.panels import Table
from meanfield.errors import InputError
from meanfield.typing import FloatArray

if TYPE_CHECKING:
    from meanfield.problem import Problem

CENTERINGS = {"none": 0, "population": 1, "batch": 2}
"""Codes of the centrings in compiled code."""

LEVELS = (6, 8, 11, 15, 20, 28, 40, 56)
"""Nodes per hidden variable that are tried where several variables are neither discrete nor Gaussian."""

CONVERGED = 1e-10
"""Change of g and Lambda from one level to the next at which we stop, relative to their largest terms."""

MOST_COMPONENTS = 40_000
"""Levels with more components are not tried; a closure would take tens of milliseconds."""

NO_NOISE = 1e-20
"""Noise of a smaller variance is left out: its covariance with noise of unit strength is below 1e-10."""

WORST = 1e-6
"""A larger change at the last level is an error."""

creates_arrays: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": True}
"""Options of a compiled function that creates arrays: unsaid, a caller that borrows all of its own decides that."""

_OUTPUT1, _OUTPUT2 = (6 + DIFFUSION_ROWS.index(name) for name in ("s1", "s2"))


class Expectation(NamedTuple):
    """Everything that compiled code needs for averages at any q."""

    table: Table
    mixture: Mixture


@numba.njit(**creates_arrays)
def mean_outputs(expectation, q):  # type: ignore[no-untyped-def]
    """<sigma(Theta1)> and <sigma(Theta2)>; the expectation must be that of a centred problem."""
    rows = averages(expectation.table, expectation.mixture, q)
    return rows[_OUTPUT1, 0], rows[_OUTPUT2, 0]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def brackets(expectation, q, centering, batch_size):  # type: ignore[no-untyped-def]
    """The averages that make up g and Lambda.

    Returns
    -------
    ndarray, shape (4 + d1,)
        <D^2(s1 s2)>, <s1^2 p2^2>, <s2^2 p1^2>, <s1 s2 p1 p2>, then <c_k D(s1 s2)>; for batch centring with the
        corrections in 1/m of theory.md, section 2.
    """
    d1 = q.size
    rows = averages(expectation.table, expectation.mixture, q)
    result = np.empty(4 + d1)
    if centering == 0:
        result[0] = rows[1, 0]
        result[1:4] = rows[2:5, 0]
        for k in range(d1):
            result[4 + k] = rows[0, 1 + k] + q[k] * rows[1, 1 + d1 + k]
        return result
    (
        s1s1p2p2, s2s2p1p1, s1s2p1p2, s1p2p2, s2p1p1, s1p1p2, s2p1p2, p2p2, p1p1, p1p2, s1, s2, s1s1, s2s2, s1s2
    ) = rows[6:, 0]  # fmt: skip
    result[0] = rows[3, 0] - s2 * rows[4, 0] - s1 * rows[5, 0]
    for k in range(d1):
        m, v = 1 + k, 1 + d1 + k
        direct = rows[0, m] - s2 * rows[1, m] - s1 * rows[2, m]
        by_stein = rows[3, v] - s2 * rows[4, v] - s1 * rows[5, v]
        result[4 + k] = direct + q[k] * by_stein
    result[1] = s1s1p2p2 - 2.0 * s1 * s1p2p2 + s1 * s1 * p2p2
    result[2] = s2s2p1p1 - 2.0 * s2 * s2p1p1 + s2 * s2 * p1p1
    result[3] = s1s2p1p2 - s2 * s1p1p2 - s1 * s2p1p2 + s1 * s2 * p1p2
    if centering == 2:
        keep = 1.0 - 1.0 / batch_size
        spread = keep / batch_size
        result[0] *= keep
        result[4:] *= keep
        result[1] = keep * keep * result[1] + spread * (s1s1 - s1 * s1) * p2p2
        result[2] = keep * keep * result[2] + spread * (s2s2 - s2 * s2) * p1p1
        result[3] = keep * keep * result[3] + spread * (s1s2 - s1 * s2) * p1p2
    return result


@numba.njit(cache=True, nogil=True, error_model="numpy")
def drift_and_diffusion(  # type: ignore[no-untyped-def]
    expectation, q, centering, batch_size, learning_rate, diffusion_factors
):
    """Both in one vector: g, shape (d1,), then Lambda."""
    b = brackets(expectation, q, centering, batch_size)
    result = np.empty(q.size + 1)
    for k in range(q.size):
        result[k] = learning_rate * (q[k] * b[0] - b[4 + k])
    diffusion = 0.0
    for i in range(3):
        diffusion += diffusion_factors[i] * b[1 + i]
    result[q.size] = max(diffusion, 0.0)  # rounding may leave -1e-17 of squares that vanish
    return result


class Closure:
    """g(q) and Lambda(q) of one problem.

    Parameters
    ----------
    problem : Problem
        What is trained, on what data.

    Raises
    ------
    InputError
        If the activation is not smooth between its kinks, or a hidden law lacks the moments that it needs.

    Notes
    -----
    All quantities are dimensionless. Source: theory.md, section 2.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._shape = (len(problem.features),)
        self.learning_rate = problem.model.learning_rate
        self.batch_size = float(problem.model.batch_size)
        self.centering = CENTERINGS[problem.model.centering]
        v = problem.noise_covariance
        factors = np.array([1 + v[1, 1], 1 + v[0, 0], 2 * (1 + v[0, 1])])
        self._diffusion_factors = self.learning_rate**2 / self.batch_size * factors
        self.expectation = self._choose_expectation()

    def __call__(self, q: FloatArray) -> tuple[FloatArray, float]:
        """Evaluate the closure.

        Parameters
        ----------
        q : array_like, shape (d1,)
            Overlaps with q.q <= 1.

        Returns
        -------
        g : ndarray, shape (d1,)
            Drift gain.
        Lambda : float
            Diffusion coefficient.

        Raises
        ------
        ValueError
            If q does not have one entry per feature.
        """
        q = np.ascontiguousarray(q, dtype=float)
        if q.shape != self._shape:
            raise ValueError(f"q has shape {q.shape}, but the problem has {self._shape[0]} feature(s)")
        values = drift_and_diffusion(
            self.expectation, q, self.centering, self.batch_size, self.learning_rate, self._diffusion_factors
        )
        return values[:-1], float(values[-1])

    def _choose_expectation(self) -> Expectation:
        """Components of the hidden law, as many as it takes to leave g and Lambda unchanged."""
        laws = self._problem.hidden_laws
        inexact = sum(not law.exact for law in laws)
        if inexact - any(law.box > 0 for law in laws) <= 1:
            return self._expectation(None)
        self.expectation, change = self._expectation(LEVELS[0]), math.inf
        before = self._at_probes()
        for nodes in LEVELS[1:]:
            finer = self._expectation(nodes)
            if finer.mixture.probability.size > MOST_COMPONENTS:
                break
            self.expectation = finer
            after = self._at_probes()
            change = float((np.abs(after - before) / self._scales(after)).max())
            if change <= CONVERGED:
                break
            before = after
        if change > WORST:
            raise InputError(
                f"features.hidden: with {self.expectation.mixture.probability.size} components of the joint law the "
                f"closures still change by {change:.2g}; use fewer features whose law is neither discrete nor Gaussian"
            )
        return self.expectation

    def _expectation(self, nodes: int | None) -> Expectation:
        problem = self._problem
        mixture = hidden_mixture(problem, nodes)
        spread = np.sqrt(np.maximum(1.0, mixture.variance.max(axis=1)))
        reach = float((np.linalg.norm(mixture.mean, axis=1) + TAIL * spread).max()) + mixture.half_width
        v = problem.noise_covariance
        v = np.where(np.minimum.outer(np.diag(v), np.diag(v)) < NO_NOISE, 0.0, v)
        noise = (float(v[0, 0]), float(v[0, 1]), float(v[1, 1]))
        table = bracket_table(problem.model.activation_functions, noise, self.centering > 0, reach)
        return Expectation(table, mixture)

    def _at_probes(self) -> FloatArray:
        """Brackets at points of the unit ball, shape (points, 4 + d1)."""
        axes = np.eye(len(self._problem.features))
        points = [np.full(len(axes), radius / math.sqrt(len(axes))) for radius in (0.0, 0.5, 0.9)]
        points += [0.7 * axis for axis in axes]
        return np.array([brackets(self.expectation, q, self.centering, self.batch_size) for q in points])

    @staticmethod
    def _scales(values: FloatArray) -> FloatArray:
        """For each bracket the largest of those that it is added to."""
        scales = np.empty_like(values)
        drift = np.array([0, *range(4, values.shape[1])])
        scales[:, drift] = np.abs(values[:, drift]).max(axis=1, keepdims=True)
        scales[:, 1:4] = np.abs(values[:, 1:4]).max(axis=1, keepdims=True)
        return scales


def hidden_mixture(problem: Problem, nodes: int | None) -> Mixture:
    """The joint law of the hidden variables as a mixture of Gaussians, and of one box for a uniform variable.

    Parameters
    ----------
    problem : Problem
    nodes : int or None
        Nodes for each variable whose law is neither discrete nor Gaussian; None for as many as it takes.

    Raises
    ------
    InputError
        If a law lacks the moments that the activation needs.
    """
    power = problem.model.activation_functions.highest_power
    laws = problem.hidden_laws
    boxes = [law.box if law.dimension == 1 else 0.0 for law in laws]
    box = next((k for k, half_width in enumerate(boxes) if half_width > 0), -1)
    parts = [law.components(nodes, power) for law in laws]
    if box >= 0:
        parts[box] = (np.ones(1), np.zeros((1, 1)), np.zeros((1, 1)))
    probability = np.array([math.prod(p) for p in product(*(part[0] for part in parts))])
    mean = np.array([np.concatenate(m) for m in product(*(part[1] for part in parts))])
    variance = np.array([np.concatenate(v) for v in product(*(part[2] for part in parts))])
    likely = probability > 0
    return Mixture(probability[likely], mean[likely], variance[likely], box, boxes[box] if box >= 0 else 0.0)
