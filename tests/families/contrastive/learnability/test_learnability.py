"""Growth rates at q = 0 against closed forms, second derivatives, differences of an independent closure, and SGD."""

import math

import numpy as np
import pytest
import sympy as sp

import meanfield
from meanfield import InputError
from meanfield.families.contrastive.learnability.learnability import learnability
from meanfield.families.contrastive.order_parameters.field import VectorField
from tests.oracles.plain_steps import ETA, HIDDEN, TAU, M, Reference, make_problem, symbolic

MEAN = {"law": "gaussian_mixture", "means": [1.0, -0.2], "variances": [0.5, 0.5], "probabilities": [0.6, 0.4]}
"""A law whose mean is not 0."""

STANDARD_ERRORS = 4.0
"""Largest accepted deviation in standard errors, exceeded by chance with probability 6e-5; the tests below look 12
times, so once in 1300 runs with fresh seeds."""


def threshold(*args, **kwargs):
    low, high = learnability(make_problem(*args, **kwargs)).learnable_moments
    assert high == math.inf
    return low


@pytest.mark.parametrize(("name", "per_sample"), [("quadratic", 10), ("relu", 1), ("linear", 1), ("cubic", 189)])
def test_thresholds_without_noise(name, per_sample):
    # x^2: A = <12 x^2>, Lambda = 16 <x^6> tau^2/m; relu: half of those of x; x^3: <30 x^4> = 90, 36 <x^10> = 34020
    assert threshold(name, tau=0.3, m=4) == pytest.approx(1 + per_sample * 0.3 / 4, rel=1e-10)  # digits of closures


@pytest.mark.parametrize("noise", ["independent", "opposite"])
def test_noise_by_computer_algebra(noise):
    views = symbolic(1, noise)
    gain = -sp.diff(views.g[0].subs(sp.Symbol("s", real=True), 1), sp.Symbol("q1", real=True))
    at_zero = {sp.Symbol("q1", real=True): 0, sp.Symbol("s", real=True): 1, TAU: 0.3, M: 4, ETA: 0.3}
    m2 = sp.Symbol("m2_1", positive=True)
    right = sp.solve(gain.subs(at_zero) - views.Lambda.subs(at_zero) / 2, m2)[0]
    assert threshold(noise=noise) == pytest.approx(float(right), rel=1e-10)  # digits of closures


@pytest.mark.parametrize(("tau", "m", "centering", "excess"), [(0.1, 2, "population", 5), (0.1, 2, "batch", 3)])
def test_centering_of_the_quadratic_activation(tau, m, centering, excess):
    """docs/errata.md: the origin is left at nu > 5 tau, and with the mean of a batch of two at nu > 3 tau."""
    right = 1 + excess * tau
    assert threshold(tau=tau, m=m, centering=centering) == pytest.approx(right, rel=1e-10)  # digits of closures


@pytest.mark.parametrize("noise", ["none", "unequal", "opposite"])
def test_proposition_3_with_second_derivatives(noise):
    problem = make_problem("tanh", noise=noise, tau=0.7, m=3)
    V = np.zeros((2, 2)) if problem.augmentation is None else problem.augmentation.covariance
    x = 0.3 * np.arange(-30, 31)  # the trapezoidal rule, exact to exp(-2 pi (pi/2)/0.3) by the poles of tanh
    weight = 0.3 * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    values, vectors = np.linalg.eigh(V)
    root = vectors * np.sqrt(np.maximum(values, 0))
    grid = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1).reshape(-1, 3)
    chance = np.einsum("i,j,k->ijk", weight, weight, weight).ravel()
    theta = grid[:, :1] + grid[:, 1:] @ root.T
    s1, s2 = np.tanh(theta).T
    p1, p2 = 1 - s1**2, 1 - s2**2
    A = chance @ (-2 * s1 * s2 * (p2 + p1) + 2 * p1 * p2)
    Lambda = (1 + V[1, 1]) * s1**2 * p2**2 + (1 + V[0, 0]) * s2**2 * p1**2 + 2 * (1 + V[0, 1]) * s1 * p1 * s2 * p2
    right = 1 + 0.7 / (2 * 3) * (chance @ Lambda) / A
    assert learnability(problem).learnable_moments[0] == pytest.approx(right, rel=1e-8)  # digits of closures


@pytest.mark.parametrize("centering", ["none", "population", "batch"])
@pytest.mark.parametrize("name", ["relu", "hard_tanh", "quadratic"])
def test_growth_rate_agrees_with_an_independent_closure(name, centering):
    problem, h = make_problem(name, ("gaussian",), "unequal", centering), 1e-3
    at = Reference(problem, [h])
    right = -at.g[0] / h - 0.5 * Reference(problem, [0.0]).Lambda
    rate = learnability(problem).growth_rates[0]
    assert rate == pytest.approx(right, rel=1e-4)  # g is odd: the quotient is off by h^2 times its third derivative


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        # by default each law once, and each activation with laws of each sort
        pytest.param(name, hidden, marks=() if i % 2 == j else pytest.mark.slow)
        for i, hidden in enumerate(HIDDEN)
        for j, name in enumerate(["tanh", "quadratic"])
    ],
)
def test_all_laws_agree_with_the_jacobian(name, hidden):
    problem = make_problem(name, (hidden, MEAN), "correlated", "population", tau=0.1)
    found = learnability(problem)
    built = found.directions @ np.diag(found.growth_rates) @ found.directions.T
    right = VectorField(problem).jacobian(np.zeros(2))
    np.testing.assert_allclose(built, right, atol=1e-9 * np.abs(right).max())  # truncation of differences of 1e-3


