"""Problems of one layer that the studies share, and SGD of filters on the circle that they are held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.families.alpha_contrastive.problem import Problem
from meanfield.problems.file import problem_from

Array = np.ndarray

NINE_ANGLES = np.pi * np.array([-4 / 5, -1 / 2, -2 / 5, -1 / 6, 0, 1 / 5, 2 / 5, 3 / 5, 4 / 5])
"""Places of the points of figure 8."""

FIVE_POINTS = np.array([[1.5, 0.0], [0.3, 1.2], [-0.8, 0.6], [-0.2, -1.0], [0.7, -0.9]])
FIVE_PROBABILITIES = np.array([0.3, 0.25, 0.2, 0.15, 0.1])


@dataclass(frozen=True)
class Law:
    """Points in the plane with probabilities."""

    points: Array
    probabilities: Array

    @property
    def table(self) -> dict[str, Any]:
        """As a problem file has it."""
        return {"law": "points", "points": self.points.tolist(), "probabilities": self.probabilities.tolist()}


NINE = Law(np.stack([np.cos(NINE_ANGLES), np.sin(NINE_ANGLES)], axis=1), np.full(9, 1.0 / 9.0))
FIVE = Law(FIVE_POINTS, FIVE_PROBABILITIES)


def make_problem(activation: str, data: dict[str, Any], kind: str = "quadratic", **tables: Any) -> Problem:
    """Problem of one layer; `temperature` beside its other tables."""
    importance: dict[str, Any] = {"kind": kind}
    if "temperature" in tables:
        importance["temperature"] = tables.pop("temperature")
    first = {"family": "alpha_contrastive", "model": {"activation": activation}, "data": data}
    return problem_from(first | {"importance": importance} | tables)


def angles_of(w: Array) -> Array:
    """Angles of filters in the plane, in (-pi, pi]."""
    return np.asarray(np.arctan2(w[..., 1], w[..., 0]))


def apart(theta: Array, others: Array) -> Array:
    """Distance of each angle to the nearest of others."""
    return np.asarray(np.abs((theta[..., None] - others + np.pi) % (2.0 * np.pi) - np.pi).min(axis=-1))


def pair_importance(distances: Array, p: Array, tau: float) -> Array:
    """Gaussian importance of pairs of atoms times their probabilities; uniform for an infinite temperature."""
    return np.asarray(np.exp(-distances / tau) * p[..., :, None] * p[..., None, :])


def train_filters(law: Law, theta: Array, tau: float, stop: float, rate: float, batch: int, seed: int) -> Array:
    """Angles of ReLU filters after SGD, whose networks are in the rows of `theta`.

    All samples are one of few atoms, so that a batch is the number of times that each was drawn. Pairs of a sample with
    itself have no differences.

    Parameters
    ----------
    law : Law
    theta : ndarray, shape (networks, filters)
        Angles at the start.
    tau : float
        Temperature of the Gaussian importance.
    stop, rate : float
        Time t = eta k at the end, and eta, which falls to 0 over the last half.
    batch : int
    seed : int
    """
    rng, theta = np.random.default_rng(seed), theta.copy()
    steps = round(stop / (0.75 * rate))  # over half of the steps the mean rate is half as large
    for k in range(steps):
        p = rng.multinomial(batch, law.probabilities, size=len(theta)) / batch
        step = rate * min(1.0, 2.0 * (1.0 - k / steps))
        theta += step * push(law, theta, tau, p)
    return theta


def push(law: Law, theta: Array, tau: float, p: Array) -> Array:
    """Tangential field of the filters of networks, whose importance all of them decide."""
    w = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    across = np.stack([-np.sin(theta), np.cos(theta)], axis=-1)
    z = w @ law.points.T
    h = np.maximum(z, 0.0)
    mean_square = np.einsum("rki,rkj->rij", h, h) / h.shape[1]
    own = np.einsum("rii->ri", mean_square)
    M = pair_importance(0.5 * (own[:, :, None] + own[:, None, :]) - mean_square, p, tau)
    pull = h * M.sum(axis=2)[:, None, :] - h @ M
    return np.asarray(np.sum(pull * (z > 0.0) * (across @ law.points.T), axis=-1))


def gaussian_objective(law: Law, theta: Array, tau: float) -> Array:
    """G of networks of ReLU filters of equal weight, by their angles, shape (networks, filters)."""
    w = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    h = np.maximum(w @ law.points.T, 0.0)
    D = 0.5 * np.mean((h[..., :, None] - h[..., None, :]) ** 2, axis=1)
    missing = D if np.isinf(tau) else -tau * np.expm1(-D / tau)
    return np.asarray(0.5 * np.einsum("i,j,rij->r", law.probabilities, law.probabilities, missing))
