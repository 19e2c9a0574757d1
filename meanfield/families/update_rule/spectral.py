"""Coordinates of different variance: averages of a step, and overlaps at each eigenvalue (update_rules.md, section 11).

Noise moves a coordinate in proportion to its variance rho, while signals and moves along vectors do not know it. So a
step needs two averages where one was enough, and overlaps are followed at quadrature nodes of the spectrum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.families.update_rule.averages import moments_of, regression_on, step_of
from meanfield.families.update_rule.draws import Draw
from meanfield.families.update_rule.rates import Constraints, State, normalisation, unpacked
from meanfield.ingredients.spectra import Nodes
from meanfield.numerics.gaussian_moments.rules import Rule
from meanfield.typing import FloatArray


class Gains(NamedTuple):
    """Averages of a step over samples, at fixed Gram matrices.

    Parameters
    ----------
    noise : ndarray, shape (vectors, students)
        Mean step along vectors that noise makes in a coordinate of variance 1.
    along : ndarray, shape (vectors, students)
        Mean step along vectors by signals and moves, the same in all coordinates.
    Lambda : ndarray, shape (students, students)
        Diffusion of a coordinate of variance 1.
    H : ndarray, shape (side variables,)
        Mean steps of side variables.
    """

    noise: FloatArray
    along: FloatArray
    Lambda: FloatArray
    H: FloatArray


class Overlaps(NamedTuple):
    """Overlaps at nodes of the spectrum, per coordinate, and side variables.

    Parameters
    ----------
    R : ndarray, shape (..., nodes, students, features)
    Q : ndarray, shape (..., nodes, students, students)
    v : ndarray, shape (..., side variables)
    """

    R: FloatArray
    Q: FloatArray
    v: FloatArray

    def total(self, weight: FloatArray) -> State:
        """Averages over nodes with some weights."""
        R, Q = (np.einsum("b,...bkl->...kl", weight, each) for each in (self.R, self.Q))
        return State(R, Q, self.v)

    def gram(self, nodes: Nodes) -> FloatArray:
        """Gram matrices at nodes, shape (nodes, vectors, vectors), of overlaps at one time."""
        T = nodes.teacher[:, None, None] * np.eye(self.R.shape[-1])
        return np.block([[T, self.R.swapaxes(1, 2)], [self.R, self.Q]])


def weighted_gram(grams: FloatArray, nodes: Nodes) -> FloatArray:
    """Gram matrix weighted with the eigenvalues, from those at nodes."""
    return np.asarray(np.einsum("b,bij->ij", nodes.weight * nodes.rho, grams))


def start_at(nodes: Nodes, R: FloatArray, Q: FloatArray, v: FloatArray) -> Overlaps:
    """Overlaps at the start, of students that know of the variances what the features do.

    Parameters
    ----------
    R, Q, v : ndarray
        Of all coordinates together.
    """
    along, teacher = R @ R.T, nodes.teacher[:, None, None]
    return Overlaps(teacher * R, Q + (teacher - 1.0) * along, v)


def packed_overlaps(overlaps: Overlaps) -> FloatArray:
    """Overlaps at one time as a vector, node after node."""
    i, j = np.tril_indices(overlaps.Q.shape[-1])
    nodes = np.hstack([overlaps.R.reshape(len(overlaps.R), -1), overlaps.Q[:, i, j]])
    return np.concatenate([nodes.ravel(), overlaps.v])


def unpacked_overlaps(y: FloatArray, nodes: int, students: int, features: int) -> Overlaps:
    """Overlaps from vectors, shape (..., numbers)."""
    end = nodes * (students * features + students * (students + 1) // 2)
    R, Q, _ = unpacked(y[..., :end].reshape(*y.shape[:-1], nodes, -1), students, features)
    return Overlaps(R, Q, y[..., end:])


def gains_of(draw: Draw, side: int, G: FloatArray, weighted: FloatArray, constants: FloatArray, rule: Rule) -> Gains:
    """Averages of the steps of a draw at Gram matrices.

    Parameters
    ----------
    draw : Draw
    side : int
        Number of side variables.
    G, weighted : ndarray, shape (vectors, vectors)
        Plain, and weighted with the variances.
    constants : ndarray
        See `System.constants`.
    rule : Rule
        Rule of quadrature for `draw.update`.

    Notes
    -----
    Noise is regressed on what is read, so that the weighted matrix is not inverted: students may be equal. Source:
    update_rules.md, eq-rule-spectrum-averages.
    """
    K, n, M, p = draw.students, draw.vectors, draw.features, draw.observed
    variables = draw.signal.shape[2]
    noise, along, Lambda, H = np.zeros((n, K)), np.zeros((n, K)), np.zeros((K, K)), np.zeros(side)
    beside = draw.beside_features(G)
    for given, found in moments_of(draw, draw.update, G, constants, rule, weighted):
        chance, step = given.probability, step_of(draw, side, given, found)
        for number in range(draw.inputs):
            directed = step.along[:, number]
            c = np.outer(given.law.mean[:variables], step.F[number]) + given.regression[:variables] @ directed
            along += chance * given.signal * p * draw.signal[number] @ c
            white, projected = (
                chance * given.noise * regression_on(given.law.factor, each) @ directed
                for each in _unit_noise(draw, number)
            )
            noise += white + beside @ projected
            along[:M] -= (weighted @ beside)[:M] @ projected
        Lambda += chance * step.Lambda
        along += chance * step.B
        H += chance * step.H
    return Gains(noise, along, Lambda, H)


def _unit_noise(draw: Draw, number: int) -> tuple[FloatArray, FloatArray]:
    """Covariances of noise along vectors with the columns of a row, in units of the Gram matrix of the noise.

    Of an input, white noise first and then noise beside the features, shape (vectors, width) both.
    """
    n, M, p = draw.vectors, draw.features, draw.observed
    white, projected = np.zeros((n, draw.width)), np.zeros((n, draw.width))
    for other in range(draw.inputs):
        fields = draw.fields(other)
        for each in draw.noise:
            C = each.covariance[number, other]
            white[:, fields] += C * (p * (1.0 - p) if each.projected else p) * np.eye(n)
            projected[M:, fields] += C * (p * p if each.projected else 0.0) * np.eye(n)[M:]
    return white, projected


def rates_at(gains: Gains, overlaps: Overlaps, nodes: Nodes, decay: float, constraints: Constraints) -> Overlaps:
    """Rates of change of overlaps at nodes, and of side variables (update_rules.md, eq-rule-spectrum-ode).

    Parameters
    ----------
    gains : Gains
        Of all draws of a step.
    overlaps : Overlaps
    nodes : Nodes
    decay : float
        Strength of a linear prior.
    constraints : tuple of (str, range)
        What follows a step; see `normalisation`.
    """
    M, rho = overlaps.R.shape[-1], nodes.rho[:, None, None]
    G = overlaps.gram(nodes)
    V = rho * (G @ gains.noise) + G @ gains.along - decay * G[:, :, M:]
    drift = V[:, M:] + V[:, M:].swapaxes(1, 2) + rho * gains.Lambda
    Q = overlaps.total(nodes.weight).Q
    S = normalisation(constraints, np.einsum("b,bkl->kl", nodes.weight, drift), Q)
    back = overlaps.Q @ S
    return Overlaps(V[:, :M].swapaxes(1, 2) - S.T @ overlaps.R, drift - back - back.swapaxes(1, 2), gains.H)
