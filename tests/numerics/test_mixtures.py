"""Mixtures of laws known at nodes against exact ones, and against sums over thousands of exact laws."""

import numpy as np
import pytest
from scipy.stats import norm

from meanfield.ingredients.laws.coordinate import GaussianCoordinate, LaplaceCoordinate, UniformCoordinate
from meanfield.numerics import fine_rules
from meanfield.numerics.mixed_laws import distance
from meanfield.numerics.mixtures import GOOD_ENOUGH, _scores_on, resolved
from meanfield.numerics.normal_scores import normal_scores
from meanfield.numerics.quadrature import panel_rule

EDGES = np.linspace(-20.0, 20.0, 1001)
LAWS = [GaussianCoordinate(), UniformCoordinate(), LaplaceCoordinate()]
GAUSSIAN = LAWS[0]


def gaussians(mean, width):
    return lambda u: norm.cdf(EDGES, mean(u), width(u))


def wells(u):
    """Two narrow wells that trade probability, as under a quartic prior."""
    low = norm.cdf(-2.0 * u)
    return low * norm.cdf(EDGES, -1.0 + 0.05 * u, 0.06) + (1 - low) * norm.cdf(EDGES, 1.0 + 0.05 * u, 0.06)


def soft_threshold(u):
    """A Gaussian law whose small values an l1 prior has drawn into a narrow peak at 0."""
    raw = norm.cdf(EDGES + 0.5 * np.tanh(EDGES / 0.02), 0.9 * u, 0.25)
    return (raw - raw[:, :1]) / (raw[:, -1:] - raw[:, :1])


LINEAR = gaussians(lambda u: 0.995 * u, lambda u: 0.1 + 0.0 * u)
BENT = gaussians(lambda u: u + 0.3 * np.sin(u), lambda u: 0.08 + 0.02 * np.tanh(u))
CONDITIONAL = {"linear": LINEAR, "bent": BENT, "wells": wells, "soft threshold": soft_threshold}


def mixture_of(law, conditional, nodes):
    u, weight = law.quadrature(nodes)
    F = conditional(u[:, None])
    F = (F - F[:, :1]) / (F[:, -1:] - F[:, :1])
    return u, weight, F, resolved(law, u, weight, EDGES, F, normal_scores(EDGES, np.diff(F)))


def summed(law, conditional):
    """Distribution function of the mixture by brute force."""
    ends = np.linspace(law.support[0], law.support[-1], 501)  # a corner of the density in the middle is one of them
    u, weight = panel_rule(ends, law.density)
    parts = zip(np.array_split(u, 40), np.array_split(weight, 40), strict=True)
    return sum(w @ conditional(x[:, None]) for x, w in parts)


def l1(first, second):
    return float(np.abs(np.diff(first - second)).sum())


@pytest.mark.parametrize("width", [0.5, 0.1, 0.014])
def test_gaussian_laws_along_a_line_make_a_gaussian_law(width):
    q = np.sqrt(1 - width**2)
    conditional = gaussians(lambda u: q * u, lambda u: width + 0.0 * u)
    u, weight, F, mixture = mixture_of(GAUSSIAN, conditional, 36)
    assert l1(mixture.average, norm.cdf(EDGES)) <= mixture.error + 1e-6  # nodes in between, and their cut at six
    assert mixture.error < 2 * GOOD_ENOUGH
    if width < 0.2:
        assert l1(weight @ F, norm.cdf(EDGES)) > 0.05  # the comb
    else:
        assert len(mixture.u) == len(u)  # the nodes will do


# Every conditional law meets the Gaussian one, and every law the sharpest of them.
@pytest.mark.parametrize(
    ("law", "name"),
    [
        pytest.param(
            *(law, name),
            id=f"{law.law}-{name}",
            marks=() if law is GAUSSIAN or name == "soft threshold" else pytest.mark.slow,
        )
        for law in LAWS
        for name in CONDITIONAL
    ],
)
def test_errors_are_bounded_by_their_estimates_and_fall_with_more_nodes(law, name):
    exact = summed(law, CONDITIONAL[name])
    for nodes in (24, 96):
        *_, mixture = mixture_of(law, CONDITIONAL[name], nodes)
        F = mixture.average
        assert (np.diff(F) >= -1e-14).all()  # rounding
        assert F[-1] - F[0] == pytest.approx(1.0, abs=1e-12)
        # The law's own rule misses 2e-7 with so few nodes, and scores beyond five are straight lines.
        assert l1(F, exact) <= mixture.error + 1e-6
    assert mixture.error < 5e-3
    assert l1(F, exact) < 3e-4


