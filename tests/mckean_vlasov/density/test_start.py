"""Averages at t = 0, against nested quadrature with pieces between the kinks of priors."""

import itertools
import math

import numpy as np
import pytest

from meanfield.extend import Limit, PriorSettings
from meanfield.ingredients.laws.coordinate import (
    GaussianCoordinate,
    LaplaceCoordinate,
    RademacherCoordinate,
    ThreePointCoordinate,
    UniformCoordinate,
)
from meanfield.ingredients.laws.residual import GaussianResidual, UniformResidual
from meanfield.mckean_vlasov.density.start import initial_work

FORCES = {
    "l1": (np.sign, [0.0]),
    "smooth_l1": (lambda w: np.clip(2.0 * w, -1.0, 1.0), [-0.5, 0.5]),
    "quartic": (lambda w: w**3, []),
    "cauchy": (lambda w: w / (1.0 + w * w), []),
}

LAWS = {
    "one, with a kink": ((LaplaceCoordinate(),), (0.5,)),
    "one, narrow laws": ((UniformCoordinate(),), (-0.95,)),
    "discrete beside": ((GaussianCoordinate(), RademacherCoordinate()), (0.5, -0.3)),
    "two": ((UniformCoordinate(), LaplaceCoordinate()), (0.1, 0.8)),
    "three": ((RademacherCoordinate(), ThreePointCoordinate(fourth_moment=5.0), UniformCoordinate()), (0.1, 0.2, 0.3)),
}


def limit_with(name, coordinates, q, residual=None):
    prior, residual = PriorSettings(name=name, strength=0.7), residual or GaussianResidual()
    return Limit(lambda q: (0.0 * q, 0.1), 0.1, prior, coordinates, np.array(q), residual, np.array([0.0, 1.0]))


def fine_rule(law):
    """Twelve Legendre nodes on each of some short panels of a law."""
    if not hasattr(law, "density"):
        return law.quadrature(3)
    ends = np.unique([np.linspace(a, b, 7) for a, b in itertools.pairwise(law.support)])
    u, weight = pieces(ends[None])
    weight = weight[0] * law.density(u[0])
    return u[0], weight / weight.sum()


def pieces(ends):
    """Nodes and weights between increasing ends, shape (rows, nodes)."""
    x, weight = np.polynomial.legendre.leggauss(12)
    left, half = ends[:, :-1, None], 0.5 * np.diff(ends, axis=1)[:, :, None]
    return (left + half * (x + 1)).reshape(len(ends), -1), (half * weight).reshape(len(ends), -1)


@pytest.mark.parametrize("laws", LAWS)
@pytest.mark.parametrize("name", FORCES)
def test_work_at_the_start_is_that_of_the_law_of_weights(name, laws):
    coordinates, q = LAWS[laws]
    force, kinks = FORCES[name]
    deviation = math.sqrt(1 - np.dot(q, q))
    means, weight = np.zeros(1), np.ones(1)
    for law, q_k in zip(coordinates, q, strict=True):
        u, probability = fine_rule(law)
        means, weight = np.add.outer(means, q_k * u).ravel(), np.multiply.outer(weight, probability).ravel()
    even = np.broadcast_to(np.linspace(-9, 9, 13), (len(means), 13))
    between = np.clip(np.subtract.outer(-means, -np.array(kinks)) / deviation, -9, 9)
    z, density = pieces(np.sort(np.concatenate([even, between], axis=1)))
    w = means[:, None] + deviation * z
    expected = weight @ (0.7 * w * force(w) * density * np.exp(-0.5 * z * z)).sum(axis=1) / math.sqrt(2 * math.pi)
    found = initial_work(limit_with(name, coordinates, q))
    assert found == pytest.approx(expected, rel=1e-8)  # jumps of phi are read off from differences


def test_work_at_the_start_is_left_to_the_levels_where_rules_would_be_too_large():
    assert math.isnan(initial_work(limit_with("l1", (LaplaceCoordinate(),) * 2, (0.7, 0.714))))
    assert math.isnan(initial_work(limit_with("l1", (LaplaceCoordinate(),), (0.5,), UniformResidual())))
    assert math.isnan(initial_work(limit_with("l1", (LaplaceCoordinate(),), (1.0,))))
