"""Laws of w averaged over one to three feature coordinates against exact Gaussian mixtures."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from meanfield.ingredients.laws.coordinate import (
    GaussianCoordinate,
    LaplaceCoordinate,
    RademacherCoordinate,
    ThreePointCoordinate,
    UniformCoordinate,
)
from meanfield.mckean_vlasov.cells import feature_quadrature
from meanfield.mckean_vlasov.marginal import laws_given, marginal_density
from meanfield.numerics import mixtures
from meanfield.numerics.distances import l1_distance
from meanfield.numerics.mixtures import GOOD_ENOUGH

EDGES = np.linspace(-11.0, 11.0, 551)
GAUSSIAN, RADEMACHER, SPARSE = GaussianCoordinate(), RademacherCoordinate(), ThreePointCoordinate(fourth_moment=5.0)

CASES = {
    "one": ((GAUSSIAN,), (0.995,)),
    "two alike": ((GAUSSIAN, GAUSSIAN), (0.7, 0.7)),
    "one much sharper": ((GAUSSIAN, GAUSSIAN), (0.1, 0.99)),
    "one discrete": ((RADEMACHER, GAUSSIAN), (0.7, 0.7)),
    "a sharp discrete one": ((SPARSE, GAUSSIAN), (0.95, 0.3)),
    "none but discrete": ((RADEMACHER, SPARSE), (0.6, 0.79)),
    "three": ((GAUSSIAN, RADEMACHER, GAUSSIAN), (0.57, 0.57, 0.57)),
}


def conditional_densities(u, q):
    """Cell averages of w|u ~ N(u.q, 1 - |q|^2), which is exact without a prior (theory.md, section 2)."""
    F = norm.cdf(EDGES, (u @ q)[:, None], np.sqrt(1 - q @ q))
    return np.diff(F / F[:, -1:], axis=1) / np.diff(EDGES)


def exact_mixture(coordinates, q):
    """Cell averages of the law of w: Gaussian but for the discrete coordinates, over whose values it is summed."""
    discrete = [k for k, law in enumerate(coordinates) if law is not GAUSSIAN]
    width = np.sqrt(1 - sum(q[k] ** 2 for k in discrete))
    F = np.zeros(len(EDGES))
    for values in product(*(np.transpose(coordinates[k].quadrature(0)) for k in discrete)):
        F += np.prod([p for _, p in values]) * norm.cdf(
            EDGES, sum(q[k] * x for k, (x, _) in zip(discrete, values, strict=True)), width
        )
    return np.diff(F) / np.diff(EDGES)


def with_its_image(P):
    """Laws that are their own mirror images to rounding, and those that are so exactly, of which half are averaged."""
    return np.stack([P, 0.5 * (P + P[::-1, ::-1])])


@pytest.mark.parametrize("case", CASES)
def test_the_density_of_w_alone_is_the_exact_mixture(case):
    coordinates, q = CASES[case][0], np.array(CASES[case][1])
    u, weight = feature_quadrature(coordinates, None, 0.75)
    P = conditional_densities(u, q)
    found, errors = marginal_density(coordinates, u, weight, EDGES, with_its_image(P))
    exact = exact_mixture(coordinates, q)
    for P_w, error in zip(found, errors, strict=True):
        assert (P_w >= 0).all()
        assert P_w @ np.diff(EDGES) == pytest.approx(1.0, abs=1e-12)  # rounding
        assert l1_distance(EDGES, P_w, exact) <= error + 2e-6  # the rule itself, whose corners are left out
        assert error < 1e-4
    assert l1_distance(EDGES, *found) < 1e-9  # cumulative sums of probabilities, and their scores
    if case != "none but discrete":
        assert l1_distance(EDGES, weight @ P, exact) > 5e-3  # the sum over nodes


@pytest.mark.parametrize("law", [UniformCoordinate(), LaplaceCoordinate()], ids=lambda law: law.law)
def test_other_coordinates_make_the_mixtures_of_many_thin_slices(law):
    q, (cut, *_, end) = 0.97, law.support
    x = np.linspace(cut, end, 16_001)
    x = 0.5 * (x[1:] + x[:-1])
    F = (law.density(x) / law.density(x).sum()) @ norm.cdf(EDGES[::10], q * x[:, None], np.sqrt(1 - q * q))
    u, weight = feature_quadrature((law,), None)
    (P_w,), (error,) = marginal_density((law,), u, weight, EDGES, conditional_densities(u, np.array([q]))[None])
    found = np.concatenate([[0.0], np.cumsum(P_w * np.diff(EDGES))])[::10]
    np.testing.assert_allclose(found, F, rtol=0, atol=error + 1e-6)  # slices 0.002 thin: 0.002^2 / 24
    assert error < 2e-4  # the default nodes of the Laplace law reach out to 20 standard deviations


def test_laws_given_one_coordinate_are_averages_over_the_other():
    q = np.array([0.5, 0.85])
    u, weight = feature_quadrature((GAUSSIAN, GAUSSIAN), None, 0.75)
    laws = laws_given((GAUSSIAN, GAUSSIAN), u, weight, EDGES, conditional_densities(u, q), feature=0)
    near = np.abs(laws.u[:, 0]) < 4
    exact = norm.cdf(EDGES, q[0] * laws.u[near, :1], np.sqrt(1 - q[0] ** 2))
    np.testing.assert_allclose(laws.F[near], exact, rtol=0, atol=1e-5)  # as good as the mixtures above
    assert np.isnan(laws.u[:, 1]).all()
    assert np.diff(np.sort(laws.u[:, 0])).max() <= 0.25
    assert laws.weight.sum() == pytest.approx(1.0, abs=1e-12)  # rounding


def test_times_that_were_not_reached_stay_unknown():
    u, weight = feature_quadrature((GAUSSIAN,), None)
    P = np.stack([conditional_densities(u, np.array([0.5])), np.full((len(u), len(EDGES) - 1), np.nan)])
    P_w, error = marginal_density((GAUSSIAN,), u, weight, EDGES, P)
    assert np.isfinite(P_w[0]).all()
    assert np.isnan(P_w[1]).all()
    assert np.isnan(error[1])


def bent_densities(u):
    """Cell averages of narrow laws along a bend, which scores at fixed w do not follow."""
    F = norm.cdf(EDGES, (u + 0.3 * np.sin(u)).sum(axis=1)[:, None], 0.08)
    return np.diff(F / F[:, -1:], axis=1) / np.diff(EDGES)


def test_the_cheapest_way_knows_what_it_misses():
    u, weight = feature_quadrature((GAUSSIAN,), 40)
    fine, fine_weight = feature_quadrature((GAUSSIAN,), 2000)
    exact = fine_weight @ bent_densities(fine)
    best, cheapest = (
        marginal_density((GAUSSIAN,), u, weight, EDGES, with_its_image(bent_densities(u)), good_enough)
        for good_enough in (GOOD_ENOUGH, np.inf)
    )
    for found, errors in (best, cheapest):
        assert (l1_distance(EDGES, found, exact) <= errors + 1e-6).all()  # the rule, whose corners are left out
    assert (best[1] < 0.5 * cheapest[1]).all()


def test_a_sum_is_good_where_laws_of_rare_values_are_worse(monkeypatch):
    """Laws at rare values of one coordinate are narrow and bent; only where they are shown alone are they looked at."""
    coordinates, ways = (GAUSSIAN, ThreePointCoordinate(fourth_moment=2000.0)), []
    by_curves = mixtures._by_curves
    monkeypatch.setattr(mixtures, "_by_curves", lambda *each: ways.append(each) or by_curves(*each))

    def densities(u):
        rare = (np.abs(u[:, 1]) > 1.0)[:, None]
        return np.where(rare, bent_densities(u[:, :1]), conditional_densities(u[:, :1], np.array([0.5])))

    u, weight = feature_quadrature(coordinates, 40)
    fine, fine_weight = feature_quadrature(coordinates, 2000)
    (P_w,), (error,) = marginal_density(coordinates, u, weight, EDGES, densities(u)[None])
    assert l1_distance(EDGES, P_w, fine_weight @ densities(fine)) <= error < 1e-4
    assert not ways
    laws_given(coordinates, u, weight, EDGES, densities(u), feature=1)
    assert ways