def test_mean_of_c_is_subtracted_where_outputs_are_centred():
    """Linear outputs, centred, see the covariance of c: principal components."""
    covariance = [[2.0, 0.6], [0.6, 1.5]]
    root = np.linalg.cholesky(covariance)
    corners = (np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]) @ root.T + [0.7, -1.1]).tolist()
    joint = {"law": "discrete", "values": corners, "probabilities": [0.25] * 4}
    found = learnability(make_problem("linear", joint, centering="population", tau=0.1, m=4, overlaps=[0.1, 0.1]))
    values, vectors = np.linalg.eigh(covariance)
    right = 0.1 * 2 * (values[::-1] - 1) - 0.5 * 4 * 0.1**2 / 4
    np.testing.assert_allclose(found.growth_rates, right, rtol=1e-9)  # digits of closures
    np.testing.assert_allclose(np.abs(np.sum(found.directions * vectors[:, ::-1], axis=0)), 1, rtol=1e-9)


def test_other_features_change_nothing():
    alone = [learnability(make_problem(hidden=(h,))).growth_rates[0] for h in ("gaussian", "uniform", "laplace")]
    together = learnability(make_problem(hidden=("gaussian", "uniform", "laplace"))).growth_rates
    np.testing.assert_allclose(together, alone, rtol=1e-9)  # digits of closures


def test_higher_moments_and_a_quadratic_prior_change_nothing():
    rare = {"law": "three_point", "second_moment": 1.2, "fourth_moment": 50.0}
    plain = learnability(make_problem("relu", (HIDDEN["gaussian"],)))
    other = learnability(make_problem("relu", (rare,), prior={"name": "l2", "strength": 3.0}))
    np.testing.assert_allclose(plain.growth_rates, other.growth_rates, rtol=1e-9)  # digits of closures


def test_outputs_that_are_largest_in_the_middle_learn_small_second_moments():
    """exp(-x^2/2): A = <(exp(-x^2))''> = -2/3^(3/2); Lambda = 4 tau^2/m <x^2 exp(-2 x^2)> = 4 tau^2/(m 5^(3/2))."""
    problem = make_problem("tests.user_functions:bump", (HIDDEN["gaussian"],), tau=0.2, m=1)
    end = 1 - 2 * 0.2 / 5**1.5 / (2 / 3**1.5)
    assert learnability(problem).learnable_moments == pytest.approx((0.0, end), rel=1e-9)  # digits of closures
    assert not learnability(problem).learnable[0]
    small = make_problem("tests.user_functions:bump", ({"law": "gaussian", "second_moment": 0.9 * end},), tau=0.2, m=1)
    assert learnability(small).learnable[0]


def test_too_much_noise_in_opposite_views_leaves_nothing_to_learn():
    """x^2: A = 12 - 4 eta for opposite views, so that nothing is learnable at eta = 3."""
    found = learnability(make_problem(noise={"variance": [3.0, 3.0], "correlation": -1.0}))
    assert np.isnan(found.learnable_moments).all()
    assert not found.learnable.any()


def test_a_mean_that_moves_the_origin_is_refused():
    with pytest.raises(InputError, match=r"mean 0\.52 moves the overlaps .* use hidden variables of mean 0"):
        learnability(make_problem("relu", (MEAN,)))


def test_priors_that_do_not_close_are_refused():
    with pytest.raises(InputError, match=r"prior\.name = 'l1'"):
        learnability(make_problem(prior={"name": "l1", "strength": 1.0}))


def rate_of_sgd(name, factor, N, replicas):
    """Growth rate of a small overlap at `factor` times the threshold: of SGD with its standard error, and of theory.

    tau/m is such that the threshold is 1.3.
    """
    tau = 0.3 * 10 / (threshold(name, tau=1.0, m=1) - 1)
    problem = make_problem(
        name,
        ({"law": "gaussian", "second_moment": 1.3 * factor},),
        tau=tau,
        m=10,
        overlaps=[SMALL],
        time={"stop": STOP, "outputs": 2},
        particles={"method": "chain", "dimension": N, "replicas": replicas, "seed": 1, "record": "statistics"},
    )
    assert learnability(problem).learnable_moments[0] == pytest.approx(1.3, rel=1e-9)  # digits of closures
    sgd = meanfield.simulate_sgd(problem).isel(time=-1, feature=0, feature_=0)
    mean, error = float(sgd.q_mean), math.sqrt(float(sgd.q_covariance) / N / replicas)
    return math.log(mean / SMALL) / STOP, error / mean / STOP, learnability(problem).growth_rates[0]


SMALL, STOP = 0.05, 2.0
CURVED = 0.03
"""Largest relative change of the growth rate by the curvature of b(q), as the ODE has it at these overlaps."""


def check_growth(name, N, replicas):
    for factor, sign in ((1.1, 1), (0.9, -1)):
        found, error, predicted = rate_of_sgd(name, factor, N, replicas)
        assert sign * found > STANDARD_ERRORS * error
        assert found == pytest.approx(predicted, abs=STANDARD_ERRORS * error + CURVED * abs(predicted))


@pytest.mark.parametrize(
    "name",
    # the same steps of the chain with another activation
    ["relu", pytest.param("quadratic", marks=pytest.mark.slow), pytest.param("tanh", marks=pytest.mark.slow)],
)
def test_sgd_grows_above_the_threshold_and_decays_below(name):
    check_growth(name, 10_000, 32)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadratic", "relu", "tanh"])
def test_large_sgd_grows_above_the_threshold_and_decays_below(name):
    check_growth(name, 200_000, 64)