def test_laws_of_any_shape_that_moves_steadily_need_few_nodes():
    """Two peaks of width 0.02 at a distance of 1: the law of sharp Rademacher residuals."""

    def conditional(u):
        v = EDGES - 0.8 * u
        return 0.5 * norm.cdf(v, -0.5, 0.03) + 0.5 * norm.cdf(v, 0.5, 0.03)

    exact = 0.5 * (norm.cdf(EDGES, -0.5, np.hypot(0.8, 0.03)) + norm.cdf(EDGES, 0.5, np.hypot(0.8, 0.03)))
    _, weight, F, mixture = mixture_of(GAUSSIAN, conditional, 48)
    assert l1(weight @ F, exact) > 0.2
    assert l1(mixture.average, exact) <= mixture.error < 0.02  # cells of 0.04 are wider than the peaks


def test_nodes_as_close_as_asked_for_keep_the_mixture():
    u, weight, F, mixture = mixture_of(GAUSSIAN, gaussians(lambda u: 0.5 * u, lambda u: 0.8 + 0 * u), 12)
    fine = resolved(GAUSSIAN, u, weight, EDGES, F, normal_scores(EDGES, np.diff(F)), 0.1)
    assert np.diff(fine.u).max() <= 0.1
    exact = norm.cdf(EDGES, 0.5 * fine.u[:, None], 0.8)
    np.testing.assert_allclose(fine.F, exact, rtol=0, atol=1e-6)  # tails beyond a score of five
    assert distance(fine, mixture) < 1e-3  # twelve nodes are few


def test_splines_at_a_place_depend_on_near_nodes_only(monkeypatch):
    def average(reach):
        monkeypatch.setattr(fine_rules, "SPLINE_REACH", reach)
        return mixture_of(GAUSSIAN, gaussians(lambda u: u + 0.3 * np.sin(u), lambda u: 0.01), 200)[-1].average

    usual, everything = fine_rules.SPLINE_REACH, average(200)
    assert l1(average(usual), everything) < 1e-11  # 0.43^40 of scores up to some hundreds
    assert l1(average(4), everything) > 1e-9  # fewer would show


@pytest.mark.parametrize("slope", [0.3, 0.6, 1.0])
def test_sums_over_nodes_know_what_cutting_the_law_costs(slope):
    """Nodes that resolve Gaussian laws but end at 4.8 deviations; the mixture is the normal law."""
    law, edges = GaussianCoordinate(), np.linspace(-9.0, 9.0, 181)
    u, weight = law.quadrature(19)
    z = edges * np.sqrt(1.0 + slope * slope) - slope * u[:, None]
    found = resolved(law, u, weight, edges, norm.cdf(z), z)
    assert len(found.u) == 19  # no interpolation
    error = np.abs(np.diff(found.average - norm.cdf(edges))).sum()
    assert 1e-3 * found.error < error <= found.error  # which is an estimate, and no guess


def test_scores_on_curves_are_those_of_piecewise_linear_interpolation():
    """Also where curves rest, and at and beyond their ends."""
    rng = np.random.default_rng(8)
    curves = np.sort(rng.normal(size=(40, 30)).round(1), axis=1)  # some neighbours are equal
    points, v = np.linspace(-7.0, 7.0, 30), np.sort(2.0 * rng.normal(size=(40, 80)).round(1), axis=1)
    v[:, -1], v[:, 0] = np.maximum(curves[:, -1], v[:, -2]), np.minimum(curves[:, 0], v[:, 1])
    rows = zip(curves, v, strict=True)
    expected = np.array([np.interp(x, row, points, left=-np.inf, right=np.inf) - x for row, x in rows])
    np.testing.assert_allclose(_scores_on(curves, points, v), expected, rtol=0, atol=1e-14)  # rounding of 7
