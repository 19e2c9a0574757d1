"""Quadrature over Gaussian mixtures against closed averages, other quadratures and differences (section 3)."""

import numpy as np
import pytest

from meanfield.families.alpha_contrastive.critical_points.irregularity import irregularity
from meanfield.families.alpha_contrastive.limit.activation import Filter
from meanfield.families.alpha_contrastive.limit.circle import on_circle
from meanfield.families.alpha_contrastive.limit.discrete import DiscreteField
from meanfield.families.alpha_contrastive.limit.kernel_mixture import KernelMixtureField
from meanfield.families.alpha_contrastive.limit.mixture import MixtureField
from meanfield.families.alpha_contrastive.limit.pairs import make_pairs
from tests.families.alpha_contrastive.problems import LAW_F, assert_gradient, kernel, problem, solved

WEIGHT, MEAN = np.array([0.6, 0.4]), np.array([[1.0, 0.2], [-0.4, 0.9]])
COVARIANCE = np.array([[[0.1, 0.02], [0.02, 0.2]], [[0.15, 0.0], [0.0, 0.1]]])
W = on_circle(np.array([0.4, 2.5]))


def by_quadrature(activation, importance):
    given = problem(activation, LAW_F, importance)
    functions = Filter(given.model.activation_functions)
    return KernelMixtureField(WEIGHT, MEAN, COVARIANCE, make_pairs(given.importance, WEIGHT), functions, 0.3)


def test_the_uniform_importance_has_closed_averages():
    found, exact = by_quadrature("leaky_relu", None), MixtureField(WEIGHT, MEAN, COVARIANCE, 0.01, 0.99)
    assert tuple(np.round(found.filter.straight, 12)) == (0.01, 0.99)
    basis = np.array([[-W[0, 1]], [W[0, 0]]])
    for a, b in (
        (found.field(W), exact.field(W)),
        (found.energy(W), exact.energy(W)),
        (found.matrix(W[0]), exact.matrix(W[0])),
        (found.jacobians(W[0], basis)[0], exact.jacobians(W[0], basis)[0]),
    ):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-13)  # rounding: panels resolve a normal density


@pytest.mark.parametrize("importance", [kernel("gaussian", 0.3), kernel("infonce", 0.3)])
def test_smooth_fields_are_those_of_many_atoms(importance):
    """Nodes of Gauss and Hermite in both coordinates of each component, as atoms."""
    x, weight = np.polynomial.hermite_e.hermegauss(18)
    plane = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    share = np.outer(weight, weight).ravel() / weight.sum() ** 2
    roots = [np.linalg.cholesky(S) for S in COVARIANCE]
    atoms = np.concatenate([mu + plane @ root.T for mu, root in zip(MEAN, roots, strict=True)])
    found = by_quadrature("tanh", importance)
    pairs = make_pairs(problem("tanh", LAW_F, importance | {"diagonal": "include"}).importance, np.kron(WEIGHT, share))
    other = DiscreteField(atoms, pairs, found.filter)
    np.testing.assert_allclose(found.field(W), other.field(W), rtol=0.0, atol=1e-8)  # of the 18 nodes in tanh
    np.testing.assert_allclose(found.objective(W), other.objective(W), rtol=0.0, atol=1e-8)  # the same


@pytest.mark.parametrize("activation", ["relu", "hard_tanh", "tanh"])
@pytest.mark.parametrize("importance", [kernel("gaussian", 0.1), kernel("infonce", 0.3)])
def test_fields_are_gradients_and_jacobians_their_derivatives(activation, importance):
    assert_gradient(by_quadrature(activation, importance))


def test_warm_kernels_are_uniform():
    """At a temperature of 1e5 the critical points are those of the uniform importance."""
    law = {"law": "gaussian_mixture", "probabilities": [0.6, 0.4], "means": MEAN.tolist(), "covariance": 0.1}
    warm, uniform = (
        solved("critical_points", "relu", law, kernel("gaussian", 1e5)),
        solved("critical_points", "relu", law),
    )
    np.testing.assert_allclose(warm["w"], uniform["w"], atol=1e-4)  # D/tau of 1e-5, over gaps of rates
    np.testing.assert_array_equal(warm["stable"], uniform["stable"])


@pytest.mark.parametrize("importance", [None, kernel("gaussian", 0.3)])
def test_irregularity_is_the_largest_density_on_the_hyperplane(importance):
    """On a fine grid in the hyperplane of a filter, times E e^{-h^2/(2 tau)} by nodes of another rule."""
    field = by_quadrature("relu", importance)
    x, weight = np.polynomial.hermite_e.hermegauss(120)
    along = np.linspace(-4.0, 4.0, 80_001)[:, None]
    for w in W:
        density, share = np.zeros(len(along)), 0.0
        for p, mean, S in zip(WEIGHT, MEAN, COVARIANCE, strict=True):
            away = along * np.array([-w[1], w[0]]) - mean
            height = np.exp(-0.5 * np.sum(away @ np.linalg.inv(S) * away, axis=1))
            density += p * height / (2.0 * np.pi * np.sqrt(np.linalg.det(S)))
            h = np.maximum(w @ mean + np.sqrt(w @ S @ w) * x, 0.0)
            share += p * weight @ np.exp(-(h**2) / 0.6) / weight.sum()
        wanted = density.max() * (1.0 if importance is None else share)
        off = 2e-6 if importance is None else 2e-3
        assert irregularity(field, w) == pytest.approx(wanted, rel=off)  # steps of 1e-4; 120 nodes across a kink


@pytest.mark.parametrize(("activation", "importance"), [("linear", None), ("relu", kernel("infonce", 0.3))])
def test_irregularity_needs_a_kink_and_features(activation, importance):
    assert np.isnan(irregularity(by_quadrature(activation, importance), W[0]))
